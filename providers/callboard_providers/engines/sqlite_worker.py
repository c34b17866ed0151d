"""One process's share of an engine's file: its lease, and the letters that it hands out.

Letters that this process sends to addresses of its own are handed out as they are written. The
file is read only for what other processes wrote, for what did not fit into the window of an
address, and when addresses are taken over.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import Any, Protocol

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing
from callboard.actors.shards import shard_of
from callboard.errors import CommitFailed
from callboard.messages import new_id
from callboard_providers.engines import sqlite_shares as shares
from callboard_providers.engines.sqlite_commits import Written
from callboard_providers.engines.sqlite_nodes import Nodes
from callboard_providers.engines.sqlite_shares import OnLost, Shard
from callboard_providers.engines.sqlite_writer import Operation, T

WINDOW = 64  # letters of one address that are in hand at once
SCANNED = 1_000  # rows that are read at a time
REFILLED = 50  # addresses whose letters are read at a time


class File(Protocol):
    """The engine as its workers see it."""

    lease_s: float
    nodes: Nodes

    async def write(
        self, operation: Operation[T], *, after: Callable[[T], None] | None = None
    ) -> T: ...
    async def read(self, query: Callable[..., T], *values: Any) -> T: ...
    async def keep(self, commit: Commit, *, owner: str | None) -> None: ...


class SqliteWorker:
    """As `engine.Worker`."""

    def __init__(self, file: File, kinds: Sequence[str], on_lost: OnLost) -> None:
        self.name = new_id("worker")
        self._file = file
        self._kinds = list(kinds)
        self._on_lost = on_lost
        self._is_paused = False
        self._owned: set[Shard] = set()
        self._leaving: set[Shard] = set()  # given back as soon as nobody of them is at work
        self._called: set[Address] = set()  # of those: somebody who is at work waits for them
        self._until = 0.0
        self._queue: deque[Letter] = deque()
        self._in_hand: dict[str, Letter] = {}
        self._counts: dict[Address, int] = {}  # of what is in hand
        self._behind: dict[Address, bool] = {}  # more of theirs is in the file; since it was read
        self._running: set[Address] = set()
        self._timers: list[tuple[float, int, Letter]] = []
        self._timed: set[str] = set()  # the timers that still count
        self._last = -1  # the number up to which letters were looked at
        self._must_scan = False
        self._changed = anyio.Event()
        self._reading = False
        self._forgotten: set[str] = set()  # while the file is read
        self._renewing = anyio.Lock(fast_acquire=True)
        self._hurried = anyio.Event()

    # -- what was written ------------------------------------------------------------------------

    def sent(self, n: int, letter: Letter) -> None:
        """This process has written a letter."""
        if n == self._last + 1 and not self._must_scan:
            self._last = n
            self._place(n, letter)
        elif n > self._last:
            self.look()

    def look(self) -> None:
        """Another process may have written letters."""
        self._must_scan = True
        self._changed.set()

    def kept(self, written: Written) -> None:
        """This process has written a commit."""
        for letter_id in written.done:
            self.forget(letter_id)
        if written.standing is Standing.RUNNING and written.address is not None:
            self._running.add(written.address)
        elif written.standing is not None and written.address is not None:
            self._running.discard(written.address)

    def has_in_hand(self, letter_id: str) -> bool:
        return letter_id in self._in_hand

    def forget(self, letter_id: str) -> None:
        """A letter is done."""
        if self._reading:
            self._forgotten.add(letter_id)
        self._timed.discard(letter_id)
        letter = self._in_hand.pop(letter_id, None)
        if letter is None:
            return
        address = letter.to
        left = self._counts[address] = self._counts[address] - 1
        if not left:
            del self._counts[address]
        if address in self._behind and left <= WINDOW // 2:
            self._changed.set()

    def _place(self, n: int, letter: Letter) -> None:
        """Hand a letter out, keep it for later, or leave it in the file."""
        shard = _shard(letter.to)
        if letter.id in self._in_hand or shard not in self._owned:
            return
        if letter.id in self._forgotten:
            return  # it was read before it was done
        if letter.due is not None and letter.due > time.time():
            self._time(n, letter)
        elif letter.control or self._has_room(letter, shard):
            self._hand(letter)
        else:
            self._behind[letter.to] = True

    def _time(self, n: int, letter: Letter) -> None:
        """Keep a letter until it is due."""
        if letter.id not in self._timed:
            self._timed.add(letter.id)
            heappush(self._timers, (letter.due or 0.0, n, letter))
            self._changed.set()

    def _has_room(self, letter: Letter, shard: Shard) -> bool:
        """Whether a letter may be handed out now, and is not left in the file for later."""
        address = letter.to
        if letter.chain and shard in self._leaving:
            self._called.add(address)  # somebody at work here may wait for it
            self._changed.set()
        is_next = address not in self._behind and self._counts.get(address, 0) < WINDOW
        return is_next and self._serves(address, shard)

    def _hand(self, letter: Letter) -> None:
        self._in_hand[letter.id] = letter
        self._counts[letter.to] = self._counts.get(letter.to, 0) + 1
        self._queue.append(letter)
        self._changed.set()

    def _serves(self, address: Address, shard: Shard) -> bool:
        """Whether new letters are handed out: where a shard leaves, only to who is waited for."""
        return shard in self._owned and (shard not in self._leaving or address in self._called)

    # -- as `engine.Worker` ----------------------------------------------------------------------

    async def next(self) -> Sequence[Letter]:
        while True:
            self._changed = anyio.Event()
            self._take_due()
            await self._scan()
            await self._refill()
            found = [letter for letter in self._queue if self.owns(letter.to)]
            self._queue.clear()
            if found:
                return found
            due = self._timers[0][0] if self._timers else inf
            with anyio.move_on_after(due - time.time()):
                await self._changed.wait()

    def _take_due(self) -> None:
        now = time.time()
        while self._timers and self._timers[0][0] <= now:
            _, n, letter = heappop(self._timers)
            if letter.id in self._timed:
                self._timed.discard(letter.id)
                self._place(n, letter)

    async def _scan(self) -> None:
        """Look at letters behind the last one that was looked at."""
        while self._must_scan:
            self._must_scan = False
            try:
                rows = await self._read(shares.letters_after, self._last, SCANNED)
            except BaseException:
                self._must_scan = True  # whoever asked for letters gave up, and asks again
                raise
            for n, letter in rows:
                if n > self._last:
                    self._last = n
                    self._place(n, letter)
            self._must_scan = self._must_scan or len(rows) == SCANNED

    async def _read(self, query: Callable[..., T], *values: Any) -> T:
        """Have something read; what is done meanwhile is in `_forgotten` until the next time."""
        self._forgotten.clear()
        self._reading = True
        try:
            return await self._file.read(query, *values)
        finally:
            self._reading = False

    async def _refill(self) -> None:
        """Fill the windows of those whose letters wait in the file, of some at a time.

        Until an address was read, it stays behind. What is sent meanwhile may not be in what is
        read, and is looked for once more.
        """
        wanted = self._to_refill()
        self._behind.update(dict.fromkeys(wanted, False))
        found = await self._read(shares.letters_of, wanted, 3 * WINDOW) if wanted else ()
        for address, rows in zip(wanted, found, strict=True):
            is_more = self._behind.pop(address, False) or len(rows) == 3 * WINDOW
            for n, letter in rows:
                self._place(n, letter)
            if is_more:
                self._behind[address] = True
        if wanted:
            self._changed.set()  # there may be more of them

    def _to_refill(self) -> list[Address]:
        wanted: list[Address] = []
        for address in tuple(self._behind):
            shard = _shard(address)
            if shard not in self._owned:
                self._behind.pop(address, None)
            elif self._counts.get(address, 0) <= WINDOW // 2 and self._serves(address, shard):
                wanted.append(address)
            if len(wanted) == REFILLED:
                break
        return wanted

    def owns(self, address: Address) -> bool:
        return time.time() < self._until and _shard(address) in self._owned

    async def commit(self, commit: Commit) -> None:
        await self._file.keep(commit, owner=self.name)

    async def count(self, letter: Letter, error: str) -> None:
        del error  # the letter has it when it is buried
        await self._file.write(lambda connection: shares.count(connection, letter.id))

    async def add(self, kind: str) -> None:
        if kind not in self._kinds:
            self._kinds.append(kind)
        await self.renew()

    async def release(self) -> None:
        async with self._renewing:
            self._kinds.clear()
            self._owned.clear()
            self._queue.clear()
            try:
                await self._file.write(lambda connection: shares.leave(connection, self.name))
            except CommitFailed:  # the disk is full, say: the others see that the lock is free
                self._file.nodes.drop(self.name)
            else:
                self._file.nodes.let_go(self.name)

    # -- the lease -------------------------------------------------------------------------------

    def pause(self) -> None:
        """For tests: renew nothing more, as if the process had been stopped."""
        self._is_paused = True

    async def keep_renewing(self) -> None:
        """Until cancelled."""
        while True:
            with anyio.move_on_after(self._file.lease_s / 4):
                await self._hurried.wait()
            self._hurried = anyio.Event()
            if self._is_paused:
                return
            try:
                await self.renew()
            except CommitFailed:
                continue  # the file is busy or full: until the lease runs out there is time

    def hurry(self) -> None:
        """Workers came or went, or gave something back: renew now."""
        self._hurried.set()

    async def renew(self) -> None:
        """Renew the lease, take what is free of this worker's share, give back what is not."""
        async with self._renewing:
            if not self._kinds:
                return
            now, lease_s = time.time(), self._file.lease_s
            if now >= self._until:
                self._lose(set(self._owned))  # somebody may have taken all of it meanwhile
            wanted = partial(
                shares.renew,
                name=self.name,
                kinds=tuple(self._kinds),
                until=now + lease_s,
                keep=frozenset(self._owned),
                leaving=self._leaving - self._busy_shards(),
                in_hand=[one.to for one in self._in_hand.values()],
                locks=self._file.nodes,
            )
            await self._file.write(wanted, after=self._renewed)

    def _busy_shards(self) -> set[Shard]:
        """The shards of which somebody is at work here: the file knows who only waits."""
        controls = [one.to for one in self._in_hand.values() if one.control]
        return {_shard(address) for address in (*controls, *self._running)}

    def _renewed(self, change: shares.Change) -> None:
        """Called in the order of the file, so that no letter is missed or seen twice."""
        self._until = change.until
        self._lose(self._owned - change.owned)
        if change.unwanted - self._leaving:
            self.hurry()  # to give back what nobody works on
        self._leaving = set(change.unwanted)
        self._owned = set(change.owned)
        self._called = {one for one in self._called if _shard(one) in self._leaving}
        for address in change.running:
            self._running.add(address)
            self._hand(Letter(new_id("take"), address, {"go_on": True}, control=True))
        for n, letter in change.timers:
            self._place(n, letter)
        for address in change.behind:
            self._behind[address] = True
        if self._last < 0:
            self._last = change.last
        if change.taken or self._behind:
            self._changed.set()

    def _lose(self, shards: set[Shard]) -> None:
        """These are not this worker's any more."""
        if not shards:
            return

        def is_lost(address: Address) -> bool:
            return _shard(address) in shards

        self._owned -= shards
        for letter in [one for one in self._in_hand.values() if is_lost(one.to)]:
            self.forget(letter.id)
        for _, _, letter in self._timers:
            if is_lost(letter.to):
                self._timed.discard(letter.id)
        self._running = {address for address in self._running if not is_lost(address)}
        self._queue = deque([letter for letter in self._queue if not is_lost(letter.to)])
        self._on_lost(is_lost)


def _shard(address: Address) -> Shard:
    return address.type, shard_of(address)
