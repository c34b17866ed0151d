"""How an agent is watched: the lossless stream of a run, and bounded subscriptions.

`watchers.py` hands them the events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Self

import anyio

from callboard.events import Event
from callboard.replies import Reply

STREAM_LIMIT = 256  # events that wait in a stream before its run waits for the reader
WATCH_LIMIT = 1_000  # events that a subscription holds
SYSTEM_LIMIT = 10_000  # and one to a whole system


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
        self.on_full: Callable[[], None] | None = None  # told when the run must wait
        self._full = False
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
            self._full = True
            if self.on_full is not None:
                self.on_full()

    async def room(self) -> None:
        while self._full and not self._over:
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
        if self._full and len(self._events) < self._limit:
            self._full = False
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
