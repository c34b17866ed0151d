"""One run at a time, first come first served. Belongs to no event loop while nobody waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable
from threading import get_ident
from types import TracebackType

import anyio

from callboard.errors import ConfigurationError
from callboard.loops import DONE


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
        self._line: deque[anyio.Event] | None = None  # an empty one takes 760 bytes

    @property
    def is_busy(self) -> bool:
        """Whether somebody holds it."""
        return self._busy

    def __aenter__(self) -> Awaitable[None]:
        thread = get_ident()
        if not self._busy:
            self._busy, self._thread = True, thread
            return DONE
        return self._wait(thread)

    async def _wait(self, thread: int) -> None:
        if self._thread != thread:
            raise ConfigurationError(
                "an agent that runs in one thread was asked to run in another: give each thread "
                "an agent of its own, or keep all runs in one event loop"
            )
        turn = anyio.Event()
        line = self._line = deque() if self._line is None else self._line
        line.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():  # the turn had come: pass it on
                self._next()
            else:
                line.remove(turn)
            raise

    def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Awaitable[None]:
        self._next()
        return DONE

    def _next(self) -> None:
        if self._line:
            self._line.popleft().set()
        else:
            self._busy = False
