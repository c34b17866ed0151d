"""The exact order of events, and that every start has its end."""

from __future__ import annotations

import anyio
import pytest

from callboard.approvals import Deny
from callboard.decide import ToolExecution
from callboard.events import AgentEnd, Event, MessageStart, ToolEnd, TurnEnd
from callboard.hooks import Hooks
from callboard.messages import ToolCall
from callboard.replies import Outcome, RunFailed
from callboard.testing import call, error, raw_call, say, stream
from callboard.tooling.tools import tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_paired,
    echo,
    marks,
    of_tools,
    wait,
    watched,
)

pytestmark = pytest.mark.anyio

SLOW_AND_FAST = say(call("wait", "a", ms=50), call("wait", "b", ms=10))


async def test_a_whole_run_in_order() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), stream("do", "ne")], echo)
    _, events = await watched(agent)
    turn_one = ["turn_start", "ms user", "me user", "ms assistant", "me assistant"]
    assert marks(events) == [
        "agent_start",
        *turn_one,
        *["ts a", "te a", "ms tool", "me a", "turn_end"],
        *["turn_start", "ms assistant", "message_update", "message_update", "me assistant"],
        *["turn_end", "agent_end finished"],
    ]


async def test_events_are_numbered_from_one_and_name_their_run() -> None:
    agent, _ = agent_of(["one", "two"], name="bob")
    await agent.run("go")
    reply, events = await watched(agent)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert {event.run_id for event in events} == {reply.run_id}
    assert {str(event.address.key) for event in events} == {"bob"}


async def test_pi_09_in_parallel_ends_come_as_they_come_and_results_in_call_order() -> None:
    agent, _ = agent_of([SLOW_AND_FAST, "done"], wait)
    _, events = await watched(agent)
    assert of_tools(events) == ["ts a", "ts b", "te b", "te a", "me a", "me b"]
    first = next(event for event in events if isinstance(event, TurnEnd))
    assert [result.call_id for result in first.results] == ["a", "b"]


IN_SEQUENCE = ["ts a", "te a", "me a", "ts b", "te b", "me b"]


async def test_pi_10_in_sequence_each_result_is_told_before_the_next_start() -> None:
    agent, _ = agent_of([SLOW_AND_FAST, "done"], wait, tool_execution=ToolExecution.SEQUENTIAL)
    _, events = await watched(agent)
    assert of_tools(events) == IN_SEQUENCE


async def test_pi_11_one_sequential_tool_makes_the_batch_sequential() -> None:
    quick = tool(name="quick", sequential=True)(echo)
    agent, _ = agent_of(
        [say(call("wait", "a", ms=50), call("quick", "b", x="1")), "done"], wait, quick
    )
    _, events = await watched(agent)
    assert of_tools(events) == IN_SEQUENCE


async def test_pi_13_a_call_that_cannot_run_ends_before_later_starts() -> None:
    calls = (call("wait", "a", ms=10), call("nope", "nope"), call("wait", "c", ms=20))
    agent, _ = agent_of([say(*calls), "done"], wait)
    reply, events = await watched(agent)
    starts_and_ends = ["ts a", "ts nope", "te! nope", "ts c", "te a", "te c"]
    assert of_tools(events) == [*starts_and_ends, "me a", "me nope", "me c"]
    assert reply.text == "done"


async def test_pi_23_a_denied_call_ends_before_later_starts() -> None:
    def deny_a(call: ToolCall) -> Deny | None:
        return Deny("no!") if call.id == "a" else None

    script: Script = [say(call("echo", "a", x="1"), call("echo", "b", x="2")), "done"]
    agent, _ = agent_of(script, echo, hooks=Hooks(before_tool=deny_a))
    _, events = await watched(agent)
    assert of_tools(events) == ["ts a", "te! a", "ts b", "te b", "me a", "me b"]


async def test_calls_that_the_output_limit_cut_start_and_end_each() -> None:
    agent, _ = agent_of(
        [say(call("echo", "a", x="1"), call("echo", "b", x="2"), stop="length"), "done"], echo
    )
    _, events = await watched(agent)
    assert of_tools(events) == ["ts a", "te! a", "ts b", "te! b", "me a", "me b"]


