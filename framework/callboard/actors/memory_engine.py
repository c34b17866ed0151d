"""The engine port in the memory of one process. It outlives the systems that use it.

For tests of what happens when a process dies: drop a system, start another one over the same
engine. `ActorSystem()` without an engine is quicker, and keeps letters out of any store.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import (
    MAILBOX_BOUND,
    ActorEntry,
    Commit,
    DeadEntry,
    Letter,
    Standing,
    StoredAnswer,
    WorkerEntry,
)
from callboard.actors.memory_worker import MemoryWorkers, WorkerTerm
from callboard.errors import AskTimeout, ConfigurationError, JournalConflict, MailboxFull
from callboard.journaling.blobs import InMemoryBlobs
from callboard.journaling.records import Record
from callboard.json_text import Json

LEASE_S = 10.0


class Stored:
    """What is kept of one address."""

    __slots__ = ("arguments", "changed_at", "inbox", "records", "standing")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.inbox: list[tuple[int, Letter]] = []  # in the order of sending
        self.arguments: Mapping[str, Any] | None = None
        self.standing = Standing.IDLE
        self.changed_at = 0.0


class MemoryEngine:
    """All of `Engine`, for as long as this object lives."""

    def __init__(self, *, mailbox_bound: int = MAILBOX_BOUND, lease_s: float = LEASE_S) -> None:
        self.name = "memory"
        self.digest_key = secrets.token_bytes(32)
        self.blobs = InMemoryBlobs()
        self._bound = mailbox_bound
        self._addresses: dict[Address, Stored] = {}
        self._seen: set[str] = set()
        self._answers: dict[str, StoredAnswer] = {}
        self._topics: dict[str, dict[Address, None]] = {}
        self._dead: dict[int, DeadEntry] = {}
        self._numbers = 0
        self._epoch = self._clock = 0.0
        self._changed: anyio.Event | None = None  # made by whoever waits for an answer
        self._workers = MemoryWorkers(self, lease_s=lease_s)

    def now(self) -> float:
        """As `Engine.now`: goes on with the event loop's clock, virtual ones too."""
        clock = anyio.current_time()
        if clock < self._clock:  # another event loop, whose clock begins anew
            self._epoch, self._clock = self._epoch + self._clock, clock
        if self._epoch == 0.0:
            self._epoch = time.time() - clock
        self._clock = clock
        return self._epoch + clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Everything stays, for the next one who enters."""

    # -- letters ---------------------------------------------------------------------------------

    async def send(self, *letters: Letter) -> None:
        """As `Engine.send`."""
        self._put(self._new(letters))

    def _new(self, letters: Sequence[Letter]) -> list[Letter]:
        """Those that were not taken in before.

        Raises:
            MailboxFull: one of them finds no room.
        """
        copies = [replace(one, body=_copied(one.body)) for one in letters]
        new = {one.id: one for one in reversed(copies) if one.id not in self._seen}
        found = [one for one in copies if new.get(one.id) is one]
        for letter in found:
            beside = sum([one.to == letter.to and _takes_room(one) for one in found])
            waiting = sum([_takes_room(one) for _, one in self.stored(letter.to).inbox])
            if _takes_room(letter) and waiting + beside > self._bound:
                raise MailboxFull(f"the mailbox of {letter.to} is full: {waiting} letters")
        return found

    def _put(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            self._numbers += 1
            self._seen.add(letter.id)
            self.stored(letter.to).inbox.append((self._numbers, letter))
        if letters:
            self._workers.wake()

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        """As `Engine.answer`."""
        with anyio.move_on_after(timeout_s):
            while True:
                found = self._answers.get(letter_id)
                if found is not None and (found.final or not final):
                    return found
                if self._changed is None or self._changed.is_set():
                    self._changed = anyio.Event()
                await self._changed.wait()
        raise AskTimeout(f"there was no answer to {letter_id!r} within {timeout_s:.3g} s")

    async def withdraw(self, letter_id: str) -> bool:
        """As `Engine.withdraw`."""
        for stored in self._addresses.values():
            for item in stored.inbox:
                if item[1].id == letter_id and not self._workers.has_in_hand(letter_id):
                    stored.inbox.remove(item)
                    return True
        return False

    # -- addresses -------------------------------------------------------------------------------

    def stored(self, address: Address) -> Stored:
        """What is kept of an address; made if there was nothing."""
        found = self._addresses.get(address)
        if found is None:
            found = self._addresses[address] = Stored()
        return found

    @property
    def addresses(self) -> Mapping[Address, Stored]:
        return self._addresses

    async def commit(self, commit: Commit) -> None:
        """As `Engine.commit`."""
        self.commit_now(commit)

    def commit_now(self, commit: Commit) -> None:
        stored = self.stored(commit.address)
        if commit.records and len(stored.records) != commit.expected:
            raise JournalConflict(
                f"the journal of {commit.address} holds {len(stored.records)} records and not"
                f" {commit.expected}: another process has taken this address over"
            )
        sends = self._new(commit.sends)
        answers = [replace(one, body=_copied(one.body)) for one in commit.answers]
        stored.records.extend(commit.records)
        done = frozenset(commit.done)
        stored.inbox = [item for item in stored.inbox if item[1].id not in done]
        self._workers.done(done)
        if commit.standing is not None:
            stored.standing = commit.standing
        stored.changed_at = self.now()
        self._put(sends)
        self._keep_answers(answers)

    def _keep_answers(self, answers: Sequence[StoredAnswer]) -> None:
        for answer in answers:
            self._answers[answer.letter_id] = answer
        if answers and self._changed is not None:
            self._changed.set()
            self._changed = None

    async def records(self, address: Address, start: int = 0) -> Sequence[Record]:
        """As `Engine.records`."""
        found = self._addresses.get(address)
        return [] if found is None else found.records[start:]

    async def arguments(self, address: Address) -> Mapping[str, Any] | None:
        """As `Engine.arguments`."""
        found = self._addresses.get(address)
        return None if found is None else found.arguments

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> bool:
        """As `Engine.spawn`."""
        stored = self.stored(address)
        if stored.arguments is not None:
            return False
        stored.arguments = _copied(arguments)
        return True

    async def actors(
        self, kind: str | None = None, *, after: Address | None = None, limit: int = 1_000
    ) -> Sequence[ActorEntry]:
        """As `Engine.actors`."""
        start = "" if after is None else str(after)
        found = [one for one in self._addresses if kind in (None, one.type) and str(one) > start]
        return [self._entry(one) for one in sorted(found, key=str)[:limit]]

    def _entry(self, address: Address) -> ActorEntry:
        stored = self._addresses[address]
        return ActorEntry(
            address,
            stored.standing,
            len(stored.records),
            len(stored.inbox),
            stored.changed_at,
            self._workers.owner(address),
        )

    def worker(
        self,
        kinds: Sequence[str] = (),
        *,
        on_lost: Callable[[Callable[[Address], bool]], None],
    ) -> WorkerTerm:
        """As `Engine.worker`."""
        return self._workers.term(kinds, on_lost)

    async def workers(self) -> Sequence[WorkerEntry]:
        """As `Engine.workers`."""
        return self._workers.entries()

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        """As `Engine.subscribe`."""
        self._topics.setdefault(topic, {})[address] = None

    async def unsubscribe(self, topic: str, address: Address) -> None:
        """As `Engine.unsubscribe`."""
        self._topics.get(topic, {}).pop(address, None)

    async def subscribers(self, topic: str) -> Sequence[Address]:
        """As `Engine.subscribers`."""
        return tuple(self._topics.get(topic, ()))

    # -- dead letters ----------------------------------------------------------------------------

    async def bury(self, letter: Letter, reason: str, error: str | None = None) -> None:
        """As `Engine.bury`."""
        stored = self.stored(letter.to)
        stored.inbox = [item for item in stored.inbox if item[1].id != letter.id]
        self._workers.done((letter.id,))
        if any([one.letter.id == letter.id for one in self._dead.values()]):
            return
        self._numbers += 1
        kept = replace(letter, body=_copied(letter.body))
        self._dead[self._numbers] = DeadEntry(self._numbers, kept, reason, error, self.now())

    async def dead(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadEntry]:
        """As `Engine.dead`."""
        return [one for number, one in self._dead.items() if number > after][:limit]

    async def revive(self, number: int) -> bool:
        """As `Engine.revive`."""
        found = self._dead.get(number)
        if found is None:
            return False
        letter = replace(
            found.letter,
            id=f"{found.letter.id}:revived:{number}",
            asked=False,
            deadline=None,
            due=None,
            attempts=0,
        )
        self._put(self._new((letter,)))
        del self._dead[number]
        return True

    async def drop(self, number: int) -> bool:
        """As `Engine.drop`."""
        return self._dead.pop(number, None) is not None


def _copied(value: Json) -> Json:
    """The value as JSON would bring it back, shared with nobody.

    Raises:
        ConfigurationError: it is no JSON.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"an engine keeps JSON, and {value!r:.100} is none: {error}"
        ) from None


def _takes_room(letter: Letter) -> bool:
    return not letter.control and letter.due is None
