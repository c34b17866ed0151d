"""One run at a time, first come first served. Belongs to no event loop while nobody waits."""

from __future__ import annotations

from collections import deque
from threading import get_ident
from types import TracebackType

import anyio

from callboard.errors import ConfigurationError


class Turnstile:
    """An async context manager that lets one holder through at a time, in order of arrival.

    Costs no event loop round trip when it is free. A waiter that is cancelled leaves the line.

    Raises:
        ConfigurationError: the holder is in another thread, whose event loop cannot wake this one.
    """

    __slots__ = ("_busy", "_line", "_thread")

    def __init__(self) -> None:
        self._busy = False
        self._thread = 0  # of the holder
        self._line: deque[anyio.Event] = deque()

    async def __aenter__(self) -> None:
        thread = get_ident()
        if not self._busy:
            self._busy, self._thread = True, thread
            return
        if self._thread != thread:
            raise ConfigurationError(
                "an agent that runs in one thread was asked to run in another: give each thread "
                "an agent of its own, or keep all runs in one event loop"
            )
        turn = anyio.Event()
        self._line.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # the turn had come: pass it on
                self._next()
            else:
                self._line.remove(turn)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._next()

    def _next(self) -> None:
        if self._line:
            self._line.popleft().set()
        else:
            self._busy = False
