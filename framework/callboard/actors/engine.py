"""The engine port: what actors that outlive their process need of a store and a queue.

An engine keeps letters until they are done, the journal of each address, answers, and who owns
which addresses. `testing.check_engine` says in code what is promised here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import TracebackType
from typing import Any, Protocol, Self

from callboard.actors.address import Address
from callboard.journaling.blobs import Blobs
from callboard.journaling.records import Record
from callboard.json_text import Json
from callboard.plain import plain

MAILBOX_BOUND = 1_000  # letters that may wait for one address


@plain
class Letter:
    """A message to one address as an engine keeps it: JSON, until it is done.

    `id`: the same id is taken in once, however often it is sent. `asked`: somebody waits for an
    answer. `deadline` and `due` are in seconds since the epoch; a letter is not handed out before
    it is due. `control` letters never wait behind others. `attempts` counts how often it was
    begun and not done. A `suspect` stood first in its mailbox when the process that had it died:
    it may have been the reason, so whoever begins it counts first.
    """

    id: str
    to: Address
    body: Json
    sender: Address | None = None
    asked: bool = False
    chain: tuple[Address, ...] = ()
    deadline: float | None = None
    due: float | None = None
    topic: str | None = None
    control: bool = False
    attempts: int = 0
    suspect: bool = False


@plain
class StoredAnswer:
    """What a letter was answered with. One that is not final says what it waits for."""

    letter_id: str
    body: Json
    final: bool = True


class Standing(StrEnum):
    """How an address stands, as its last commit said."""

    IDLE = "idle"  # nothing is unfinished
    RUNNING = "running"  # it is taken up again when its process has died
    WAITING = "waiting"  # for a human or a timer: nothing happens before a letter comes


@plain
class Commit:
    """What belongs together: all of it is kept, or nothing.

    `records` are appended to the journal of `address` if it holds exactly `expected` of them.
    `done` names letters that leave the mailbox of `address`; names that are not there are no
    error. `sends` are put into mailboxes, `answers` to those who asked.
    """

    address: Address
    records: Sequence[Record] = ()
    expected: int = 0
    done: Sequence[str] = ()
    sends: Sequence[Letter] = ()
    answers: Sequence[StoredAnswer] = ()
    standing: Standing | None = None  # None: as it was


@plain
class ActorEntry:
    """One address as the engine knows it. `unread` letters are those that are not done."""

    address: Address
    standing: Standing
    records: int
    unread: int
    changed_at: float  # seconds since the epoch
    owner: str | None  # the name of the process that owns it, if one does


@plain
class WorkerEntry:
    """One process that takes part in the work: the kinds that it serves, and of each the numbers
    of the shards that it owns.
    """

    name: str
    shards: Mapping[str, Sequence[int]]


@plain
class DeadEntry:
    """A letter that could not be delivered, or failed too often. `number` names it."""

    number: int
    letter: Letter
    reason: str
    error: str | None
    at: float  # seconds since the epoch


class Worker(Protocol):
    """One process's share of the work: the letters of the addresses that it owns.

    An address is owned by one worker at a time, by a lease that is renewed in the background.
    Whoever lost it is fenced off: its commits fail with Fenced.
    """

    async def next(self) -> Sequence[Letter]:
        """The next letters, at least one; waits for them. Of one address in the order of sending,
        control letters first. What was handed out is not handed out again by this worker.

        For each address that it takes over while that is RUNNING, it hands out a control letter
        with the body `{"go_on": true}`, which is kept nowhere. The first letter (no control
        letter) of an address whose owner died without a release is a suspect from then on.
        """
        ...

    def owns(self, address: Address) -> bool:
        """Whether the lease holds, by this machine's clock. Look right before an effect."""
        ...

    async def commit(self, commit: Commit) -> None:
        """As `Engine.commit`, for an address that this worker owns.

        Raises:
            Fenced: another worker owns the address now, or nobody; nothing was kept.
        """
        ...

    async def count(self, letter: Letter, error: str) -> None:
        """Keep that a letter failed once more, or that a suspect is begun (`attempts` + 1), so
        that it outlives the process. It stays in hand.
        """
        ...

    async def add(self, kind: str) -> None:
        """Take part for this kind as well. Returns once it owns what is free of its share."""
        ...

    async def release(self) -> None:
        """Hand out nothing more and give all addresses back, so that others take them at once.

        What was handed out and is not done is handed out by the next owner.
        """
        ...


