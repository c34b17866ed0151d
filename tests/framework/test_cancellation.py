"""Cancelling and interrupting: the round is closed, nothing runs on, and who cancelled knows."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import anyio
import pytest
from anyio import get_cancelled_exc_class

from callboard.agent import ReActAgent
from callboard.approvals import Verdict
from callboard.decide import ToolExecution
from callboard.events import Warned
from callboard.journaling.records import DraftInterrupted
from callboard.messages import AssistantMessage, ToolCall
from callboard.replies import Outcome, Reply
from callboard.testing import call, pause, say, stream
from callboard.tooling.tools import ToolContext, tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    echo,
    marks,
    results,
    shape,
    statuses,
    wait,
)

pytestmark = pytest.mark.anyio


async def test_can_01_a_surrounding_time_out_fires() -> None:
    ledger = Ledger()
    agent, model = agent_of([call("slow", "a"), "done"], ledger.slow)
    with pytest.raises(TimeoutError):
        with anyio.fail_after(0.1):
            await agent.run("go")
    assert len(model.requests) == 1
    assert ledger.entries == ["started", "cancelled"]


async def test_can_01_a_cancelled_task_is_cancelled_and_closed_first() -> None:
    ledger = Ledger()
    agent, _ = agent_of([call("slow", "a"), "done"], ledger.slow)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        group.cancel_scope.cancel()
    assert agent.state.last_outcome is Outcome.INTERRUPTED
    assert statuses(agent) == {"a": "unknown_outcome"}
    assert_replays(agent)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_can_01_a_native_cancel_propagates() -> None:
    ledger = Ledger()
    agent, _ = agent_of([call("slow", "a"), "done"], ledger.slow)
    task = asyncio.create_task(agent.run("go"))
    while not ledger.entries:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert statuses(agent) == {"a": "unknown_outcome"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_qp_31_wait_for_raises_a_time_out() -> None:
    agent, model = agent_of([stream(pause(100), "x")])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.run("go"), 0.05)
    assert model.open_streams == 0
    assert shape(agent.messages) == ["user: go"]


async def test_can_02_nothing_beats_after_a_cancel() -> None:
    beats: list[float] = []

    async def beat() -> None:
        while True:
            beats.append(anyio.current_time())
            await anyio.sleep(0.01)

    agent, _ = agent_of([call("beat", "a")], beat)
    with anyio.move_on_after(0.05):
        await agent.run("go")
    heard = len(beats)
    await anyio.sleep(0.3)
    assert 0 < heard == len(beats)


async def test_can_03_a_sub_agent_stops_with_its_parent() -> None:
    ledger = Ledger()
    child, child_model = agent_of([call("slow"), "never"], ledger.slow)

    async def spawn() -> str:
        return (await child.run("work")).text

    parent, parent_model = agent_of([call("spawn", "p"), "never"], spawn)
    with anyio.move_on_after(1):
        await parent.run("go")
    await anyio.sleep(7200)
    assert (len(parent_model.requests), parent.state.queued) == (1, ())
    assert (ledger.entries, len(child_model.requests)) == (["started", "cancelled"], 1)
    assert child.state.last_outcome is Outcome.INTERRUPTED


async def test_can_06_a_partial_answer_is_kept_as_a_draft_and_never_sent() -> None:
    agent, model = agent_of([stream("part one ", pause(5), "part two"), "done"])
    with anyio.move_on_after(1):
        await agent.run("go")
    drafts = [r for r in await agent.journal.read() if isinstance(r, DraftInterrupted)]
    assert [draft.partial.text for draft in drafts] == ["part one "]
    assert (await agent.run("again")).text == "done"
    assert "part one" not in repr(model.requests[1].messages)


async def test_pi_50_an_interrupt_in_mid_answer_returns_a_reply() -> None:
    agent, model = agent_of([stream("hel", pause(5), "lo"), "done"])
    reply = await interrupted(agent)
    assert (reply.outcome, len(model.requests)) == (Outcome.INTERRUPTED, 1)
    drafts = [r for r in await agent.journal.read() if isinstance(r, DraftInterrupted)]
    assert [draft.partial.text for draft in drafts] == ["hel"]
    assert not agent.state.streaming
    assert (await agent.run("again")).text == "done"
    assert shape(model.requests[1].messages) == ["user: go", "user: again"]


async def interrupted(agent: ReActAgent) -> Reply:
    """The reply of a run that is interrupted after a second."""

    async def interrupt() -> None:
        await anyio.sleep(1)
        await agent.interrupt()

    replies: list[Reply] = []
    async with anyio.create_task_group() as group:
        group.start_soon(interrupt)
        replies.append(await agent.run("go"))
    return replies[0]


async def test_qp_30_an_interrupt_before_the_answer_leaves_the_prompt_alone() -> None:
    agent, _ = agent_of([stream(pause(5), "lo")])
    reply = await interrupted(agent)
    assert reply.outcome is Outcome.INTERRUPTED
    assert shape(agent.messages) == ["user: go"]


async def test_qp_27_calls_of_an_answer_that_was_not_complete_do_not_exist() -> None:
    ledger = Ledger()
    partial = stream("partial", call("charge", "a", amount=1), call("charge", "b", amount=2))
    partial = type(partial)((*partial.steps[:-1], pause(100)))
    agent, _ = agent_of([partial, "done"], ledger.charge)
    reply = await interrupted(agent)
    assert (reply.outcome, ledger.entries, results(agent)) == (Outcome.INTERRUPTED, [], {})
    drafts = [r for r in await agent.journal.read() if isinstance(r, DraftInterrupted)]
    assert len(drafts[0].partial.calls) == 2


@pytest.mark.parametrize(
    ("execution", "expected"),
    [
        (ToolExecution.SEQUENTIAL, {"a": "unknown_outcome", "b": "cancelled"}),
        (ToolExecution.PARALLEL, {"a": "unknown_outcome", "b": "unknown_outcome"}),
    ],
)
async def test_qp_28_an_interrupt_gives_every_call_its_result(
    execution: ToolExecution, expected: dict[str, str]
) -> None:
    ledger = Ledger()
    script: Script = [say(call("slow", "a"), call("slow", "b")), "done"]
    agent, _ = agent_of(script, ledger.slow, tool_execution=execution)
    reply = await interrupted(agent)
    assert (reply.outcome, statuses(agent)) == (Outcome.INTERRUPTED, expected)
    assert (await agent.run("go on")).text == "done"
    assert_replays(agent)


async def test_pi_52_a_finished_sibling_keeps_its_good_result() -> None:
    ledger = Ledger()
    calls = (call("wait", "a", ms=10), call("slow", "b"))
    agent, _ = agent_of([say(*calls)], wait, ledger.slow)
    await interrupted(agent)
    assert statuses(agent) == {"a": "ok", "b": "unknown_outcome"}


async def test_pi_54_a_tool_that_finishes_all_the_same_keeps_its_real_result() -> None:
    async def stubborn() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(2)
        return "written"

    agent, _ = agent_of([call("stubborn", "a"), stream(pause(1), "done")], stubborn)
    with anyio.move_on_after(1):
        await agent.run("go")
    assert shape(agent.messages)[2:] == ["a: written"]
    assert_replays(agent)


async def test_a_pure_tool_that_is_cut_off_is_cancelled_and_not_unknown() -> None:
    pure = tool(effect="pure")(wait)
    agent, _ = agent_of([call("wait", "a", ms=5000)], pure)
    with anyio.move_on_after(1):
        await agent.run("go")
    assert statuses(agent) == {"a": "cancelled"}


async def test_one_call_can_be_cancelled_and_the_run_goes_on() -> None:
    ledger = Ledger()

    async def stop(other: str) -> str:
        await anyio.sleep(1)
        return str(agent.cancel_call(other))

    calls = (call("slow", "a"), call("stop", "b", other="a"))
    agent, _ = agent_of([say(*calls), "done"], ledger.slow, stop)
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "unknown_outcome", "b": "ok"}  # `slow` declares no effect
    assert results(agent)["b"].text == "True"


async def test_a_call_that_does_not_run_cannot_be_cancelled() -> None:
    agent, _ = agent_of(["done"])
    await agent.run("go")
    assert agent.cancel_call("a") is False


async def test_tmo_02_a_tool_that_hangs_is_bounded_by_default() -> None:
    async def hang() -> None:
        await anyio.Event().wait()

    agent, _ = agent_of([call("hang", "a"), "done"], hang)
    started = anyio.current_time()
    assert (await agent.run("go")).text == "done"
    assert anyio.current_time() - started == pytest.approx(120)
    assert statuses(agent) == {"a": "timed_out"}


@pytest.mark.real_clock
async def test_tmo_01_a_thread_that_runs_on_is_said_and_its_late_end_is_told() -> None:
    written: list[str] = []

    @tool(timeout_s=0.05)
    def slow_write() -> None:
        time.sleep(0.3)
        written.append("late")

    agent, _ = agent_of([call("slow_write", "a"), "done"], slow_write)
    with agent.watch() as events:
        await agent.run("go")
        await anyio.sleep(0.5)
    assert statuses(agent) == {"a": "timed_out"}
    assert "may still finish" in results(agent)["a"].text
    assert [type(event) async for event in events].count(Warned) == 1
    assert written == ["late"]


async def test_tmo_01_a_tool_without_a_bound_is_awaited_inside_one_with_a_bound() -> None:
    inner, _ = agent_of([call("slow", "i"), "inner done"], tool(timeout_s=None)(Ledger().slow))

    @tool(timeout_s=50)
    async def outer() -> str:
        return (await inner.run("go")).text

    agent, _ = agent_of([call("outer", "a"), "done"], outer)
    await agent.run("go")
    assert statuses(agent) == {"a": "timed_out"}


async def test_a_tool_learns_its_deadline() -> None:
    seen: list[float | None] = []

    @tool(timeout_s=5)
    async def look(context: ToolContext) -> None:
        seen.append((context.deadline or 0) - anyio.current_time())

    agent, _ = agent_of([call("look", "a"), "done"], look)
    await agent.run("go")
    assert seen == [pytest.approx(5)]


async def test_an_interrupt_on_an_idle_agent_changes_nothing() -> None:
    agent, _ = agent_of(["done"])
    assert await agent.interrupt() == ()
    assert (await agent.run("go")).outcome is Outcome.FINISHED


async def test_a_run_that_was_interrupted_can_be_resumed() -> None:
    agent, model = agent_of([stream("hel", pause(5)), "done"], echo)
    await interrupted(agent)
    assert (await agent.resume()).text == "done"
    assert shape(model.requests[1].messages) == ["user: go"]
    assert isinstance(agent.messages[-1], AssistantMessage)


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_a_cut_while_a_guard_thinks_closes_the_calls(how: str) -> None:
    class ThinkingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            await anyio.sleep(60)
            return await super()._deciding(call)

    ledger = Ledger()
    script: Script = [say(call("charge", "a", amount=1), call("charge", "b", amount=2)), "done"]
    agent, _ = agent_of(script, ledger.charge, kind=ThinkingMixin)
    if how == "interrupt":
        await interrupted(agent)
    else:
        with anyio.move_on_after(1):
            await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "cancelled", "b": "cancelled"})
    assert (await agent.run("again")).text == "done"
    assert_replays(agent)


async def test_pi_50_an_interrupted_answer_has_its_ends() -> None:
    agent, _ = agent_of([stream("hel", pause(5), "lo")])
    with agent.watch() as events:
        await interrupted(agent)
    told = marks([event async for event in events])
    assert told[-3:] == ["me nothing", "turn_end", "agent_end interrupted"]


async def test_pi_52_what_was_not_started_never_runs_and_the_queues_stay() -> None:
    ledger = Ledger()
    pure = tool(effect="pure")(ledger.slow)
    calls = (call("slow", "a"), call("charge", "b", amount=1), call("charge", "c", amount=2))
    agent, model = agent_of(
        [say(*calls)], pure, ledger.charge, tool_execution=ToolExecution.SEQUENTIAL
    )
    await agent.follow_up("later")
    await interrupted(agent)
    assert ledger.entries == ["started", "cancelled"]
    assert statuses(agent) == {"a": "cancelled", "b": "cancelled", "c": "cancelled"}
    assert (len(agent.state.queued), len(model.requests)) == (1, 1)


@pytest.mark.parametrize("sequential", [True, False])
async def test_an_interrupt_that_a_tool_swallows_ends_the_run_all_the_same(
    sequential: bool,
) -> None:
    async def deaf() -> str:
        for _ in range(3):
            with suppress(get_cancelled_exc_class()):
                await anyio.sleep(2)
                break
        return "deaf"

    async def interrupt() -> None:
        await anyio.sleep(1)
        await agent.interrupt()

    execution = ToolExecution.SEQUENTIAL if sequential else ToolExecution.PARALLEL
    script: Script = [say(call("deaf", "a"), call("deaf", "b"))]
    agent, _ = agent_of(script, deaf, tool_execution=execution)
    async with anyio.create_task_group() as group:
        group.start_soon(interrupt)
        assert (await agent.run("go")).outcome is Outcome.INTERRUPTED
    assert statuses(agent) == {"a": "ok", "b": "cancelled" if sequential else "ok"}
    assert_replays(agent)
