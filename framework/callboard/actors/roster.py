"""Who is active, by address; kinds of actors are made on demand and put away when idle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.conversing import Conversing
from callboard.actors.dead_letters import DeadLetters
from callboard.actors.envelope import Envelope
from callboard.actors.pump import ActorRules, Begun, Pump, Traffic
from callboard.actors.results import Results
from callboard.errors import ActorError, ActorStopped, ConfigurationError, UnknownAddress
from callboard.events import Source
from callboard.watching import Watchers

NO_ARGUMENTS: Mapping[str, Any] = {}
Make = Callable[[Address, Mapping[str, Any]], Actor]


class Roster:
    """The active actors of one system, and how the others are made."""

    def __init__(self, dead_letters: DeadLetters) -> None:
        self.active: dict[Address, Pump] = {}
        self.traffic = Traffic()
        self.results = Results()
        self.watchers = Watchers(Source(Address("system", "all"), ""))  # of all its agents
        self.tasks: TaskGroup | None = None  # while the system runs
        self._dead_letters = dead_letters
        self._kinds: dict[str, tuple[Make, ActorRules]] = {}
        self._arguments: dict[Address, Mapping[str, Any]] = {}
        self._leaving: dict[Address, Pump] = {}

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
            assert earlier.task is not None  # it was placed
            await earlier.task.wait()

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
            on_end=self._forget,
        )
        pump.task = self.tasks.create_task(pump.run(), name=str(address))
        return pump

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
        """Put idle actors away, again and again, until cancelled."""
        while True:
            shortest = min([rules.idle_s or 60.0 for _, rules in self._kinds.values()], default=1.0)
            await anyio.sleep(shortest / 4)
            now = anyio.current_time()
            for pump in [pump for pump in self.active.values() if _is_over(pump, now)]:
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
        assert pump.task is not None  # it was placed
        pump.task.cancel()

    async def drain(self, within_s: float) -> list[Address]:
        """Have all finish what they are at. Returns those that did not in time, and still run."""
        self.tasks = None
        pumps = [*self.active.values(), *self._leaving.values()]
        for pump in tuple(self.active.values()):
            self._put_away(pump)
        with anyio.move_on_after(within_s):
            for pump in pumps:
                assert pump.task is not None  # it was placed
                await pump.task.wait()
        return list(self._leaving)

    async def stop_all(self, within_s: float) -> list[Address]:
        """Stop all, the last one first. Returns those that had to be cancelled."""
        self.tasks = None
        last_first = reversed(tuple(self.active))
        return [address for address in last_first if not await self.stop(address, within_s)]


def _is_over(pump: Pump, now: float) -> bool:
    """Whether the actor was idle for as long as its kind allows; notes when it is first seen so."""
    if pump.rules.idle_s is None or not pump.is_idle or pump.mailbox.depth:
        return False
    if pump.actor is not None and pump.actor.is_busy:
        pump.idle_since = None
        return False
    if pump.idle_since is None:
        pump.idle_since = now
        return False
    return now - pump.idle_since >= pump.rules.idle_s
