"""One process's way to the store: every call may be slow, fail, or be the last one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import (
    ActorEntry,
    Commit,
    DeadEntry,
    Letter,
    StoredAnswer,
    WorkerEntry,
)
from callboard.actors.memory_worker import MemoryWorker, WorkerTerm
from callboard.errors import CommitFailed
from callboard.journaling.blobs import Blobs
from callboard.journaling.records import Record
from tests.simulation.world import World

T = TypeVar("T")
SLOWEST_S = 0.02  # a call without a fault


class Fate(Protocol):
    """The process, as its way to the store sees it."""

    @property
    def name(self) -> str: ...
    @property
    def is_dead(self) -> bool: ...
    def die(self) -> None: ...
    def stop(self, seconds: float) -> None: ...
    def lost(self, lose: Callable[[], None]) -> None: ...
    async def alive(self) -> None: ...


class Handle:
    """As `Engine`."""

    def __init__(self, world: World, fate: Fate) -> None:
        self.world = world
        self.fate = fate
        self.name = f"simulated by {fate.name}"
        self.terms: list[MemoryWorker] = []
        self._store = world.store

    @property
    def digest_key(self) -> bytes:
        return self._store.digest_key

    @property
    def blobs(self) -> Blobs | None:
        return self._store.blobs

    def now(self) -> float:
        return self._store.now()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """The store stays."""

    async def call(
        self, what: str, act: Callable[[], Awaitable[T]], *, may_fail: bool = False
    ) -> T:
        """Do it as the fault of this call says."""
        fate = self.fate
        await fate.alive()
        fault = self.world.fault()
        wrong = "" if fault is None else fault.wrong
        seconds = 0.0 if fault is None else fault.seconds
        if wrong not in ("refused", "forgotten") or may_fail:
            self.world.tell(f"{fate.name} {self.world.calls:4} {what} {wrong}")
        await anyio.sleep(seconds if wrong == "slow" else SLOWEST_S * self.world.chance.random())
        self._befall(wrong, "before", seconds)
        await fate.alive()
        if wrong == "refused" and may_fail:
            raise CommitFailed("simulated: nothing was kept")
        value = await act()
        self._befall(wrong, "after", seconds)
        await fate.alive()
        if wrong == "forgotten" and may_fail:
            raise CommitFailed("simulated: it was kept, but nobody knows")
        return value

    def _befall(self, wrong: str, when: str, seconds: float) -> None:
        if wrong == f"dies {when}":
            self.fate.die()
        elif wrong == f"stops {when}":
            self.fate.stop(seconds)

    # -- as `Engine` -----------------------------------------------------------------------------

    async def send(self, *letters: Letter) -> None:
        told = " ".join([f"{one.id} to {one.to}" for one in letters])
        await self.call(f"send {told}", lambda: self._store.send(*letters), may_fail=True)

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        return await self.call(
            f"answer {letter_id}",
            lambda: self._store.answer(letter_id, timeout_s=timeout_s, final=final),
        )

    async def withdraw(self, letter_id: str) -> bool:
        return await self.call(f"withdraw {letter_id}", lambda: self._store.withdraw(letter_id))

    async def commit(self, commit: Commit) -> None:
        what = f"commit {told(commit)}"
        await self.call(what, lambda: self._store.commit(commit), may_fail=True)

    async def records(self, address: Address, start: int = 0) -> Sequence[Record]:
        return await self.call(f"read {address}", lambda: self._store.records(address, start))

    async def arguments(self, address: Address) -> Mapping[str, Any] | None:
        return await self.call(f"arguments {address}", lambda: self._store.arguments(address))

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> bool:
        return await self.call(f"spawn {address}", lambda: self._store.spawn(address, arguments))

    async def actors(
        self, kind: str | None = None, *, after: Address | None = None, limit: int = 1_000
    ) -> Sequence[ActorEntry]:
        return await self.call("actors", lambda: self._store.actors(kind, after=after, limit=limit))

    async def workers(self) -> Sequence[WorkerEntry]:
        return await self.call("workers", self._store.workers)

    async def subscribe(self, topic: str, address: Address) -> None:
        await self.call("subscribe", lambda: self._store.subscribe(topic, address))

    async def unsubscribe(self, topic: str, address: Address) -> None:
        await self.call("unsubscribe", lambda: self._store.unsubscribe(topic, address))

    async def subscribers(self, topic: str) -> Sequence[Address]:
        return await self.call("subscribers", lambda: self._store.subscribers(topic))

    async def bury(self, letter: Letter, reason: str, error: str | None = None) -> None:
        what = f"bury {letter.id} {reason}: {error}"
        await self.call(what, lambda: self._store.bury(letter, reason, error), may_fail=True)

    async def dead(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadEntry]:
        return await self.call("dead", lambda: self._store.dead(after=after, limit=limit))

    async def revive(self, number: int) -> bool:
        return await self.call("revive", lambda: self._store.revive(number))

    async def drop(self, number: int) -> bool:
        return await self.call("drop", lambda: self._store.drop(number))

    def worker(
        self,
        kinds: Sequence[str] = (),
        *,
        on_lost: Callable[[Callable[[Address], bool]], None],
    ) -> Term:
        def lost(is_lost: Callable[[Address], bool]) -> None:
            self.fate.lost(lambda: on_lost(is_lost))

        return Term(self, self._store.worker(kinds, on_lost=lost))

    def owns(self, address: Address) -> bool:
        """Whether this process owns it, by its own clock."""
        return any([worker.owns(address) for worker in self.terms])


class Term:
    """As `WorkerContext`. Of a process that died nothing is released."""

    def __init__(self, handle: Handle, term: WorkerTerm) -> None:
        self._handle = handle
        self._term = term
        term._worker.name = handle.fate.name  # which decides on its share

    async def __aenter__(self) -> Worker:
        worker = await self._term.__aenter__()
        self._handle.terms.append(worker)
        return Worker(self._handle, worker)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._handle.fate.is_dead:
            await self._term.abandon()
            return
        self._handle.world.tell(f"{self._handle.fate.name} releases")
        await self._term.__aexit__(None, None, None)


class Worker:
    """As `engine.Worker`."""

    def __init__(self, handle: Handle, worker: MemoryWorker) -> None:
        self._handle = handle
        self._worker = worker

    async def next(self) -> Sequence[Letter]:
        await self._handle.fate.alive()
        letters = await self._worker.next()
        names = " ".join([one.id for one in letters])

        async def handed() -> Sequence[Letter]:
            return letters

        return await self._handle.call(f"is handed {names}", handed)

    def owns(self, address: Address) -> bool:
        return not self._handle.fate.is_dead and self._worker.owns(address)

    async def commit(self, commit: Commit) -> None:
        what = f"commit {told(commit)}"
        await self._handle.call(what, lambda: self._worker.commit(commit), may_fail=True)

    async def count(self, letter: Letter, error: str) -> None:
        what = f"count {letter.id} {error}"
        await self._handle.call(what, lambda: self._worker.count(letter, error), may_fail=True)

    async def add(self, kind: str) -> None:
        await self._handle.call(f"serve {kind}", lambda: self._worker.add(kind))

    async def release(self) -> None:
        await self._handle.call("release", self._worker.release)


def told(commit: Commit) -> str:
    """A commit in one line."""
    parts = [
        str(commit.address),
        *[record.kind for record in commit.records],
        *[f"done {id}" for id in commit.done],
        *[f"sends {letter.id} to {letter.to}" for letter in commit.sends],
        *[f"answers {one.letter_id}" for one in commit.answers],
        *([f"is {commit.standing}"] if commit.standing else []),
    ]
    return " ".join(parts)
