"""One execution of one tool: results, failures, deadlines, cancellation."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from callboard.errors import StopRun
from callboard.messages import Observation, Status, TextBlock, ToolCall
from callboard.tooling.deadlines import Bounds
from callboard.tooling.execution import execute
from callboard.tooling.tools import Tool, ToolContext, as_tool, tool

pytestmark = pytest.mark.anyio

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


def context(updates: list[Any] | None = None) -> ToolContext:
    return ToolContext("c1", "it", on_update=None if updates is None else updates.append)


async def ran(function: Callable[..., Any] | Tool, raw: str = "{}", **options: Any) -> Observation:
    made = function if isinstance(function, Tool) else tool(**options)(function)
    return await execute(made, ToolCall(id="c1", name="it", raw=raw), context())


async def test_a_coroutine_gets_its_arguments_and_returns_its_result() -> None:
    async def add(a: int, b: int = 2) -> int:
        return a + b

    found = await ran(add, '{"a":1}')
    assert (found.status, found.text, found.payload) == (Status.OK, "3", 3)


async def test_arguments_that_do_not_fit_are_never_run() -> None:
    async def boom(a: int) -> None:
        raise AssertionError

    assert (await ran(boom)).status is Status.INVALID


async def test_pi_18_what_a_tool_raises_is_a_failed_result() -> None:
    async def boom() -> None:
        raise ValueError("boom")

    assert await ran(boom) == Observation.of("ValueError: boom", Status.FAILED)


async def test_an_exception_whose_text_raises_is_still_a_result() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def boom() -> None:
        raise Silent

    assert (await ran(boom)).text == "Silent: (its message cannot be shown)"


async def test_errors_of_a_tools_own_task_group_are_listed() -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def boom() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(fail, ValueError("a"))
            group.start_soon(fail, KeyError("b"))

    text = (await ran(boom)).text
    assert "ValueError: a" in text
    assert "KeyError: 'b'" in text


async def test_terminate_and_the_byte_limit_of_the_tool_count() -> None:
    async def long() -> str:
        return "x" * 1000

    found = await ran(long, terminate=True, max_result_bytes=100)
    assert found.terminate
    assert len(found.text) <= 100


async def test_stop_run_passes_through() -> None:
    async def stop() -> None:
        raise StopRun("enough")

    with pytest.raises(StopRun, match="enough"):
        await ran(stop)


async def test_stop_run_leaves_a_task_group_of_the_tool() -> None:
    async def stop() -> None:
        async with anyio.create_task_group():
            raise StopRun("enough")

    with pytest.raises(StopRun, match="enough"):
        await ran(stop)


async def test_system_exit_passes_through() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await ran(leave)


async def hang() -> None:
    await anyio.sleep_forever()


async def test_tmo_02_a_tool_that_hangs_times_out_by_default() -> None:
    found = await ran(hang)
    assert (found.status, found.text) == (Status.TIMED_OUT, "timed out after 120 s")


async def test_a_coroutine_is_waited_for_after_its_deadline() -> None:
    cleaned: list[str] = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cleaned.append("up")

    await ran(slow, timeout_s=1)
    assert cleaned == ["up"]


async def test_a_tool_that_finishes_all_the_same_has_its_real_result() -> None:
    async def stubborn() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(2)
        return "done"

    assert (await ran(stubborn, timeout_s=1)).text == "done"


async def test_no_timeout_waits() -> None:
    async def slow() -> str:
        await anyio.sleep(1000)
        return "done"

    assert (await ran(slow, timeout_s=None)).text == "done"


async def test_the_context_knows_the_deadline() -> None:
    async def left(it: ToolContext) -> float:
        assert it.deadline is not None
        return it.deadline - anyio.current_time()

    assert 4 < (await ran(left, timeout_s=5)).payload <= 5


async def test_one_call_can_be_cancelled() -> None:
    given = context()
    async with anyio.create_task_group() as group:
        group.start_soon(_soon, given.cancel)
        found = await execute(as_tool(hang), ToolCall(id="c1", name="hang"), given)
        assert found == Observation.of("the call was cancelled", Status.CANCELLED)


async def _soon(act: Callable[[], None]) -> None:
    await anyio.sleep(1)
    act()


async def test_a_call_cancelled_before_it_starts_stops_at_its_first_wait() -> None:
    given = context()
    given.cancel()
    found = await execute(as_tool(hang), ToolCall(id="c1", name="hang"), given)
    assert found.status is Status.CANCELLED


async def test_cancellation_from_outside_passes_through() -> None:
    with anyio.move_on_after(1) as scope:
        await ran(hang)
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught


async def test_cancellation_from_outside_wins_over_the_deadline() -> None:
    with anyio.move_on_after(1) as scope:
        await ran(hang, timeout_s=1)
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught


async def test_cancellation_inside_a_group_passes_through() -> None:
    async def mixed() -> None:
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise BaseExceptionGroup("both", [error, ValueError("x")]) from None

    with anyio.move_on_after(1) as scope:
        await ran(mixed)
        pytest.fail("the cancellation was swallowed")
    assert scope.cancelled_caught


@on_asyncio
async def test_a_native_cancel_passes_through() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await ran(hang)


@on_asyncio
async def test_a_native_cancel_that_a_tool_swallows_is_noticed() -> None:
    async def deaf() -> str:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return "done"
        return "never"

    async def cancelled_run() -> None:
        async with asyncio.timeout(0.02):
            outside = Bounds()
            assert (await ran(deaf)).text == "done"
            await outside.reraise()

    with pytest.raises(TimeoutError):
        await cancelled_run()


@on_asyncio
async def test_par_03_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    found = await ran(odd)
    assert (found.status, found.text) == (Status.FAILED, "CancelledError")


@on_asyncio
async def test_par_03_a_sibling_is_untouched() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    async def echo() -> str:
        await checkpoint()
        return "b"

    found: dict[str, str] = {}

    async def keep(function: Callable[..., Any]) -> None:
        found[function.__name__] = (await ran(function)).text

    async with anyio.create_task_group() as group:
        group.start_soon(keep, odd)
        group.start_soon(keep, echo)
    assert found == {"odd": "CancelledError", "echo": "b"}


async def test_yielded_values_are_progress_and_the_last_is_the_result() -> None:
    async def count() -> AsyncIterator[int]:
        for number in (1, 2, 3):
            yield number

    updates: list[Any] = []
    found = await execute(as_tool(count), ToolCall(id="c1", name="it"), context(updates))
    assert (updates, found.payload) == ([1, 2, 3], 3)


async def test_qwenpaw_10_a_generator_that_raises_keeps_its_part() -> None:
    async def part() -> AsyncIterator[str]:
        yield "part"
        raise ValueError("boom")

    found = await ran(part)
    assert found.status is Status.FAILED
    assert found.content == (TextBlock(text="part"), TextBlock(text="\nValueError: boom"))


async def test_a_generator_is_closed_at_its_deadline() -> None:
    closed: list[bool] = []

    async def endless() -> AsyncIterator[str]:
        try:
            yield "part"
            await anyio.sleep_forever()
        finally:
            closed.append(True)

    found = await ran(endless, timeout_s=1)
    assert (found.status, found.text, closed) == (
        Status.TIMED_OUT,
        "part\ntimed out after 1 s",
        [True],
    )


async def test_pi_20_an_update_after_the_end_is_nothing() -> None:
    kept: list[ToolContext] = []

    async def report(it: ToolContext) -> None:
        it.update(1)
        it.update(2)
        kept.append(it)

    updates: list[Any] = []
    await execute(as_tool(report), ToolCall(id="c1", name="it"), context(updates))
    kept[0].update(3)
    assert updates == [1, 2]


async def test_a_watcher_that_raises_does_not_touch_the_tool() -> None:
    async def report(it: ToolContext) -> str:
        it.update(1)
        return "done"

    def fail(_: Any) -> None:
        raise RuntimeError

    given = ToolContext("c1", "it", on_update=fail)
    assert (await execute(as_tool(report), ToolCall(id="c1", name="it"), given)).text == "done"


async def test_a_raw_tool_gets_arguments_and_context() -> None:
    async def run(arguments: dict[str, Any], it: ToolContext) -> Any:
        return [arguments, it.call_id]

    made = Tool.from_schema(name="raw", description="", parameters={}, run=run)
    assert (await ran(made, '{"a":[1]}')).payload == [{"a": [1]}, "c1"]


async def test_context_variables_of_the_caller_are_seen() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("seen")

    async def look() -> str:
        return variable.get()

    assert (await ran(look)).text == "seen"
