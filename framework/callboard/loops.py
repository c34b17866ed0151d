"""The running asyncio loop, for code that also runs under trio.

asyncio is looked up and not imported: importing it takes 20 ms, and where nobody has imported it,
it does not run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from time import monotonic
from typing import Any, Protocol, cast


class Loop(Protocol):
    """What is used of an asyncio loop."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[], object]) -> object: ...


class Task(Protocol):
    """What is used of an asyncio task."""

    def cancelling(self) -> int: ...


class Done:
    """What is awaited for something that is done already: no coroutine, no event loop."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return _OVER


DONE = Done()
_OVER = cast("Generator[None, None, None]", iter(()))  # used up: awaiting it goes on at once


def running_loop() -> Loop | None:
    """The asyncio loop that runs in this thread, or None: another backend, or no loop at all."""
    asyncio: Any = sys.modules.get("asyncio")
    return None if asyncio is None else cast("Loop | None", asyncio._get_running_loop())


def clock_of(loop: Loop) -> Callable[[], float]:
    """What tells a loop's time. asyncio's own tells `monotonic`, by way of a call of 0.3 us."""
    own = sys.modules["asyncio"].BaseEventLoop.time
    return monotonic if getattr(type(loop), "time", None) is own else loop.time


def asyncio_current_task() -> Callable[[Loop], Task]:
    """What finds the task that a loop of asyncio runs now; call it where such a loop runs."""
    found: Callable[[Loop], Task] = sys.modules["asyncio"].current_task
    return found
