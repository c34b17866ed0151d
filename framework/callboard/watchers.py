"""Who watches an agent, and whom they watch with it: the agents that run inside its runs.

Nothing is built and nothing is called while nobody watches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, TypeVar, TypeVarTuple, cast
from weakref import WeakSet

from callboard.events import Event, Source
from callboard.watching import EventStream, Subscription

Listener = Callable[[Event], None]
Ts = TypeVarTuple("Ts")
T = TypeVar("T")


class Watchers:
    """The listeners of one agent. `active` while there is one.

    `add(..., below=True)` is for those who want to hear the runs inside this agent's runs as well:
    they hear an agent that began a run inside until it begins another one, however deep inside.
    `clean` has whatever is shown before it is; where it raises, an event is not told. `full` once
    a stream's reader is behind, so that the run must wait (`room`).
    """

    __slots__ = (
        "__weakref__",
        "_above",
        "_below",
        "_deep",
        "_flat",
        "_listeners",
        "_sequence",
        "_streams",
        "_system",
        "_thread",
        "active",
        "clean",
        "full",
        "source",
    )

    def __init__(self, source: Source) -> None:
        self.source = source
        self._sequence = 0
        self._flat: tuple[Listener, ...] = ()
        self._deep: tuple[Listener, ...] = ()
        self._listeners: tuple[Listener, ...] = ()  # all who hear this agent, each of them once
        self._streams: tuple[EventStream, ...] = ()
        self._system: Watchers | None = None
        self._above: Watchers | None = None
        self._below: WeakSet[Watchers] | None = None
        self._thread = 0
        self.active = False
        self.full = False
        self.clean: Callable[[Any], Any] | None = None

    def begin(self, source: Source, above: Watchers | None = None) -> None:
        """A run starts, maybe inside that of another agent: its events count from 1."""
        self.source = source
        self._sequence = 0
        self._thread = get_ident()
        if above is not None and above._thread != self._thread:
            above = None  # its readers could not be woken from here
        if above is not self._above:
            if self._above is not None and self._above._below is not None:
                self._above._below.discard(self)
            self._above = above
            self._joined(above)

    def belong(self, system: Watchers) -> None:
        """Let those who watch a system hear this agent, too."""
        self._system = system
        self._joined(system)

    def _joined(self, above: Watchers | None) -> None:
        if above is not None:
            above._below = WeakSet() if above._below is None else above._below
            above._below.add(self)
        self._spread()

    def add(self, listener: Listener, *, below: bool = False) -> None:
        if below:
            self._deep = (*self._deep, listener)
        else:
            self._flat = (*self._flat, listener)
        if isinstance(listener, EventStream):
            self._streams = (*self._streams, listener)
            listener.on_full = self._note_full
        self._spread()

    def remove(self, listener: Listener) -> None:
        self._flat = tuple([one for one in self._flat if one is not listener])
        self._deep = tuple([one for one in self._deep if one is not listener])
        self._streams = tuple([one for one in self._streams if one is not listener])
        self._spread()

    def _spread(self) -> None:
        """Who hears this agent has changed, and so it has for those below."""
        heard = {id(one): one for one in (*self._flat, *self._all_deep())}
        self._listeners = tuple(heard.values())
        self.active = bool(heard)
        for below in tuple(self._below or ()):
            below._spread()

    def _all_deep(self) -> tuple[Listener, ...]:
        above = () if self._above is None else self._above._all_deep()
        return (*self._deep, *above, *(() if self._system is None else self._system._deep))

    def tell(
        self,
        event: Callable[[Source, int, *Ts], Event],
        *fields: *Ts,
    ) -> None:
        """Build the event and hand it to every listener, if there is one.

        A listener that raises is reported to the log and never reaches the run.
        """
        if not self._listeners:
            return
        self._sequence += 1
        fact = event(self.source, self._sequence, *fields)
        if self.clean is not None:
            try:
                fact = self.clean(fact)
            except Exception as error:  # a layer's own code
                _report(self.clean, error)
                return
        for listener in self._listeners:
            try:
                listener(fact)
            except Exception as error:  # the listener's own code
                _report(listener, error)

    def shown(self, value: T) -> T:
        """A message, a call or an observation as it may be shown: in logs and traces, too."""
        return value if self.clean is None else cast(T, self.clean(value))

    def _note_full(self) -> None:
        self.full = True

    async def room(self) -> None:
        """Wait until every stream has room again."""
        for stream in self._streams:
            await stream.room()
        self.full = False


def _report(listener: Callable[[Event], object], error: Exception) -> None:
    import structlog  # it takes 50 ms, which only a broken listener should cost

    log = structlog.get_logger("callboard")
    log.warning("listener failed", listener=repr(listener), problem=repr(error))


@contextmanager
def watched(watchers: Watchers, *, limit: int, below: bool) -> Generator[Subscription, None, None]:
    """A subscription for as long as the block lasts."""
    subscription = Subscription(limit=limit)
    watchers.add(subscription, below=below)
    try:
        yield subscription
    finally:
        watchers.remove(subscription)
        subscription.close()
