"""Bounded threads for synchronous tools, with slots that their threads release themselves.

anyio gives the slot of an abandoned thread back at once, so that abandoned threads pile up
without bound; here a slot stays taken until its thread has ended.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from callboard.tooling.tool_context import ToolContext

THREAD_SLOTS = 40  # of one event loop

_slots: RunVar[tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]] = RunVar("callboard_threads")


def _limiters() -> tuple[anyio.CapacityLimiter, anyio.CapacityLimiter]:
    """Our own slots, and a limiter without a bound for anyio."""
    try:
        return _slots.get()
    except LookupError:
        made = (anyio.CapacityLimiter(THREAD_SLOTS), anyio.CapacityLimiter(math.inf))
        _slots.set(made)
        return made


class ThreadWork:
    """One function in one thread. `run` waits for it; cancelled, it leaves the thread alone.

    After a cancelled `run`, `settle` waits once more, or `abandon` gives the thread up.
    """

    __slots__ = (
        "_claim",
        "_claimed",
        "_context",
        "_function",
        "_late",
        "_slots",
        "done",
        "error",
        "finished",
        "value",
    )

    def __init__(self, function: Callable[[], Any], context: ToolContext) -> None:
        context.admit_threads()
        self._function = function
        self._context = context
        self._claim = threading.Lock()
        self._claimed = False  # by the thread that runs it, or by the loop that drops it
        self._late = False
        self._slots: anyio.CapacityLimiter | None = None
        self.done = anyio.Event()
        self.finished = False  # the function ran to its end
        self.value: Any = None
        self.error: BaseException | None = None

    async def run(self) -> Any:
        """What the function returns; context variables are carried into the thread."""
        slots, unbounded = _limiters()
        await slots.acquire_on_behalf_of(self)
        self._slots = slots
        try:
            await run_sync(self._work, abandon_on_cancel=True, limiter=unbounded)
        except BaseException:
            if self._take():  # the thread never came to it, and never will
                slots.release_on_behalf_of(self)
                self.done.set()
            raise
        return self.outcome()

    def outcome(self) -> Any:
        """The function's value, or its exception."""
        if self.error is not None:
            raise self.error
        return self.value

    async def settle(self, grace_s: float) -> bool:
        """Wait for the thread, shielded from cancellation; whether it ended with an outcome."""
        if self._slots is None:  # it never got one, so there is nothing to wait for
            return False
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + grace_s):
            await self.done.wait()
        return self.finished

    def abandon(self) -> bool:
        """Its end is from now on a late one, which the context reports. Whether it still runs."""
        self._late = True
        return self._slots is not None and not self.done.is_set()

    def _take(self) -> bool:
        with self._claim:
            mine = not self._claimed
            self._claimed = True
            return mine

    def _work(self) -> None:
        if not self._take():
            return
        try:
            self.value = self._function()
        except BaseException as error:  # raised in the loop, by `outcome`
            self.error = error
        finally:
            self._context.post(self._end)

    def _end(self) -> None:
        """In the loop's thread, once the work is over."""
        if self._slots is not None:
            self._slots.release_on_behalf_of(self)
        self.finished = True
        self.done.set()
        if self._late and self._context.on_late is not None:
            self._context.on_late(f"the abandoned call of {self._context.tool_name!r} has ended")
