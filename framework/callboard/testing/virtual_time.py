"""Time that jumps, for tests: a sleep of an hour takes no time.

For pytest with anyio's plugin, in a conftest.py:

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(request):
        return virtual_backend(request.param)

While a worker thread runs, or anybody waits for a socket or a pipe, time passes as on the wall:
both can be waited for, and a deadline beside them still strikes. A thread that the event loop
does not know of (`threading.Thread`) is not seen.
"""

from __future__ import annotations

import asyncio
import random
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from itertools import count
from math import inf
from typing import Any, TypeVar, TypeVarTuple

from callboard.errors import ConfigurationError, MissingExtra

BackendChoice = tuple[str, dict[str, Any]]  # what anyio's plugin takes: a name and its options
SLICE_S = 0.001  # the longest real wait before looking again who is busy
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _NumberedTask(asyncio.Task[Any]):
    """Sets of tasks have an order that does not rest on where in memory they lie: anyio cancels
    the tasks of a scope in the order of such a set.
    """

    def __init__(self, number: int, coroutine: Coroutine[Any, Any, Any], **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose time jumps to the next timer when nothing is left to do.

    With a `seed`, tasks that are ready together run in a shuffled, repeatable order: a test that
    passes under many seeds does not rest on the order in which asyncio happens to run tasks.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._jumping = _JumpingSelector(self._before_wait)
        self._random = None if seed is None else random.Random(seed)
        super().__init__(self._jumping)
        self._numbers = count()
        self.set_task_factory(self._made_task)

    def _made_task(self, loop: Any, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return _NumberedTask(next(self._numbers), coroutine, loop=loop, **options)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._jumping.busy += 1
        future.add_done_callback(self._leave_executor)
        return future

    def _leave_executor(self, _: asyncio.Future[Any]) -> None:
        self._jumping.busy -= 1

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        await super().shutdown_default_executor()  # a virtual timeout would strike at once

    def _before_wait(self) -> None:
        """Shuffle the steps of tasks; other callbacks are promised to run in their order."""
        if self._random is None:
            return
        ready: Any = getattr(self, "_ready")  # noqa: B009  asyncio has no public name for it
        places = [at for at, handle in enumerate(ready) if _is_task_step(handle)]
        steps = [ready[at] for at in places]
        self._random.shuffle(steps)
        for at, handle in zip(places, steps, strict=True):
            ready[at] = handle


def _is_task_step(handle: Any) -> bool:
    return isinstance(getattr(handle._callback, "__self__", None), asyncio.Task)


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting it moves the clock, unless somebody outside may still wake the loop."""

    def __init__(self, before_wait: Callable[[], None]) -> None:
        super().__init__()
        self.now = 0.0
        self.busy = 0  # calls that an executor runs
        self._before_wait = before_wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._before_wait()
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(0)
        if events:
            return events
        if self._nobody_busy():
            self.now += timeout
            return events
        started = time.monotonic()
        events = super().select(min(timeout, SLICE_S))
        self.now += min(timeout, time.monotonic() - started)
        return events

    def _nobody_busy(self) -> bool:
        watched = len(self.get_map()) - 1  # without the loop's own wake-up pipe
        return not self.busy and watched <= 0 and not any(map(_is_busy, threading.enumerate()))


def _is_busy(thread: threading.Thread) -> bool:
    """Whether this is a thread of anyio's pool that works or is about to report its result."""
    queue = getattr(thread, "queue", None)
    return bool(thread.name == "AnyIO worker thread" and queue and queue.unfinished_tasks)


class _WallTimeWhileBusy:
    """A trio instrument: while threads run or sockets are awaited, the clock ticks and no longer
    jumps.
    """

    def __init__(self, clock: Any, count_busy: Callable[[], int]) -> None:
        self._clock = clock
        self._count_busy = count_busy
        self._jumps = True

    def after_task_step(self, task: object) -> None:
        jumps = self._count_busy() <= 0  # -1 until trio's own wake-up waits
        if jumps is not self._jumps:
            self._jumps = jumps
            self._clock.rate = 0.0 if jumps else 1.0
            self._clock.autojump_threshold = 0.0 if jumps else inf


def virtual_backend(name: str, *, seed: int | None = None) -> BackendChoice:
    """The value of anyio's `anyio_backend` fixture for "asyncio" or "trio", fresh for one test.

    Also works as `anyio.run(main, backend=name, backend_options=options)`. A seed matters to
    asyncio only: trio shuffles its tasks by itself.
    """
    if name == "asyncio":
        return name, {"loop_factory": lambda: VirtualTimeLoop(seed)}
    if name == "trio":
        return name, _trio_options()
    raise ConfigurationError(f"{name!r} is no backend: there are 'asyncio' and 'trio'")


def virtual_backends(*, seed: int | None = None) -> list[BackendChoice]:
    """Both backends, for `params=`. Prefer `virtual_backend`: here tests share trio's clock."""
    return [virtual_backend(name, seed=seed) for name in ("asyncio", "trio")]


def _trio_options() -> dict[str, Any]:
    try:
        import trio
        import trio.testing
    except ImportError as missing:
        raise MissingExtra("trio", extra="dev") from missing

    def count_busy() -> int:
        waits: Any = trio.lowlevel.current_statistics().io_statistics
        awaited = waits.tasks_waiting_read + waits.tasks_waiting_write
        return int(trio.testing.active_thread_count() + awaited - 1)  # 1: trio's own wake-up

    clock = trio.testing.MockClock(autojump_threshold=0)
    return {"clock": clock, "instruments": [_WallTimeWhileBusy(clock, count_busy)]}
