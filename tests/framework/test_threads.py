"""Synchronous tools run in threads: beside the loop, bounded, and abandoned when they must be."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from callboard.errors import StopRun
from callboard.messages import Observation, Status, ToolCall
from callboard.tooling.deadlines import Bounds
from callboard.tooling.execution import execute
from callboard.tooling.threads import THREAD_SLOTS
from callboard.tooling.tools import ToolContext, tool

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
CALL = ToolCall(id="c1", name="it")
START_S = 0.3  # a deadline by which a thread has surely started


async def ran(
    function: Callable[..., Any],
    given: ToolContext | None = None,
    grace_s: float = 5,
    **options: Any,
) -> Observation:
    given = given or ToolContext("c1", "it")
    return await execute(tool(**options)(function), CALL, given, thread_grace_s=grace_s)


async def test_loop_02_a_synchronous_tool_runs_beside_the_loop_with_context_variables() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("seen")
    loop = threading.get_ident()

    def look() -> list[Any]:
        return [variable.get(), threading.get_ident() != loop]

    assert (await ran(look)).payload == ["seen", True]


async def test_loop_02_two_tools_overlap() -> None:
    both = threading.Barrier(2, timeout=10)

    def meet() -> str:
        both.wait()
        return "met"

    async with anyio.create_task_group() as group:
        group.start_soon(ran, meet)
        assert (await ran(meet)).text == "met"


async def test_loop_02_a_synchronous_generator_reports_from_its_thread() -> None:
    def count() -> Iterator[int]:
        yield from (1, 2, 3)

    updates: list[Any] = []
    found = await ran(count, ToolContext("c1", "it", on_update=updates.append))
    assert (updates, found.payload) == ([1, 2, 3], 3)


async def test_what_a_generator_returns_is_its_result() -> None:
    def count() -> Any:
        yield 1
        return "sum"

    assert (await ran(count)).text == "sum"


async def test_a_generator_that_raises_keeps_its_part() -> None:
    def part() -> Iterator[str]:
        yield "part "
        raise ValueError("boom")

    assert (await ran(part)).text == "part \nValueError: boom"


async def test_updates_reach_the_loop_from_any_thread_before_the_end() -> None:
    def report(it: ToolContext) -> str:
        it.update(1)
        own = threading.Thread(target=it.update, args=(2,))
        own.start()
        own.join()
        return "done"

    seen: list[tuple[Any, int]] = []
    given = ToolContext(
        "c1", "it", on_update=lambda value: seen.append((value, threading.get_ident()))
    )
    await ran(report, given)
    assert seen == [(1, threading.get_ident()), (2, threading.get_ident())]


async def test_a_coroutine_that_a_function_returns_is_awaited() -> None:
    async def later() -> str:
        return "awaited"

    def start() -> Any:
        return later()

    assert (await ran(start)).text == "awaited"


@pytest.mark.parametrize("error", [ValueError, StopIteration])
async def test_an_exception_in_a_thread_is_a_failure(error: type[Exception]) -> None:
    def boom() -> None:
        raise error

    found = await ran(boom)
    assert found.status is Status.FAILED
    assert error.__name__ in found.text


async def test_stop_run_passes_through_from_a_thread() -> None:
    def stop() -> None:
        raise StopRun("enough")

    with pytest.raises(StopRun, match="enough"):
        await ran(stop)


@on_asyncio
async def test_par_03_a_cancellation_raised_in_a_thread_is_a_failure() -> None:
    def odd() -> None:
        raise asyncio.CancelledError

    assert (await ran(odd)).status is Status.FAILED


async def test_tmo_01_a_thread_past_its_deadline_is_abandoned_and_its_end_reported() -> None:
    release, late = threading.Event(), anyio.Event()

    def slow_write() -> None:
        release.wait(10)

    told: list[str] = []

    def on_late(text: str) -> None:
        told.append(text)
        late.set()

    found = await ran(slow_write, ToolContext("c1", "it", on_late=on_late), timeout_s=START_S)
    assert found.status is Status.TIMED_OUT
    assert found.text == f"timed out after {START_S} s; the work may still finish"
    release.set()
    with anyio.fail_after(5):
        await late.wait()
    assert told == ["the abandoned call of 'it' has ended"]


async def test_tmo_01_a_nested_tool_without_a_deadline_is_waited_for() -> None:
    around, release, written = ToolContext("c0", "outer"), threading.Event(), list[str]()

    def slow_write(it: ToolContext) -> None:
        it.update("started")
        release.wait(10)
        written.append("late")

    def cancel(_: Any) -> None:
        around.cancel()
        release.set()

    async def outer() -> None:
        await ran(slow_write, ToolContext("c1", "it", on_update=cancel), timeout_s=None)
        await anyio.lowlevel.checkpoint()

    assert (await ran(outer, around)).status is Status.CANCELLED
    assert written == ["late"]


async def test_tmo_01_the_slots_of_abandoned_threads_stay_taken() -> None:
    release = threading.Event()

    def slow(it: ToolContext) -> None:
        it.update("started")
        release.wait(10)

    def quick() -> str:
        return "ran"

    given: list[ToolContext] = []
    started: list[Any] = []

    def cancel_all_at_the_last(value: Any) -> None:
        started.append(value)
        for one in given if len(started) == THREAD_SLOTS else ():
            one.cancel()

    async with anyio.create_task_group() as group:
        for _ in range(THREAD_SLOTS):
            given.append(ToolContext("c1", "it", on_update=cancel_all_at_the_last))
            group.start_soon(ran, slow, given[-1])
    full = await ran(quick, timeout_s=0.02)
    release.set()
    assert full == Observation.of("timed out after 0.02 s", Status.TIMED_OUT)
    assert (await ran(quick)).text == "ran"


async def test_an_abandoned_generator_ends_at_its_next_value() -> None:
    release, closed = threading.Event(), threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield 1
            release.wait(10)
            while True:
                yield 2
        finally:
            closed.set()

    found = await ran(endless, timeout_s=START_S)
    release.set()
    assert found.status is Status.TIMED_OUT
    assert await anyio.to_thread.run_sync(closed.wait, 5)


async def test_one_call_in_a_thread_can_be_cancelled() -> None:
    release = threading.Event()
    given = ToolContext("c1", "it")

    def slow(it: ToolContext) -> None:
        it.update("started")
        release.wait(10)

    def cancel(_: Any) -> None:
        given.cancel()

    given.on_update = cancel
    found = await ran(slow, given)
    release.set()
    assert found.status is Status.CANCELLED
    assert found.text == "the call was cancelled; the work may still finish"


async def test_a_thread_that_ends_in_its_grace_has_its_real_result() -> None:
    release = threading.Event()

    def slow(it: ToolContext) -> str:
        it.update("started")
        release.wait(10)
        return "done"

    with anyio.CancelScope() as scope:

        def cancel(_: Any) -> None:
            scope.cancel()
            release.set()

        outside = Bounds()
        assert (await ran(slow, ToolContext("c1", "it", on_update=cancel))).text == "done"
        await outside.reraise()
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught


async def test_a_thread_past_its_grace_is_abandoned_and_the_cancellation_raised() -> None:
    release = threading.Event()

    def slow(it: ToolContext) -> None:
        it.update("started")
        release.wait(10)

    with anyio.CancelScope() as scope:
        given = ToolContext("c1", "it", on_update=lambda _: scope.cancel())
        await ran(slow, given, grace_s=0.02)
        pytest.fail("the cancellation was swallowed")
    release.set()
    assert scope.cancelled_caught


@on_asyncio
async def test_a_native_cancel_in_the_grace_gives_up_at_once() -> None:
    release = threading.Event()
    task = asyncio.current_task()
    assert task is not None

    def slow(it: ToolContext) -> None:
        it.update("started")
        release.wait(10)

    def cancel(_: Any) -> None:
        task.cancel()
        asyncio.get_running_loop().call_later(0.02, task.cancel)

    with pytest.raises(asyncio.CancelledError):
        await ran(slow, ToolContext("c1", "it", on_update=cancel))
    release.set()
    assert (task.uncancel(), task.uncancel()) == (1, 0)


def test_a_thread_that_outlives_its_loop_does_not_keep_the_process_from_ending() -> None:
    release, ended = threading.Event(), threading.Event()

    def slow(it: ToolContext) -> None:
        release.wait(10)
        it.update("nobody hears this")
        ended.set()

    assert anyio.run(lambda: ran(slow, timeout_s=START_S)).status is Status.TIMED_OUT
    release.set()
    assert ended.wait(5)
