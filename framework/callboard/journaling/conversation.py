"""One agent's journal and its fold: the only place where records are written.

Every record goes through the `_committing` layers, into the journal, and only then into the
state, so that live state and replayed state are the same (`commit` tells the exception).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf
from threading import get_ident
from time import monotonic
from typing import NamedTuple, Protocol, TypeVar

import anyio
from anyio.lowlevel import current_token

from callboard.errors import CommitFailed, JournalConflict
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.journaling.records import Activated, ApprovalResolved, Observed, Record
from callboard.journaling.transcript import State, fold
from callboard.loops import DONE, clock_of, running_loop
from callboard.model import Delta

TAKEN_OVER = (
    "another process has taken this agent over, or another agent has the same address; what it "
    "wrote is read back with the next run"
)

R = TypeVar("R", bound=Record | Delta)
Build = Callable[[State], Sequence[Record]]
AtOnce = Callable[[Sequence[Record], int], bool]  # False: it takes waiting, so nothing was written


class Layers(Protocol):
    """All `_committing` layers as one function; raises if one breaks the law."""

    def __call__(self, record: R, /) -> R: ...


class _Layered(NamedTuple):
    """Records that have been through the layers, behind so many others and with so many riders."""

    seq: int
    riders: int
    records: Sequence[Record]

    def fits(self, state: State, riders: int) -> bool:
        """Whether nothing came between, so that they may be written as they are."""
        return (self.seq, self.riders) == (state.seq, riders)


class Conversation:
    """Writes records and holds the state they make.

    `riders` are records that need not be durable at once: they are written with the next commit,
    in front of it. The first of them may be in the state already (`with_next`), which then is
    ahead of the journal; all others come into it with their commit. A commit that fails breaks
    the conversation: nothing more is written until `reopen` has read the journal back. `number`
    is the place that the record which goes through the layers gets in the journal, from 0.
    """

    __slots__ = (
        "_ahead",
        "_at_once",
        "_broken",
        "_journal",
        "_lock",
        "_lock_loop",
        "_mark",
        "_now",
        "_otherwise",
        "_riders",
        "_riding",
        "_stale",
        "_unread",
        "clock",
        "layers",
        "number",
        "state",
        "thread",
    )

    def __init__(self, journal: Journal, *, layers: Layers | None) -> None:
        self._journal = journal
        self.layers = layers
        self._now = journal if isinstance(journal, InMemoryJournal) else None
        self._at_once: AtOnce | None = getattr(journal, "append_at_once", None)
        self._riders: list[Record] = []
        self._ahead = 0  # how many of them are in the state
        self._riding = 0  # how many of them are in the append that is on its way
        self._lock: anyio.Lock | None = None
        self._lock_loop: object = None
        self._broken = False
        self._otherwise: JournalConflict | None = None  # what it is if not only answers came
        self.clock = monotonic
        self._mark = 0.0
        self.thread = 0  # in which a run is driven
        self.number = 0
        self._stale = self._unread = self._now is None
        self.state = fold(self._now.records) if self._now is not None else State()

    @property
    def broken(self) -> bool:
        """Whether a commit failed and nothing more may be written."""
        return self._broken

    @property
    def is_current(self) -> bool:
        """Whether the state is what the journal says, so that nothing has to be read back."""
        return not (self._stale or self._broken)

    @property
    def is_quiet(self) -> bool:
        """Whether no append is on its way."""
        return self._lock is None or not self._lock.locked()

    @property
    def is_in_memory(self) -> bool:
        """Whether a commit costs nothing but its fold."""
        return self._now is not None

    @property
    def is_ahead(self) -> bool:
        """Whether the state holds records that a crash would forget."""
        return self._ahead > 0

    @property
    def _written(self) -> int:
        """How many records of the state the journal holds."""
        return self.state.seq - self._ahead

    def start_clock(self) -> None:
        """A run goes on: its active time counts from here, on the event loop's clock."""
        loop = running_loop()
        self.clock = anyio.current_time if loop is None else clock_of(loop)
        self._mark = self.clock()
        self.thread = get_ident()

    def since_lap(self) -> float:
        """The active seconds that no record holds yet."""
        return self.clock() - self._mark

    def lap(self) -> float:
        """The active seconds since the last lap: overlapping calls do not add up."""
        now = self.clock()
        lap, self._mark = now - self._mark, now
        return lap

    def ride(self, record: Record) -> None:
        """Write this record with the next commit."""
        self._riders.append(record)

    def look_again(self) -> None:
        """Have the next `reopen` read the answers of humans in other processes. It fails if
        somebody wrote anything else, for then the agent was taken over.
        """
        if self._now is None and self.is_quiet:
            self._expect_answers(JournalConflict(TAKEN_OVER))

    def _expect_answers(self, otherwise: JournalConflict) -> None:
        """Read the journal before anything else, and fail so if it holds more than answers."""
        if self.is_current:
            self._stale, self._riding, self._otherwise = True, 0, otherwise

    async def reopen(self) -> None:
        """Read the state back where a commit failed, or where the journal was never read."""
        if not self._broken and not self._stale:
            return
        async with self._locked():  # behind an append that is on its way
            if self._broken or self._unread:
                self._riders.clear()
                self._ahead = 0
                self.state = fold(await self._journal.read())
                self._broken = self._stale = False
                if self._unread and self.state.seq:  # whoever wrote it may write no more
                    await self._append(self._through_layers((Activated(self.state.epoch + 1),)))
                self._unread = False
            else:
                await self._catch_up()

    def commit(self, *records: Record, with_next: bool = False) -> Awaitable[None]:
        """Write the riders and these records as one commit, and apply them. Await it.

        `with_next` applies them now, and leaves it to the next commit to write them in front of
        its own: in a file that saves an append, which waits for the disk. Only where nothing waits
        and nothing is told before that commit, and no human can answer: a crash in between is
        then as one before these records were made.

        Raises:
            CommitFailed: nothing was applied, and nothing more is written until `reopen`.
        """
        journal = self._now
        if journal is None:
            return self._commit_outside(records, with_next=with_next)
        written: Sequence[Record] = records
        if self.layers is not None or self._broken:
            written = self._through_layers(records)
        elif self._riders:
            written = (*self._riders, *records)
        try:
            journal.append_now(written, self.state.seq)
        except CommitFailed:
            self._broken = True
            raise
        self._riders.clear()
        self.state.apply(written)
        return DONE

    def _commit_outside(self, records: Sequence[Record], *, with_next: bool) -> Awaitable[None]:
        """Commit to a journal that is not in memory."""
        if with_next and self._may_be_ahead():
            self._go_ahead(records)
            return DONE
        layered: _Layered | None = None
        if self._at_once is not None and self._takes_no_waiting():
            written = self._through_layers(records)
            if self._written_at_once(written):
                return DONE
            layered = _Layered(self.state.seq, len(self._riders), written)
        return self._commit_records(records, layered)

    def _may_be_ahead(self) -> bool:
        return self.layers is None and self.is_current

    def _go_ahead(self, records: Sequence[Record]) -> None:
        self._riders.extend(records)
        self.state.apply(self._riders[self._ahead :])
        self._ahead = len(self._riders)

    def _takes_no_waiting(self) -> bool:
        """Whether the layers may have the records now. Not while a human may answer elsewhere:
        that moves the places which layers are told.
        """
        if self._stale or self._broken or (self._lock is not None and self._lock.locked()):
            return False
        return self.layers is None or not (self.state.approvals and self.state.pending)

    def _written_at_once(self, written: Sequence[Record]) -> bool:
        """Write where that takes no waiting: a scope, a lock and coroutines cost 12 us a commit."""
        assert self._at_once is not None
        self._stale = True
        try:
            done = self._at_once(written, self._written)
        except JournalConflict as conflict:  # a human may have answered in another process
            self._stale = False
            self._expect_answers(conflict)
            return False
        except Exception as error:
            failed = self._failed(error)
            if failed is error:
                raise
            raise failed from error
        self._stale = False
        if done:
            self._riders.clear()
            self._apply(written)
        return done

    def _apply(self, written: Sequence[Record]) -> None:
        """Fold in what was written, but for what the state holds already."""
        self.state.apply(written[self._ahead :] if self._ahead else written)
        self._ahead = 0

    def _failed(self, error: Exception) -> CommitFailed:
        self._broken = True
        if isinstance(error, CommitFailed):
            return error
        return CommitFailed(f"the journal could not be written: {error!r}")

    async def _commit_records(self, records: Sequence[Record], layered: _Layered | None) -> None:
        await self._commit_waiting(lambda _: records, layered)

    async def commit_built(self, build: Build) -> bool:
        """Write what `build` makes of the state that it is appended to; nothing if it is empty.

        For control records (approve, interrupt, close), whose meaning depends on that state.
        """
        if self._now is None:
            return await self._commit_waiting(build)
        records = build(self.state)
        if records:
            await self.commit(*records)
        return bool(records)

    async def _commit_waiting(self, build: Build, layered: _Layered | None = None) -> bool:
        # A native asyncio cancel pierces the shield; then `_stale` makes the next commit read
        # the journal back before it writes. What is written may be the intent of an effect.
        written = False
        with anyio.CancelScope(shield=True):
            async with self._locked():
                if self.state.approvals and self.state.pending:
                    self._expect_answers(JournalConflict(TAKEN_OVER))
                await self._catch_up()
                records = build(self.state)
                written = bool(records)
                if written or self._riders:
                    self._riding = len(self._riders)
                    if layered is not None and layered.fits(self.state, self._riding):
                        await self._append(layered.records)
                    else:
                        await self._append(self._through_layers(records))
        if anyio.current_effective_deadline() == -inf:
            await anyio.sleep_forever()  # a cancel that came meanwhile strikes before the deed
        return written

    def _locked(self) -> anyio.Lock:
        """The write lock of the event loop that runs now."""
        loop = current_token().native_token
        if self._lock is None or self._lock_loop is not loop:
            self._lock, self._lock_loop = anyio.Lock(fast_acquire=True), loop
        return self._lock

    async def _append(self, written: Sequence[Record]) -> None:
        self._stale = True
        try:
            await self._journal.append(written, self._written)
        except Exception as error:
            failed = self._failed(error)
            if failed is error:
                raise
            raise failed from error
        self._stale = False
        del self._riders[: self._riding]  # others may have come while it was written
        self._apply(written)

    async def _catch_up(self) -> None:
        """Apply what the journal holds beyond the state, after an append of unknown end."""
        if self._broken:
            raise CommitFailed("a commit failed before; the journal is read back by the next run")
        if self._stale:
            written = await self._journal.read(self._written)
            otherwise, self._otherwise = self._otherwise, None
            if otherwise is not None and (self._ahead or not all(map(_is_answer, written))):
                raise self._failed(otherwise)
            if written:  # the append was whole: its riders are in it
                del self._riders[: self._riding]
                self._apply(written)
            self._stale = False

    def _through_layers(self, records: Sequence[Record]) -> Sequence[Record]:
        if self._broken:
            raise CommitFailed("a commit failed before; the journal is read back by the next run")
        if self._riders:
            records = (*self._riders, *records)
        if self.layers is None:
            return records
        written: list[Record] = []
        for number, record in enumerate(records, self.state.seq):
            self.number = number
            written.append(self.committed(record))
        return written

    def committed(self, record: R) -> R:
        """The record or delta after all `_committing` layers.

        Raises:
            CommitFailed: a layer failed, which breaks the conversation.
        """
        if self.layers is None:
            return record
        try:
            return self.layers(record)
        except Exception as error:
            self._broken = True
            if isinstance(error, CommitFailed):
                raise
            raise CommitFailed(f"a layer could not commit a record: {error!r}") from error


def _is_answer(record: Record) -> bool:
    """Whether a human's answer writes it, who need not be in the agent's own process."""
    return isinstance(record, (ApprovalResolved, Observed))