async def test_invalid_arguments_start_and_end() -> None:
    agent, _ = agent_of([raw_call("echo", "{", id="a"), "done"], echo)
    _, events = await watched(agent)
    assert of_tools(events) == ["ts a", "te! a", "me a"]


async def test_the_start_carries_the_arguments_as_the_model_wrote_them() -> None:
    agent, _ = agent_of([raw_call("wait", '{ "ms": "5" }', id="a"), "done"], wait)
    _, events = await watched(agent)
    start = next(event for event in events if event.kind == "tool_start")
    assert start.call.raw == '{ "ms": "5" }'  # type: ignore[attr-defined]


async def test_a_steering_message_is_told_in_the_turn_that_takes_it() -> None:
    async def ask() -> str:
        await agent.steer("stop that")
        return "ok"

    agent, _ = agent_of([call("ask", "a"), "done"], ask)
    _, events = await watched(agent)
    at = marks(events).index("me a")
    assert marks(events)[at + 1 : at + 5] == ["turn_end", "turn_start", "ms user", "me user"]


async def test_a_failed_model_call_ends_its_message_its_turn_and_its_run() -> None:
    agent, _ = agent_of([stream("par", error("down"))])
    with agent.watch() as events, pytest.raises(RunFailed):
        await agent.run("go")
    told = marks([event async for event in events])
    assert told[-4:] == ["message_update", "me nothing", "turn_end", "agent_end failed"]


async def test_a_cancelled_run_tells_all_its_ends() -> None:
    ledger = Ledger()
    agent, _ = agent_of([say(call("slow", "a"), call("slow", "b"))], ledger.slow)
    with agent.watch() as events:
        with anyio.move_on_after(1):
            await agent.run("go")
    told = [event async for event in events]
    assert_paired(told)
    ends = ["te! a", "te! b", "ms tool", "me a", "ms tool", "me b", "turn_end"]
    assert marks(told)[-8:] == [*ends, "agent_end interrupted"]


async def test_a_call_that_ended_before_the_cut_is_not_told_again() -> None:
    ledger = Ledger()
    calls = (call("slow", "a"), call("wait", "b", ms=10))
    agent, _ = agent_of([say(*calls)], ledger.slow, wait)
    with agent.watch() as events:
        with anyio.move_on_after(1):
            await agent.run("go")
    told = of_tools([event async for event in events])
    assert told == ["ts a", "ts b", "te b", "te! a", "me a", "me b"]


async def test_an_interrupted_run_tells_all_its_ends() -> None:
    async def ask() -> str:
        await agent.interrupt()
        await anyio.sleep(1)
        return "never"

    agent, _ = agent_of([say(call("ask", "a"), call("echo", "b", x="1"))], ask, echo)
    reply, events = await watched(agent)
    assert reply.outcome is Outcome.INTERRUPTED
    assert_paired(events)


async def test_a_listener_that_raises_is_isolated() -> None:
    def broken(event: Event) -> None:
        raise RuntimeError("broken listener")

    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    agent._watchers.add(broken)
    reply, events = await watched(agent)
    assert reply.text == "done"
    assert_paired(events)


async def test_a_summary_is_a_message_in_a_turn() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "sum"], echo, max_iters=1)
    _, events = await watched(agent)
    assert_paired(events)
    at = marks(events).index("limit_reached")
    told = marks(events)[at:]
    assert "ms assistant" in told
    assert told[-1] == "agent_end max_iters"


async def test_agent_end_comes_when_all_is_settled() -> None:
    seen: list[Outcome | None] = []

    def listen(event: Event) -> None:
        if isinstance(event, AgentEnd):
            seen.append(agent.state.last_outcome)

    agent, _ = agent_of(["done"])
    agent._watchers.add(listen)
    await agent.run("go")
    assert seen == [Outcome.FINISHED]


async def test_an_end_tells_the_observation_as_the_model_sees_it() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    _, events = await watched(agent)
    assert [e.observation.text for e in events if isinstance(e, ToolEnd)] == ["1"]
    assert [e.role for e in events if isinstance(e, MessageStart)] == [
        *["user", "assistant", "tool", "assistant"]
    ]
