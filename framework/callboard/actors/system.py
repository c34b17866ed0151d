"""ActorSystem: the one place that sees both the bus and the actors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast, overload

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.bus import Bus
from callboard.actors.dead_letters import DeadLetters
from callboard.actors.durable_bus import DurableBus
from callboard.actors.engine import Engine
from callboard.actors.engines import engine_named
from callboard.actors.payloads import from_body
from callboard.actors.post import Post
from callboard.actors.ref import ASK_TIMEOUT_S, Ref
from callboard.actors.roster import Roster
from callboard.actors.rules import ActorRules
from callboard.errors import ActorFailed, ConfigurationError
from callboard.journaling.blobs import Blobs
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.messages import new_id
from callboard.replies import Reply
from callboard.watchers import watched
from callboard.watching import SYSTEM_LIMIT, Subscription

STOP_S = 10.0
DEFAULT_RULES = ActorRules()


@dataclass(frozen=True, slots=True)
class Seat:
    """What a factory gets for one actor: its address, the arguments of `spawn`, the system."""

    address: Address
    arguments: Mapping[str, Any]
    system: ActorSystem

    @property
    def key(self) -> str:
        return self.address.key

    @property
    def journal(self) -> Journal:
        """The journal of this address: an agent that is put away and made again goes on."""
        return self.system.journal(self.address)

    @property
    def blobs(self) -> Blobs | None:
        """Where the engine of the system keeps large data; None without an engine."""
        engine = self.system.engine
        return None if engine is None else engine.blobs


class ActorSystem:
    """Actors that reach each other by address. Use it with `async with`.

    Without an engine they live in this process and end with it. With one (`"sqlite:team.db"`, or
    an Engine) letters, journals and answers outlive the process: see docs/engines.md. Actors are
    then of registered kinds, and payloads are JSON or messages.

    Leaving the block waits until all letters are handled, then stops the actors, the last one
    first; `stop_s` seconds for each of the two. Leaving it by an error cancels them. With an engine
    nothing is lost by either: what is not done is gone on with by whoever serves it next. An actor
    that fails on a letter which nobody waits for ends the block with ActorFailed, unless its
    supervision says otherwise. Where more than `most_active` actors hold memory, those of
    registered kinds that were idle for longest are put away. `concurrency` bounds how many
    letters are handled at once that no actor of the system sent; those that they send each other
    come on top, as somebody may wait for them.
    """

    def __init__(
        self,
        engine: Engine | str | None = None,
        *,
        ask_timeout_s: float = ASK_TIMEOUT_S,
        stop_s: float = STOP_S,
        most_active: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        self.engine = engine_named(engine) if isinstance(engine, str) else engine
        self.dead_letters = DeadLetters()
        self._roster = Roster(self.dead_letters, most_active=most_active, concurrency=concurrency)
        self._post = None if self.engine is None else Post(self.engine, self._roster)
        self._bus = self._made_bus()
        self._ask_timeout_s = ask_timeout_s
        self._stop_s = stop_s
        self._tasks: TaskGroup | None = None
        self._journals: dict[Address, Journal] = {}
        self.late: tuple[Address, ...] = ()  # who had to be cancelled when the system ended

    def _made_bus(self) -> Bus:
        if self.engine is None or self._post is None:
            return Bus(self._roster, self.dead_letters)
        return DurableBus(self._roster, self.dead_letters, engine=self.engine, post=self._post)

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise ConfigurationError("this system runs already: make another one")
        if self.engine is not None:
            await self.engine.__aenter__()
        tasks = self._tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._roster.open(tasks)
        tasks.start_soon(self._roster.sweep)
        try:
            if self._post is not None:
                await tasks.start(self._post.serve, tasks)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            return await self._left(kind, error, traceback)
        finally:
            self._tasks = None
            self._roster.shut()
            if self.engine is not None:
                await self.engine.__aexit__(kind, error, traceback)

    async def _left(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        tasks = self._tasks
        assert tasks is not None  # it was entered
        own = error is not None and not isinstance(error, get_cancelled_exc_class())
        try:
            if error is None:
                try:
                    await self._settle()
                except get_cancelled_exc_class() as cut:  # the tasks are ended all the same
                    kind, error, traceback = type(cut), cut, cut.__traceback__
            if self._post is not None:
                self._post.seal()
            tasks.cancel_scope.cancel()
            if own:
                await tasks.__aexit__(None, None, None)
                return False  # the error goes on by itself
            return await tasks.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            failed = _failed(group)
            if failed is None or own:
                raise
            raise failed from failed.__cause__

    async def _settle(self) -> None:
        """Have everything handled, then stop the actors in order."""
        with anyio.move_on_after(self._stop_s):
            await self.settled()
        if self._post is None:
            self.late = tuple(await self._roster.stop_all(self._stop_s))
            return
        self._post.stop_intake()
        self.late = tuple(await self._roster.drain(self._stop_s))

    # -- actors ----------------------------------------------------------------------------------

    def register(
        self, kind: str, factory: Callable[[Seat], Actor], rules: ActorRules = DEFAULT_RULES
    ) -> None:
        """Say how actors of a kind are made; they are, when the first letter for one comes.

        Raises:
            ConfigurationError: the kind is registered already.
        """

        def make(address: Address, arguments: Mapping[str, Any]) -> Actor:
            return factory(Seat(address, arguments, self))

        self._roster.register(kind, make, rules)
        if self._post is not None:
            self._post.serve_kind(kind)

    @overload
    async def spawn(self, actor: Actor, /, *, rules: ActorRules = ...) -> Ref: ...
    @overload
    async def spawn(self, actor: str, key: str | None = None, /, **arguments: Any) -> Ref: ...
    async def spawn(self, actor: Actor | str, key: str | None = None, /, **arguments: Any) -> Ref:
        """Start an actor, and return once its `started` is done.

        Either one that exists, or one of a registered kind with this key (a fresh one without)
        and the arguments that its factory gets.

        Raises:
            ConfigurationError: there is one at the address already, or the kind is not known. With
            an engine: it was spawned with other arguments, or they are no JSON.
            ActorStopped: the system does not run, or is stopping. What `started` raises.
        """
        if isinstance(actor, str):
            address = Address(actor, key or new_id(actor))
            if self._post is None:
                await self._roster.spawn(address, arguments)
            else:
                await self._post.spawn(address, arguments)
            return self.ref(address)
        if self._post is not None:
            raise ConfigurationError(
                f"{actor!r} is an object, which no other process could make again: with an engine,"
                " write system.register(kind, factory), and spawn(kind, key) or ref(address)"
            )
        rules = arguments.pop("rules", DEFAULT_RULES)
        address = getattr(actor, "address", None) or Address(
            type(actor).__name__.lower(), key or new_id("a")
        )
        await self._roster.seat(address, lambda: actor, rules)
        return self.ref(address)

    def ref(self, address: Address | str) -> Ref:
        """A reference to an address, whether anybody is there or not."""
        at = Address.parse(address) if isinstance(address, str) else address
        return Ref(at, self._bus, timeout_s=self._ask_timeout_s)

    def journal(self, address: Address) -> Journal:
        """The journal of an address, kept as long as this system, or by its engine."""
        if self._post is not None:
            return self._post.journal(address)
        return self._journals.setdefault(address, InMemoryJournal())

    async def stop(self, ref: Ref) -> bool:
        """Stop an actor: the letter that it handles is finished, unread ones are dead letters.

        False if it took more than `stop_s` seconds and was cancelled. One of a registered kind is
        made again when a letter comes.
        """
        return await self._roster.stop(ref.address, self._stop_s)

    @property
    def active(self) -> tuple[Address, ...]:
        """Who is in memory now; others are made when a letter comes."""
        return tuple(self._roster.active)

    def depth(self, ref: Ref) -> int:
        """How many letters wait in a mailbox; 0 for an actor that is not active."""
        pump = self._roster.active.get(ref.address)
        return 0 if pump is None else pump.mailbox.depth

    async def result(self, run_id: str, *, timeout_s: float | None = None) -> Reply:
        """The reply of an agent's run, also of one that was parked when its asker got an answer.

        Raises:
            AskTimeout: the run had not ended in time. RunFailed: with an engine, where it failed.
        """
        within_s = timeout_s or self._ask_timeout_s
        if self.engine is None:
            return await self._roster.results.of(run_id, timeout_s=within_s)
        stored = await self.engine.answer(run_id, timeout_s=within_s, final=True)
        reply: Reply = from_body(stored.body)
        return reply

    async def settled(self) -> None:
        """Wait until every letter in the system is handled, those that handlers send as well.

        With an engine: those that this process has in hand, but not those of parked agents.
        """
        await (self._roster.traffic if self._post is None else self._post).settled()

    @contextmanager
    def watch(self, *, limit: int = SYSTEM_LIMIT) -> Generator[Subscription, None, None]:
        """Subscribe to the events of all agents here, of those that are made later, and of those
        that run inside their runs: `with system.watch() as events`.

        `event.address`, `event.run_id` and `event.parent_run` tell whose they are. Bounded, and
        never slows a run: `events.missed` counts what a slow reader has lost. What happened
        stands in the journals; `events_of` makes events of them again.
        """
        with watched(self._roster.watchers, limit=limit, below=True) as subscription:
            yield subscription

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, ref: Ref) -> None:
        """Have what is published on a topic told to an actor, from now on."""
        await self._bus.subscribe(topic, ref.address)

    async def unsubscribe(self, topic: str, ref: Ref) -> None:
        """No more of it. Nothing happens if it was not subscribed."""
        await self._bus.unsubscribe(topic, ref.address)

    async def publish(self, topic: str, payload: Any) -> int:
        """Tell all subscribers of a topic, in the order in which they came.

        Returns how many got it. One that cannot be reached hurts no other: its letter is dead.
        """
        return await self._bus.publish(topic, payload)


def _failed(group: BaseExceptionGroup[BaseException]) -> ActorFailed | None:
    """The first failure of an actor among what ended the system."""
    found: BaseException | None = group.subgroup(ActorFailed)
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[BaseException]", found).exceptions[0]
    return found if isinstance(found, ActorFailed) else None
