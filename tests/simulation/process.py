"""A process of a case: one life after the other, each with a system of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from callboard.actors.address import Address
from callboard.actors.system import ActorSystem
from callboard.errors import ActorFailed, CommitFailed
from tests.simulation.cast import register
from tests.simulation.handle import Handle
from tests.simulation.world import World

STOP_S = 5.0
REST_S = 1.0  # between two lives


class Life:
    """A process from its start to its end, however it ends."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_dead = False
        self.is_up = False
        self.leave = anyio.Event()
        self.engine = Handle(world, self)
        self.system = ActorSystem(self.engine, stop_s=STOP_S)
        self._goes_on: anyio.Event | None = None  # set where it is stopped and has gone on
        self._until = 0.0
        self._scopes: list[anyio.CancelScope] = []
        self._lost: list[Callable[[], None]] = []

    # -- its fate --------------------------------------------------------------------------------

    def die(self) -> None:
        """End in the middle of everything, and release nothing."""
        if self.is_dead:
            return
        self.is_dead = True
        self.is_up = False
        self.world.cuts += 1
        self.world.tell(f"{self.name} DIES")
        for worker in self.engine.terms:
            worker.pause()
        for scope in self._scopes:
            scope.cancel()

    def stop(self, seconds: float) -> None:
        """Do nothing for so long, and know nothing of it."""
        if self.is_dead or self._goes_on is not None:
            return
        self.world.cuts += 1
        self.world.tell(f"{self.name} STOPS for {seconds:g} s")
        self._goes_on = anyio.Event()
        self._until = anyio.current_time() + seconds
        for worker in self.engine.terms:
            worker.pause()

    @property
    def is_stopped(self) -> bool:
        return self._goes_on is not None

    async def alive(self) -> None:
        """Wait while it is stopped. Does not suspend where it is not.

        Raises:
            CommitFailed: it is dead; whoever sees this is shielded from the cancellation.
        """
        while self._goes_on is not None and not self.is_dead:
            await anyio.sleep(max(0.0, self._until - anyio.current_time()))
            self.go_on()
        if self.is_dead:
            await anyio.lowlevel.checkpoint()
            raise CommitFailed(f"simulated: {self.name} is dead")

    def go_on(self) -> None:
        """After a stop, if it is time."""
        if self._goes_on is None or anyio.current_time() < self._until:
            return
        self._goes_on = None
        self.world.tell(f"{self.name} goes on")
        for worker in self.engine.terms:
            worker.unpause()
        lost, self._lost = self._lost, []
        for lose in lost:
            lose()

    def lost(self, lose: Callable[[], None]) -> None:
        """Addresses were lost: it is told once it goes on, and never if it is dead."""
        if self._goes_on is not None:
            self._lost.append(lose)
        elif not self.is_dead:
            lose()

    def owns(self, address: Address) -> bool:
        return self.engine.owns(address)

    # -- its life --------------------------------------------------------------------------------

    @contextmanager
    def visit(self) -> Generator[anyio.CancelScope]:
        """Do something in this process: it is cut off when that dies."""
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            try:
                yield scope
            finally:
                self._scopes.remove(scope)

    async def run(self) -> None:
        with self.visit():
            try:
                async with self.system:
                    register(self)
                    self.is_up = True
                    await self.leave.wait()
                    await self.alive()
                    self.is_up = False
            except* Exception as errors:
                self._ended_by(errors)
        self.is_up = False

    def _ended_by(self, errors: ExceptionGroup[Exception]) -> None:
        self.is_up = False
        for one in _leaves(errors):
            self.world.tell(f"{self.name} ends by {one!r:.300}")
            if not isinstance(one, (ActorFailed, CommitFailed)):
                self.world.breaks("a process ends by nothing else", repr(one))


def _leaves(group: BaseExceptionGroup[Exception]) -> list[BaseException]:
    found: list[BaseException] = []
    for one in group.exceptions:
        found += _leaves(one) if isinstance(one, BaseExceptionGroup) else [one]
    return found


class Process:
    """Lives again and again, until the case is over."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.life: Life | None = None

    async def run(self) -> None:
        while True:
            self.lives += 1
            self.life = Life(self.world, f"{self.name}.{self.lives}")
            self.world.tell(f"{self.life.name} begins")
            await self.life.run()
            await anyio.sleep(REST_S)
