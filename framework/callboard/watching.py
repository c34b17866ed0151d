"""Who watches an agent: listeners, the lossless stream of a run, and bounded subscriptions.

Nothing is built and nothing is called while nobody watches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast
from weakref import WeakSet

import anyio

from callboard.events import Event, Source
from callboard.replies import Reply

Listener = Callable[[Event], None]
P = ParamSpec("P")
T = TypeVar("T")

STREAM_LIMIT = 256  # events that wait in a stream before its run waits for the reader
WATCH_LIMIT = 1_000  # events that a subscription holds
SYSTEM_LIMIT = 10_000  # and one to a whole system


class Watchers:
    """The listeners of one agent. `active` while there is one.

    `add(..., below=True)` is for those who want to hear the runs inside this agent's runs as well:
    they hear an agent that began a run inside until it begins another one, however deep inside.
    `clean` has whatever is shown before it is; where it raises, an event is not told.
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
        event: Callable[Concatenate[Source, int, P], Event],
        *fields: P.args,
        **named: P.kwargs,
    ) -> None:
        """Build the event and hand it to every listener, if there is one.

        A listener that raises is reported to the log and never reaches the run.
        """
        if not self._listeners:
            return
        self._sequence += 1
        fact = event(self.source, self._sequence, *fields, **named)
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

    @property
    def full(self) -> bool:
        """Whether a stream's reader is behind, so that the run must wait."""
        for stream in self._streams:  # any() over a generator takes 0.4 us, at each delta
            if stream.full:
                return True
        return False

    async def room(self) -> None:
        """Wait until every stream has room again."""
        for stream in self._streams:
            await stream.room()


def _report(listener: Callable[[Event], object], error: Exception) -> None:
    import structlog  # it takes 50 ms, which only a broken listener should cost

    log = structlog.get_logger("callboard")
    log.warning("listener failed", listener=repr(listener), problem=repr(error))


class EventStream:
    """The events of one run, in order, none lost: the run waits for a slow reader.

    Iterating ends with the run; a run that failed raises its RunFailed there. `reply` is the
    run's reply once the iteration is over.
    """

    def __init__(self, *, limit: int = STREAM_LIMIT) -> None:
        self._events: deque[Event] = deque()
        self._limit = limit
        self._news: anyio.Event | None = None
        self._space: anyio.Event | None = None
        self.full = False  # the run must wait
        self._over = False
        self._error: BaseException | None = None
        self._run: anyio.CancelScope | None = None
        self._closed: anyio.Event | None = None
        self.reply: Reply | None = None

    async def follow(self, run: Callable[[], Awaitable[Reply]]) -> None:
        """Carry out the run that is followed, in the task that calls this."""
        reply: Reply | None = None
        error: Exception | None = None
        try:
            with anyio.CancelScope() as self._run:
                try:
                    reply = await run()
                except Exception as failure:  # the reader gets it
                    error = failure
        finally:  # also where the reader has left, and somebody waits in aclose
            self.close(reply=reply, error=error)

    async def aclose(self) -> None:
        """Cancel the run, as leaving the block does, and wait for its end. From any task."""
        if self._over:
            return
        if self._closed is None:
            self._closed = anyio.Event()
        if self._run is not None:
            self._run.cancel("the stream was closed")
        await self._closed.wait()

    def __call__(self, event: Event) -> None:
        self._events.append(event)
        if self._news is not None:
            self._news.set()
            self._news = None
        if len(self._events) >= self._limit:
            self.full = True

    async def room(self) -> None:
        while self.full and not self._over:
            if self._space is None:
                self._space = anyio.Event()
            await self._space.wait()

    def close(self, *, reply: Reply | None = None, error: BaseException | None = None) -> None:
        """No more events: the run is over, with a reply or with an error."""
        self.reply, self._error, self._over = reply, error, True
        for waiting in (self._news, self._space, self._closed):
            if waiting is not None:
                waiting.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                return self._end()
            self._news = anyio.Event()
            await self._news.wait()
        event = self._events.popleft()
        if self.full and len(self._events) < self._limit:
            self.full = False
            if self._space is not None:
                self._space.set()
                self._space = None
        return event

    def _end(self) -> Event:
        error, self._error = self._error, None
        raise error if error is not None else StopAsyncIteration


class Subscription:
    """A bounded view of an agent's events: a slow reader loses the oldest and is told how many.

    `missed` counts what was lost since it was last read; what happened can be read again from
    the journal. Never slows the agent.
    """

    def __init__(self, *, limit: int = WATCH_LIMIT) -> None:
        self._events: deque[Event] = deque(maxlen=limit)
        self._news: anyio.Event | None = None
        self._closed = False
        self._missed = 0

    def __call__(self, event: Event) -> None:
        if len(self._events) == self._events.maxlen:
            self._missed += 1
        self._events.append(event)
        if self._news is not None:
            self._news.set()
            self._news = None

    @property
    def missed(self) -> int:
        """How many events were lost since this was last asked."""
        missed, self._missed = self._missed, 0
        return missed

    def close(self) -> None:
        """End the iteration once the events that wait are read."""
        self._closed = True
        if self._news is not None:
            self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._news = anyio.Event()
            await self._news.wait()
        return self._events.popleft()


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
