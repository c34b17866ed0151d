"""The running asyncio loop, for code that also runs under trio.

asyncio is looked up and not imported: importing it takes 20 ms, and where nobody has imported it,
it does not run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol


class Loop(Protocol):
    """What is used of an asyncio loop."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[], object]) -> object: ...


class Task(Protocol):
    """What is used of an asyncio task."""

    def cancelling(self) -> int: ...


def running_loop() -> Loop | None:
    """The asyncio loop that runs in this thread, or None: another backend, or no loop at all."""
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    loop: Loop | None = asyncio._get_running_loop()
    return loop


def current_task() -> Task | None:
    """The asyncio task that runs now, or None under another backend."""
    loop = running_loop()
    if loop is None:
        return None
    task: Task | None = sys.modules["asyncio"].current_task(loop)
    return task
