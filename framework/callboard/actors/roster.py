"""Who is active, by address; kinds of actors are made on demand and put away when idle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from math import inf
from typing import Any

import anyio
from anyio import CapacityLimiter, TaskHandle
from anyio.abc import TaskGroup

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.conversing import Conversing
from callboard.actors.dead_letters import DeadLetters
from callboard.actors.envelope import Envelope
from callboard.actors.pump import Begun, Pump
from callboard.actors.results import Results
from callboard.actors.rules import ActorRules
from callboard.actors.traffic import Traffic
from callboard.errors import ActorError, ActorStopped, ConfigurationError, UnknownAddress
from callboard.events import Source
from callboard.watchers import Watchers

DOZE_S = 5.0  # without a letter, before an actor gives its task back
NO_ARGUMENTS: Mapping[str, Any] = {}
Make = Callable[[Address, Mapping[str, Any]], Actor]


class Roster:
    """The active actors of one system, and how the others are made."""

    def __init__(
        self,
        dead_letters: DeadLetters,
        *,
        most_active: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        for name, bound in (("most_active", most_active), ("concurrency", concurrency)):
            if bound is not None and bound < 1:
                raise ConfigurationError(f"{name}={bound!r}: it must be 1 or more, or None")
        self._most_active = most_active
        self.active: dict[Address, Pump] = {}
        self.traffic = Traffic()
        self._concurrency = concurrency
        self.results = Results()
        self.watchers = Watchers(Source(Address("system", "all"), ""))  # of all its agents
        self.tasks: TaskGroup | None = None  # while the system runs, and makes actors
        self._group: TaskGroup | None = None
        self._context: Context | None = None
        self._dead_letters = dead_letters
        self._kinds: dict[str, tuple[Make, ActorRules]] = {}
        self._arguments: dict[Address, Mapping[str, Any]] = {}
        self._leaving: dict[Address, Pump] = {}

    def open(self, tasks: TaskGroup) -> None:
        """Make actors from here on, in tasks of this group."""
        self.tasks = self._group = tasks
        self._context = copy_context()
        if self._concurrency is not None:
            self.traffic.slots = CapacityLimiter(self._concurrency)

    def shut(self) -> None:
        """The tasks are over: nobody is here any more, those who doze neither."""
        self.tasks = self._group = None
        for pump in tuple(self.active.values()):
            pump.close()

    # -- coming ----------------------------------------------------------------------------------

    def register(self, kind: str, make: Make, rules: ActorRules) -> None:
        """Have actors of this kind made when the first letter for one comes."""
        if kind in self._kinds:
            raise ConfigurationError(f"the kind {kind!r} is registered already")

        def made(address: Address, arguments: Mapping[str, Any]) -> Actor:
            return self._heard(make(address, arguments))

        self._kinds[kind] = (made, rules)

    def _heard(self, actor: Actor) -> Actor:
        """Let those who watch the system hear this actor, if it is an agent."""
        if isinstance(actor, Conversing):
            actor.belong(self.watchers)
        return actor

    def knows(self, kind: str) -> bool:
        """Whether actors of this kind can be made here."""
        return kind in self._kinds

    def rules(self, address: Address) -> ActorRules:
        """The rules of the kind of an address.

        Raises:
            UnknownAddress: the kind is not registered.
        """
        return self._kind(address)[1]

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> None:
        """Make and start an actor of a registered kind. Raises what its `started` raises."""
        make, rules = self._kind(address)
        await self.seat(address, partial(make, address, arguments), rules)
        self._arguments[address] = arguments

    async def seat(self, address: Address, make: Callable[[], Actor], rules: ActorRules) -> None:
        """Start an actor at an address where there is none."""
        await self._left(address)
        if address in self.active:
            raise ConfigurationError(f"there is an actor at {address} already")
        pump = self._placed(address, lambda: self._heard(make()), rules)
        pump.begun = Begun()
        try:
            await pump.begun.wait()
        except BaseException:
            await pump.abandon()
            raise

    async def reached(self, address: Address, arguments: Mapping[str, Any] | None = None) -> Pump:
        """The pump of an address; its actor is made if there is none and its kind is registered,
        with these arguments, or those of its `spawn`.

        Raises:
            UnknownAddress: nobody is there, and nobody can be made.
            ActorStopped: the system makes no actors any more.
        """
        await self._left(address)
        pump = self.active.get(address)
        if pump is None:
            make, rules = self._kind(address)
            if arguments is None:
                arguments = self._arguments.get(address, NO_ARGUMENTS)
            pump = self._placed(address, partial(make, address, arguments), rules)
        return pump

    async def _left(self, address: Address) -> None:
        """Wait until an earlier actor of this address has ended."""
        while (earlier := self._leaving.get(address)) is not None:
            await earlier.ended()

    def _kind(self, address: Address) -> tuple[Make, ActorRules]:
        found = self._kinds.get(address.type)
        if found is None:
            kinds = ", ".join(self._kinds) or "none"
            raise UnknownAddress(f"there is no actor at {address}; registered kinds: {kinds}")
        return found

    def _placed(self, address: Address, make: Callable[[], Actor], rules: ActorRules) -> Pump:
        if self.tasks is None:
            raise ActorStopped("the system does not run: use it inside its `async with` block")
        pump = self.active[address] = Pump(
            address,
            make,
            rules=rules,
            dead_letters=self._dead_letters,
            traffic=self.traffic,
            results=self.results,
            start=self._started,
            on_end=self._forget,
        )
        pump.start()
        return pump

    def _started(self, pump: Pump) -> TaskHandle[None]:
        """A task in the context in which the system was opened, and not in that of whoever sends
        a letter: what they work for is told by the letter.
        """
        assert self._group is not None  # it was opened
        assert self._context is not None
        name = str(pump.address)
        return self._group.create_task(pump.run(), name=name, context=self._context.copy())

    def _forget(self, pump: Pump) -> None:
        for where in (self.active, self._leaving):
            if where.get(pump.address) is pump:
                del where[pump.address]

    async def actor(self, address: Address) -> Actor:
        """The actor at an address, made if need be.

        Raises:
            UnknownAddress, ActorStopped: as `reached`; what making it raises.
        """
        pump = await self.reached(address)
        if pump.actor is None:
            begun = pump.begun = pump.begun or Begun()
            await begun.wait()
        if pump.actor is None:
            raise ActorStopped(f"{address} stopped before it had begun")
        return pump.actor

    def later(
        self, after_s: float, send: Callable[[Envelope], Awaitable[None]], letter: Envelope
    ) -> None:
        """Send a letter in a while, if the system still runs then."""
        if self.tasks is None:
            raise ActorStopped("the system does not run: use it inside its `async with` block")

        async def wait() -> None:
            await anyio.sleep(after_s)
            with suppress(ActorError):  # it is a dead letter then
                await send(letter)

        self.tasks.start_soon(wait)

    # -- going -----------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Put idle actors away, or have them doze, again and again, until cancelled."""
        while True:
            times = [rules.idle_s or inf for _, rules in self._kinds.values()]
            await anyio.sleep(min([DOZE_S, *[idle_s / 4 for idle_s in times]]))
            now = anyio.current_time()
            for pump in tuple(self.active.values()):
                idle_s, most_s = pump.idle_s(now), pump.rules.idle_s
                if most_s is not None and idle_s >= most_s:
                    self._put_away(pump)
                elif idle_s >= DOZE_S:
                    pump.doze()
            self._make_room(now)

    def _make_room(self, now: float) -> None:
        """Where more are active than should be, put away those that were idle for longest."""
        if self._most_active is None or len(self.active) <= self._most_active:
            return
        idle = [
            pump
            for pump in self.active.values()
            if pump.address.type in self._kinds and pump.idle_s(now) > 0.0
        ]
        idle.sort(key=lambda pump: pump.idle_s(now), reverse=True)
        for pump in idle[: len(self.active) - self._most_active]:
            self._put_away(pump)

    def _put_away(self, pump: Pump) -> None:
        del self.active[pump.address]
        self._leaving[pump.address] = pump
        pump.close()

    async def stop(self, address: Address, within_s: float) -> bool:
        """Stop one actor; True if it ended in time, or was not active at all."""
        pump = self.active.get(address)
        if pump is None:
            return True
        self._put_away(pump)
        return await pump.stop(within_s)

    def cancel(self, address: Address) -> None:
        """End an actor now, in the middle of what it does. Whoever comes next makes a new one."""
        pump = self.active[address]
        self._put_away(pump)
        pump.cancel()

    async def drain(self, within_s: float) -> list[Address]:
        """Have all finish what they are at. Returns those that did not in time, and still run."""
        self.tasks = None
        pumps = [*self.active.values(), *self._leaving.values()]
        for pump in tuple(self.active.values()):
            self._put_away(pump)
        with anyio.move_on_after(within_s):
            for pump in pumps:
                await pump.ended()
        return list(self._leaving)

    async def stop_all(self, within_s: float) -> list[Address]:
        """Stop all, the last one first. Returns those that had to be cancelled."""
        self.tasks = None
        last_first = reversed(tuple(self.active))
        return [address for address in last_first if not await self.stop(address, within_s)]
