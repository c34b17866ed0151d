"""One process's share of the work on JetStream."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from heapq import heapify, heappop, heappush
from math import inf
from types import TracebackType
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing
from callboard.actors.shards import shard_of
from callboard.errors import CommitFailed, Fenced, JournalConflict, MailboxFull
from callboard.messages import new_id
from callboard_providers.engines.nats_journal import Journals, Overtaken
from callboard_providers.engines.nats_leases import Lease, Leases
from callboard_providers.engines.nats_line import JetStream, token
from callboard_providers.engines.nats_share import Given, Share
from callboard_providers.engines.nats_subjects import Shard, place

DONE_KEPT = 10_000  # ids of letters that are done and might be delivered again
RELEASE_S = 5.0
OnLost = Callable[[Callable[[Address], bool]], None]


class Home(Protocol):
    """The engine as its workers see it."""

    lease_s: float

    @property
    def stream(self) -> JetStream: ...
    @property
    def journals(self) -> Journals: ...


class NatsWorker:
    """As `engine.Worker`."""

    def __init__(self, home: Home, kinds: Sequence[str], on_lost: OnLost) -> None:
        self.name = new_id("worker")
        self._home = home
        self._kinds = list(kinds)
        self._on_lost = on_lost
        self._is_paused = False
        self._leases = Leases(home.stream, self.name, lease_s=home.lease_s)
        self._shares: dict[Shard, Share] = {}
        self._tasks: TaskGroup | None = None
        self._queue: deque[Letter] = deque()
        self._in_hand: dict[str, Given] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self._running: set[Address] = set()
        self._timers: list[tuple[float, int, Given]] = []
        self._number = 0
        self._committing = Counter[Shard]()  # commits whose letters and answers are not out yet
        self._changed = anyio.Event()
        self._renewing = anyio.Lock()

    # -- letters come ----------------------------------------------------------------------------

    async def given(self, one: Given) -> None:
        """A share was handed a letter by the server."""
        letter = one.letter
        if letter.id in self._done:
            await self._acknowledge(one)  # done, and its acknowledgement was lost
        elif letter.id not in self._in_hand:
            self._in_hand[letter.id] = one
            if letter.due is not None and letter.due > time.time():
                self._number += 1
                heappush(self._timers, (letter.due, self._number, one))
            else:
                self._queue.append(letter)
            self._changed.set()

    def goes_on(self, address: Address) -> None:
        """An address was taken over that was at work."""
        self._running.add(address)
        self._queue.append(Letter(new_id("take"), address, {"go_on": True}, control=True))
        self._changed.set()

    def knows_done(self, letter_ids: Sequence[str]) -> None:
        """These were done by whoever owned the address before."""
        for letter_id in letter_ids:
            self._done[letter_id] = None
        while len(self._done) > DONE_KEPT:
            self._done.popitem(last=False)

    async def finished(self, letter_id: str) -> None:
        """A letter is done, or dead."""
        one = self._in_hand.pop(letter_id, None)
        if one is not None:
            self.knows_done([letter_id])
            await self._acknowledge(one)

    async def _acknowledge(self, one: Given) -> None:
        """Where the connection is lost it is done later: what is done stands in the journal."""
        if not await one.acknowledge() and self._tasks is not None:
            self._tasks.start_soon(self._acknowledge_later, one)

    async def _acknowledge_later(self, one: Given) -> None:
        while not await one.acknowledge():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(1.0)

    # -- as `engine.Worker` ----------------------------------------------------------------------

    async def next(self) -> Sequence[Letter]:
        while True:
            self._changed = anyio.Event()
            now = time.time()
            while self._timers and self._timers[0][0] <= now:
                self._queue.append(heappop(self._timers)[2].letter)
            waiting, self._queue = self._queue, deque[Letter]()
            found: list[Letter] = []
            for letter in waiting:  # what is not owned now may be so again, or lost with its shard
                (found if self.owns(letter.to) else self._queue).append(letter)
            if found:
                return sorted(found, key=lambda one: not one.control)
            due = self._timers[0][0] if self._timers else inf
            with anyio.move_on_after(due - time.time()):
                await self._changed.wait()

    def owns(self, address: Address) -> bool:
        return self._leases.owns(address, (address.type, shard_of(address)))

    async def commit(self, commit: Commit) -> None:
        if not self.owns(commit.address):
            raise Fenced(f"{commit.address} is not this worker's (any more)")

        async def finish() -> None:
            for letter_id in commit.done:
                await self.finished(letter_id)

        shard = (commit.address.type, shard_of(commit.address))
        self._committing[shard] += 1
        try:
            await self._home.journals.keep(commit, writer=self.name, beside=finish)
            self._committing[shard] -= 1  # else what follows it is left to the next owner
        except Overtaken as conflict:
            self._committing[shard] -= 1
            if self.owns(commit.address):
                await self._take_again(commit.address)
            raise Fenced(f"{commit.address} is not this worker's: {conflict}") from conflict
        except (JournalConflict, MailboxFull):
            self._committing[shard] -= 1  # nothing was kept
            raise
        if commit.standing is Standing.RUNNING:
            self._running.add(commit.address)
        elif commit.standing is not None:
            self._running.discard(commit.address)

    async def _take_again(self, address: Address) -> None:
        """Whoever owned an address before has written to it after it was taken over: it had begun
        to write before its lease ran out. Go on behind that.
        """
        share = self._shares.get((address.type, shard_of(address)))
        if share is None:
            return
        in_hand = [one for one in self._in_hand.values() if one.letter.to == address]
        await self._lose(lambda one: one == address)
        await share.take_over(address)
        for one in in_hand:
            await self.given(one)

    async def count(self, letter: Letter, error: str) -> None:
        del error  # the letter has it when it is buried
        await self._home.stream.publish(
            f"cb.try.{place(letter.to)}.{token(letter.id)}", {"attempts": letter.attempts + 1}
        )

    async def add(self, kind: str) -> None:
        if kind not in self._kinds:
            self._kinds.append(kind)
        await self.tick()

    async def release(self) -> None:
        async with self._renewing:
            self._kinds.clear()
            for share in self._shares.values():
                await share.end()
            self._shares.clear()
            self._queue.clear()
            self._in_hand.clear()
            unfinished = [shard for shard, count in self._committing.items() if count]
            await self._leases.leave(keeping=unfinished)

    # -- the lease -------------------------------------------------------------------------------

    def pause(self) -> None:
        """For tests: renew nothing more, as if the process had been stopped."""
        self._is_paused = True

    async def keep_renewing(self, tasks: TaskGroup) -> None:
        """Until cancelled."""
        self._tasks = tasks
        while not self._is_paused:
            await anyio.sleep(self._home.lease_s / 4)
            try:
                await self.tick()
            except CommitFailed:
                continue  # no server answers: until the lease runs out there is time

    def start(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        tasks.start_soon(self.keep_renewing, tasks)

    async def tick(self) -> None:
        """Renew, take what is free of this worker's share, give back what is not its own."""
        async with self._renewing:
            if not self._kinds or self._is_paused:
                return
            await self._lose_shards(await self._leases.renew())
            nodes = await self._leases.live(self._kinds)
            idle = self._leases.surplus(nodes, self._is_busy)
            await self._lose_shards(idle)
            await self._leases.give_back(idle)
            for lease in await self._leases.take(self._kinds, nodes):
                self._serve(lease)
            if self._queue:
                self._changed.set()

    def _serve(self, lease: Lease) -> None:
        assert self._tasks is not None  # it was started
        share = self._shares[lease.shard] = Share(self, self._home, lease)
        self._tasks.start_soon(share.serve)

    def _is_busy(self, shard: Shard) -> bool:
        if self._committing[shard]:
            return True
        addresses = [*[one.letter.to for one in self._in_hand.values()], *self._running]
        return any([(one.type, shard_of(one)) == shard for one in addresses])

    async def _lose_shards(self, shards: Sequence[Shard]) -> None:
        """These are not this worker's any more."""
        gone = frozenset(shards)
        for shard in gone:
            share = self._shares.pop(shard, None)
            if share is not None:
                await share.end()
        if gone:
            await self._lose(lambda address: (address.type, shard_of(address)) in gone)

    async def _lose(self, is_lost: Callable[[Address], bool]) -> None:
        self._in_hand = {k: v for k, v in self._in_hand.items() if not is_lost(v.letter.to)}
        self._queue = deque([one for one in self._queue if not is_lost(one.to)])
        self._timers = [one for one in self._timers if not is_lost(one[2].letter.to)]
        heapify(self._timers)
        self._running = {one for one in self._running if not is_lost(one)}
        self._on_lost(is_lost)


class WorkerTerm:
    """The time in which a worker takes part: renews its leases, and releases at the end."""

    def __init__(self, worker: NatsWorker, workers: list[Any]) -> None:
        self._worker = worker
        self._workers = workers
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> NatsWorker:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(group.cancel_scope.cancel)
        self._workers.append(self._worker)
        self._worker.start(group)
        await self._worker.tick()
        return self._worker

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            with anyio.move_on_after(RELEASE_S, shield=True):
                await self._worker.release()
        finally:
            self._workers.remove(self._worker)
        await self._stack.aclose()  # without the error, which the group would wrap
        return None
