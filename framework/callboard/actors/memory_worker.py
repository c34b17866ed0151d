"""The workers of a MemoryEngine: leases, the letters in hand, and who owns what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from math import inf
from types import TracebackType
from typing import Protocol

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing, WorkerEntry
from callboard.actors.shards import SHARDS, owner_of, shard_of
from callboard.errors import Fenced
from callboard.messages import new_id

Shard = tuple[str, int]
OnLost = Callable[[Callable[[Address], bool]], None]


class Inbox(Protocol):
    """One address as the workers see it."""

    inbox: list[tuple[int, Letter]]
    standing: Standing


class Store(Protocol):
    """The engine as its workers see it."""

    @property
    def addresses(self) -> Mapping[Address, Inbox]: ...
    def commit_now(self, commit: Commit) -> None: ...
    def now(self) -> float: ...


class MemoryWorkers:
    """All workers of one engine."""

    def __init__(self, store: Store, *, lease_s: float) -> None:
        self.store = store
        self.lease_s = lease_s
        self.live: dict[str, MemoryWorker] = {}
        self.owners: dict[Shard, MemoryWorker] = {}
        self._left_in_hand: dict[Address, None] = {}  # of workers that died

    def term(self, kinds: Sequence[str], on_lost: OnLost) -> WorkerTerm:
        return WorkerTerm(MemoryWorker(self, kinds, on_lost))

    def owner(self, address: Address) -> str | None:
        worker = self.owners.get((address.type, shard_of(address)))
        return None if worker is None or worker.is_late() else worker.name

    def entries(self) -> list[WorkerEntry]:
        live = [worker for _, worker in sorted(self.live.items()) if not worker.is_late()]
        return [
            WorkerEntry(
                worker.name,
                {
                    kind: [n for n in range(SHARDS) if self.owners.get((kind, n)) is worker]
                    for kind in worker.kinds
                },
            )
            for worker in live
        ]

    def has_in_hand(self, letter_id: str) -> bool:
        return any([letter_id in worker.in_hand for worker in self.live.values()])

    def done(self, letter_ids: Iterable[str]) -> None:
        for worker in self.live.values():
            for letter_id in letter_ids:
                worker.in_hand.pop(letter_id, None)

    def wake(self) -> None:
        for worker in self.live.values():
            worker.wake()

    def share_out(self) -> None:
        """Give each shard to the one that should own it, and drop those whose lease ran out."""
        for worker in [one for one in self.live.values() if one.is_late()]:
            self.leave(worker, has_died=True)
        kinds = dict.fromkeys([kind for worker in self.live.values() for kind in worker.kinds])
        for kind in kinds:
            names = [name for name, worker in self.live.items() if kind in worker.kinds]
            for shard in range(SHARDS):
                self._give((kind, shard), owner_of(kind, shard, names))
        self.wake()

    def _give(self, shard: Shard, name: str | None) -> None:
        holder = self.owners.get(shard)
        if name is None or (holder is not None and holder.name == name):
            return
        taker = self.live[name]
        if holder is not None:
            if self._is_busy(shard):
                return  # it is given up when nothing of it is in hand
            holder.lose({shard})
        self.owners[shard] = taker
        for address, stored in self.store.addresses.items():
            if (address.type, shard_of(address)) != shard:
                continue
            if stored.standing is Standing.RUNNING:
                body = {"go_on": True}
                taker.extra.append(Letter(new_id("take"), address, body, control=True))
            if address in self._left_in_hand:
                del self._left_in_hand[address]
                _suspect_first(stored)

    def _is_busy(self, shard: Shard) -> bool:
        """Whether its owner has letters of it in hand, or runs."""
        running = [
            address
            for address, stored in self.store.addresses.items()
            if stored.standing is Standing.RUNNING
        ]
        in_hand = [one for worker in self.live.values() for one in worker.in_hand.values()]
        return any([(one.type, shard_of(one)) == shard for one in (*running, *in_hand)])

    def leave(self, worker: MemoryWorker, *, has_died: bool) -> None:
        """A worker that gave everything back, or whose lease ran out."""
        if self.live.pop(worker.name, None) is None:
            return
        if has_died:
            self._left_in_hand.update(dict.fromkeys(worker.in_hand.values()))
        lost = {shard for shard, owner in self.owners.items() if owner is worker}
        for shard in lost:
            del self.owners[shard]
        worker.in_hand.clear()
        if has_died:
            worker.lose(lost)
        self.share_out()


class MemoryWorker:
    """As `engine.Worker`."""

    def __init__(self, workers: MemoryWorkers, kinds: Sequence[str], on_lost: OnLost) -> None:
        self.name = new_id("worker")
        self.kinds = list(kinds)
        self.in_hand: dict[str, Address] = {}
        self.extra: list[Letter] = []  # what no mailbox keeps
        self._workers = workers
        self._on_lost = on_lost
        self._is_paused = False
        self._until = -inf
        self._changed = anyio.Event()

    # -- the lease -------------------------------------------------------------------------------

    def is_late(self) -> bool:
        return anyio.current_time() >= self._until

    def pause(self) -> None:
        """For tests: renew nothing more, as if the process had been stopped."""
        self._is_paused = True

    def unpause(self) -> None:
        """For tests: the process goes on after a pause."""
        self._is_paused = False

    def renew(self) -> None:
        self._until = anyio.current_time() + self._workers.lease_s

    async def keep_renewing(self) -> None:
        """Until cancelled. One that was late has lost everything, and takes part anew."""
        while True:
            if not self._is_paused:
                self._take_part()
            await anyio.sleep(self._workers.lease_s / 4)

    def _take_part(self) -> None:
        if self.is_late():
            self._workers.leave(self, has_died=True)
        self.renew()
        self._workers.live[self.name] = self
        self._workers.share_out()

    def lose(self, shards: set[Shard]) -> None:
        for letter_id, address in tuple(self.in_hand.items()):
            if (address.type, shard_of(address)) in shards:
                del self.in_hand[letter_id]
        self._on_lost(lambda address: (address.type, shard_of(address)) in shards)

    def wake(self) -> None:
        self._changed.set()

    # -- as `engine.Worker` ----------------------------------------------------------------------

    async def next(self) -> Sequence[Letter]:
        while True:
            self._changed = anyio.Event()
            found, next_due = self._found()
            if found:
                return found
            with anyio.move_on_after(next_due - self._workers.store.now()):
                await self._changed.wait()

    def _found(self) -> tuple[list[Letter], float]:
        """What there is to hand out, and when the next letter is due."""
        found = [one for one in self.extra if self.owns(one.to)]
        self.extra.clear()
        now, next_due = self._workers.store.now(), inf
        for address, stored in self._workers.store.addresses.items():
            if not stored.inbox or not self.owns(address):
                continue
            for _, letter in sorted(stored.inbox, key=lambda one: not one[1].control):
                if letter.id in self.in_hand:
                    continue
                if letter.due is not None and letter.due > now:
                    next_due = min(next_due, letter.due)
                    continue
                self.in_hand[letter.id] = address
                found.append(letter)
        return found, next_due

    def owns(self, address: Address) -> bool:
        shard = address.type, shard_of(address)
        return not self.is_late() and self._workers.owners.get(shard) is self

    async def commit(self, commit: Commit) -> None:
        self._check(commit.address)
        self._workers.store.commit_now(commit)

    async def count(self, letter: Letter, error: str) -> None:
        self._check(letter.to)
        stored = self._workers.store.addresses[letter.to]
        stored.inbox = [
            (n, replace(one, attempts=one.attempts + 1) if one.id == letter.id else one)
            for n, one in stored.inbox
        ]

    def _check(self, address: Address) -> None:
        if not self.owns(address):
            raise Fenced(f"{address} is not this worker's (any more)")

    async def add(self, kind: str) -> None:
        if kind not in self.kinds:
            self.kinds.append(kind)
            self._workers.share_out()

    async def release(self) -> None:
        self._is_paused = True  # the renewing may be about to begin
        self.extra.clear()
        self._workers.leave(self, has_died=False)


class WorkerTerm:
    """The time in which a worker takes part: renews its lease, and releases at the end."""

    def __init__(self, worker: MemoryWorker) -> None:
        self._worker = worker
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> MemoryWorker:
        self._worker.renew()
        group = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(group.cancel_scope.cancel)
        self._worker._workers.live[self._worker.name] = self._worker
        self._worker._workers.share_out()
        group.start_soon(self._worker.keep_renewing)
        return self._worker

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        await self._worker.release()
        await self.abandon()
        return None

    async def abandon(self) -> None:
        """End without a release, as a process that is killed (tests do)."""
        await self._stack.aclose()  # without an error, which the group would wrap


def _suspect_first(stored: Inbox) -> None:
    """The first letter may have been in hand when its worker died."""
    for place, (n, letter) in enumerate(stored.inbox):
        if not letter.control:
            stored.inbox[place] = n, replace(letter, suspect=True)
            return
