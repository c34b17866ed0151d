"""Ends and entries from odd places: hooks, layers, tools that reach back into their agent."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Verdict
from callboard.errors import StopRun
from callboard.hooks import Hooks
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage, Observation, ToolCall
from callboard.replies import Outcome, RunFailed
from callboard.testing import call, pairing_faults, pause, say, stream
from tests.framework.kit import (
    Ledger,
    agent_of,
    assert_replays,
    echo,
    results,
    shape,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio

TWO = say(call("echo", "a", x="1"), call("echo", "b", x="2"))


def stop_before(call: ToolCall) -> None:
    if call.id == "b":
        raise StopRun("before b")


def stop_after(call: ToolCall, observation: Observation) -> None:
    if call.id == "b":
        raise StopRun("after b")


def stop_turn(state: State) -> None:
    raise StopRun("no second turn")


def stop_context(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
    if len(messages) > 1:
        raise StopRun("no second request")
    return messages


@pytest.mark.parametrize(
    ("hooks", "text"),
    [
        (Hooks(before_tool=stop_before), "before b"),
        (Hooks(after_tool=stop_after), "after b"),
        (Hooks(prepare_next_turn=stop_turn), "no second turn"),
        (Hooks(transform_context=stop_context), "no second request"),
    ],
)
async def test_a_hook_may_stop_the_run_anywhere(hooks: Hooks, text: str) -> None:
    agent, model = agent_of([TWO], echo, hooks=hooks)
    reply = await agent.run("go")
    assert (reply.outcome, reply.text, len(model.requests)) == (Outcome.STOPPED, text, 1)
    assert pairing_faults(agent.messages) == []
    assert_replays(agent)


async def test_a_result_that_a_hook_stopped_at_is_the_tools_own() -> None:
    agent, _ = agent_of([TWO], echo, hooks=Hooks(after_tool=stop_after))
    await agent.run("go")
    assert results(agent)["b"].text == "2"


async def test_a_layer_may_stop_the_run_while_it_decides() -> None:
    class StoppingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            if call.id == "b":
                raise StopRun("enough")
            return await super()._deciding(call)

    ledger = Ledger()
    script = [say(call("charge", "a", amount=1), call("charge", "b", amount=2))]
    agent, _ = agent_of(script, ledger.charge, kind=StoppingMixin)
    assert (await agent.run("go")).outcome is Outcome.STOPPED
    assert (ledger.entries, statuses(agent)) == ([], {"a": "cancelled", "b": "cancelled"})
    assert_replays(agent)


async def test_after_a_stop_the_next_run_starts_anew() -> None:
    agent, model = agent_of([TWO, "done"], echo, hooks=Hooks(before_tool=stop_before))
    await agent.run("go")
    assert (await agent.run("again")).text == "done"
    assert shape(model.requests[1].messages)[-1] == "user: again"


async def test_resume_after_a_stop_asks_nothing() -> None:
    agent, model = agent_of([TWO], echo, hooks=Hooks(before_tool=stop_before))
    await agent.run("go")
    assert (await agent.resume()).outcome is Outcome.STOPPED
    assert len(model.requests) == 1


async def test_an_interrupt_in_the_summary_ends_the_run_once() -> None:
    agent, _ = agent_of([TWO, stream("sum", pause(60))], echo, max_iters=1)

    async def interrupt() -> None:
        await anyio.sleep(1)
        await agent.interrupt()

    async with anyio.create_task_group() as group:
        group.start_soon(interrupt)
        reply, events = await watched(agent)
        assert reply.outcome is Outcome.INTERRUPTED
        assert [event.kind for event in events].count("agent_end") == 1
    assert_replays(agent)


async def test_two_interrupts_are_as_good_as_one() -> None:
    ledger = Ledger()
    agent, _ = agent_of([call("slow", "a"), "done"], ledger.slow)

    async def interrupt() -> None:
        await anyio.sleep(1)
        await agent.interrupt()

    async with anyio.create_task_group() as group:
        group.start_soon(interrupt)
        group.start_soon(interrupt)
        assert (await agent.run("go")).outcome is Outcome.INTERRUPTED
    assert (await agent.run("again")).outcome is Outcome.FINISHED


async def test_an_agent_may_be_a_tool_of_another() -> None:
    child, _ = agent_of(["the answer"])

    async def ask(question: str) -> str:
        return (await child.run(question)).text

    parent, _ = agent_of([call("ask", "a", question="why?"), "done"], ask)
    await parent.run("go")
    assert results(parent)["a"].text == "the answer"


async def test_a_child_that_fails_is_a_result_of_its_parent() -> None:
    child, _ = agent_of([RuntimeError("child is broken")])

    async def ask() -> str:
        return (await child.run("go")).text

    parent, _ = agent_of([call("ask", "a"), "done"], ask)
    assert (await parent.run("go")).text == "done"
    assert "child is broken" in results(parent)["a"].text


async def test_a_run_inside_its_own_run_is_a_failed_result_and_no_deadlock() -> None:
    async def again() -> str:
        return (await agent.run("inner")).text

    agent, _ = agent_of([call("again", "a"), "done"], again)
    with anyio.fail_after(60):
        await agent.run("go")
    assert statuses(agent) == {"a": "failed"}


async def test_a_model_that_raises_anything_fails_the_run() -> None:
    agent, model = agent_of([ZeroDivisionError("oops"), "done"])
    with pytest.raises(RunFailed, match="ZeroDivisionError: oops"):
        await agent.run("go")
    assert (model.open_streams, (await agent.resume()).text) == (0, "done")


async def test_a_message_that_wakes_nobody_waits_for_the_next_run() -> None:
    agent, model = agent_of(["one", "two"])
    await agent.run("go")
    await agent.steer("by the way", wake=False)
    assert (await agent.resume()).text == "one"
    await agent.run("next")
    assert shape(model.requests[1].messages)[2:] == ["user: by the way", "user: next"]


async def test_a_tool_may_look_at_its_agent() -> None:
    seen: list[str] = []

    async def look() -> None:
        seen.extend(shape(agent.messages))
        seen.append(str(len(agent.state.open_calls)))

    agent, _ = agent_of([call("look", "a"), "done"], look)
    await agent.run("go")
    assert seen == ["user: go", "calls: a", "1"]