class Engine(Protocol):
    """Letters, journals, answers and ownership, behind one `async with` for each process.

    All of it is durable when the call returns, as far as the engine is durable at all. An
    exception or a cancellation leaves it open whether something was kept; what has an id may be
    sent again.
    """

    @property
    def name(self) -> str:
        """What it was opened with, for people, without secrets."""
        ...

    @property
    def digest_key(self) -> bytes:
        """The key of the digests that stand in approvals; the same in each process."""
        ...

    @property
    def blobs(self) -> Blobs | None:
        """Where agents keep large data so that each process finds them."""
        ...

    def now(self) -> float:
        """Seconds since the epoch, by the clock that deadlines and due times are measured with."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...

    # -- letters ---------------------------------------------------------------------------------

    async def send(self, *letters: Letter) -> None:
        """Put letters into mailboxes, all or none. One whose id was taken in before is ignored,
        also when it is done since, as long as senders may reasonably try again (an hour).

        Raises:
            MailboxFull: a mailbox has no room; control letters and those that are not due yet
                always find room.
            CommitFailed: they could not be kept.
        """
        ...

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        """The answer to a letter, once there is one; with `final` one that is.

        Answers are kept for a day at least, so that one may ask again after a restart.

        Raises:
            AskTimeout: there was none in time.
        """
        ...

    async def withdraw(self, letter_id: str) -> bool:
        """Take back a letter that was not handed out yet. False if it was, or is not there."""
        ...

    # -- addresses -------------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """Keep what belongs together, without owning the address: the journal alone decides.

        Raises:
            JournalConflict: the journal holds another number of records than expected.
            MailboxFull: as `send`; CommitFailed: it could not be kept. Nothing was kept.
        """
        ...

    async def records(self, address: Address, start: int = 0) -> Sequence[Record]:
        """The journal of an address from record number `start` on.

        Raises:
            JournalDamaged: names the record that cannot be read, or that is missing.
        """
        ...

    async def arguments(self, address: Address) -> Mapping[str, Any] | None:
        """The JSON arguments with which an address was spawned; None if it never was."""
        ...

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> bool:
        """Keep the arguments of an address. False, and nothing changes, if it has some already."""
        ...

    async def actors(
        self, kind: str | None = None, *, after: Address | None = None, limit: int = 1_000
    ) -> Sequence[ActorEntry]:
        """The addresses there are, sorted by their text, from behind `after` on."""
        ...

    def worker(
        self, kinds: Sequence[str], *, on_lost: Callable[[Callable[[Address], bool]], None]
    ) -> WorkerContext:
        """Take part in the work for these kinds of actors: `async with engine.worker(...)`.

        `on_lost` is called in the event loop with a test for the addresses that this worker does
        not own any more. Leaving the block releases.
        """
        ...

    async def workers(self) -> Sequence[WorkerEntry]:
        """Who takes part now and whose lease holds, sorted by name."""
        ...

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        """Have `subscribers` name an address, after those that are there."""
        ...

    async def unsubscribe(self, topic: str, address: Address) -> None: ...

    async def subscribers(self, topic: str) -> Sequence[Address]:
        """Who subscribed to a topic, in that order."""
        ...

    # -- dead letters ----------------------------------------------------------------------------

    async def bury(self, letter: Letter, reason: str, error: str | None = None) -> None:
        """Move a letter from its mailbox to the dead ones, in one step. Twice is once."""
        ...

    async def dead(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadEntry]:
        """Dead letters, oldest first, with numbers above `after`."""
        ...

    async def revive(self, number: int) -> bool:
        """Send a dead letter again, under a new id and without attempts. False if there is none
        of this number.
        """
        ...

    async def drop(self, number: int) -> bool:
        """Forget a dead letter for good. False if there is none of this number."""
        ...


class WorkerContext(Protocol):
    """What `Engine.worker` gives: enter it to take part."""

    async def __aenter__(self) -> Worker: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None: ...
