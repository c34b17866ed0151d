"""Steering and follow-ups, as the loop takes them in (after the batch)."""

from __future__ import annotations

import anyio
import pytest

from callboard.decide import ToolExecution
from callboard.errors import ConfigurationError, ModelError
from callboard.events import AgentEnd, MessageEnd
from callboard.model import ModelRequest
from callboard.queues import QueueMode
from callboard.replies import Outcome, RunFailed
from callboard.testing import call, error, say
from tests.framework.kit import agent_of, assert_replays, echo, marks, shape, statuses, watched

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("execution", list(ToolExecution))
async def test_pi_31_steering_waits_for_the_whole_batch(execution: ToolExecution) -> None:
    async def ask() -> str:
        await agent.steer("plan B")
        return "ok"

    calls = (call("ask", "a"), call("echo", "b", x="2"))
    agent, model = agent_of([say(*calls), "done"], ask, echo, tool_execution=execution)
    _, events = await watched(agent)
    assert shape(model.requests[1].messages)[2:] == ["a: ok", "b: 2", "user: plan B"]
    assert marks(events).index("me b") < len(marks(events)) - marks(events)[::-1].index("ms user")


@pytest.mark.parametrize(
    ("mode", "calls", "context"),
    [
        (QueueMode.ONE_AT_A_TIME, 3, ["user: s1", "assistant: r1", "user: s2", "assistant: r2"]),
        (QueueMode.ALL, 2, ["user: s1", "user: s2", "assistant: r1"]),
    ],
)
async def test_pi_33_two_steers_during_a_tool(
    mode: QueueMode, calls: int, context: list[str]
) -> None:
    async def ask() -> str:
        await agent.steer("s1")
        await agent.steer("s2")
        return "ok"

    agent, model = agent_of([call("ask", "a"), "r1", "r2"], ask, queue_mode=mode)
    await agent.run("go")
    assert len(model.requests) == calls
    assert shape(agent.messages)[2:] == ["a: ok", *context]
    assert_replays(agent)


async def test_pi_34_a_steer_queued_while_idle_goes_behind_the_prompt() -> None:
    agent, model = agent_of(["done"])
    await agent.steer("and be brief")
    await agent.run("hi")
    assert shape(model.requests[0].messages) == ["user: hi", "user: and be brief"]


@pytest.mark.parametrize(
    ("mode", "seen"), [(QueueMode.ONE_AT_A_TIME, [1, 2, 3]), (QueueMode.ALL, [1, 3])]
)
async def test_pi_36_two_follow_ups(mode: QueueMode, seen: list[int]) -> None:
    agent, model = agent_of([], then="ok", queue_mode=mode)
    await agent.follow_up("f1")
    await agent.follow_up("f2")
    await agent.run("go")
    users = [sum(m.role == "user" for m in request.messages) for request in model.requests]
    assert users == seen
    assert agent.state.queued == ()


async def test_pi_38_an_error_leaves_the_queues_untouched() -> None:
    async def fail(_: ModelRequest) -> ModelError:
        await agent.steer("s")
        await agent.follow_up("f")
        return error("down")

    agent, model = agent_of([fail])
    with pytest.raises(RunFailed, match="down"):
        await agent.run("go")
    assert len(model.requests) == 1
    assert [item.lane for item in agent.state.queued] == ["steering", "follow_up"]


async def test_a_steer_during_the_last_answer_makes_another_turn() -> None:
    async def late(_: ModelRequest) -> str:
        await agent.steer("wait")
        return "first"

    agent, _ = agent_of([late, "second"])
    assert (await agent.run("go")).text == "second"
    assert shape(agent.messages)[1:3] == ["assistant: first", "user: wait"]


async def test_steering_goes_before_follow_ups() -> None:
    agent, _ = agent_of([], then="ok")
    await agent.follow_up("later")
    await agent.steer("now")
    await agent.run("go")
    asked = [word for word in shape(agent.messages) if word.startswith("user")]
    assert asked == ["user: go", "user: now", "user: later"]


async def test_a_queued_message_can_be_withdrawn_once() -> None:
    agent, model = agent_of(["done"])
    item = await agent.steer("never mind")
    assert [one.item_id for one in agent.state.queued] == [item]
    assert [await agent.withdraw(item), await agent.withdraw(item)] == [True, False]
    await agent.run("go")
    assert shape(model.requests[0].messages) == ["user: go"]


async def test_a_taken_message_cannot_be_withdrawn() -> None:
    agent, _ = agent_of(["done"])
    item = await agent.steer("now")
    await agent.run("go")
    assert await agent.withdraw(item) is False


async def test_nothing_cannot_be_queued() -> None:
    agent, _ = agent_of([])
    with pytest.raises(ConfigurationError, match="no content"):
        await agent.steer("")


async def test_steer_01_a_steer_outlives_an_abort_and_is_delivered_once() -> None:
    async def wait() -> str:
        await agent.steer("use plan B")
        await anyio.sleep(100)
        return "never"

    agent, model = agent_of([say(call("wait", "a"), call("wait", "b")), "done", "more"], wait)
    with anyio.move_on_after(1):
        await agent.run("go")
    assert [item.content[0].text for item in agent.state.queued] == ["use plan B"] * 2  # type: ignore[union-attr]
    await agent.run("go on")
    delivered = shape(model.requests[-1].messages)
    assert delivered.count("user: use plan B") == 2
    assert delivered.count("user: go on") == 1


async def test_interrupt_lists_what_waits_and_clears_it_on_demand() -> None:
    agent, model = agent_of(["done"])
    await agent.steer("one")
    await agent.follow_up("two")
    assert [item.lane for item in await agent.interrupt()] == ["steering", "follow_up"]
    assert len(agent.state.queued) == 2
    assert len(await agent.interrupt(clear=True)) == 2
    await agent.run("go")
    assert shape(model.requests[0].messages) == ["user: go"]


async def test_pi_44_what_is_told_for_the_next_turn_outlives_a_clearing_interrupt() -> None:
    agent, model = agent_of(["done"])
    await agent.steer("first", wake=False)
    await agent.steer("now")
    await agent.follow_up("later")
    assert [item.lane for item in await agent.interrupt(clear=True)] == ["steering", "follow_up"]
    await agent.run("next")
    assert shape(model.requests[0].messages) == ["user: first", "user: next"]


async def test_pi_40_an_interrupt_between_two_steers_leaves_each_of_them_once() -> None:
    async def ask() -> str:
        await agent.steer("s1")
        await agent.steer("s2")
        return "ok"

    agent, model = agent_of([call("ask", "a")], ask, then="r", queue_mode=QueueMode.ALL)
    async with agent.stream("go") as events:
        async for event in events:
            if isinstance(event, MessageEnd) and event.message and event.message.text == "s1":
                await agent.interrupt()
    await agent.run("next")
    asked = [word for word in shape(model.requests[-1].messages) if word.startswith("user")]
    assert sorted(asked) == ["user: go", "user: next", "user: s1", "user: s2"]


async def test_pi_42_a_follow_up_at_the_end_of_a_run_waits_for_resume() -> None:
    agent, _ = agent_of(["one", "two"])
    async with agent.stream("go") as events:
        async for event in events:
            if isinstance(event, AgentEnd):
                await agent.follow_up("more")
    assert [item.lane for item in agent.state.queued] == ["follow_up"]
    assert (await agent.resume()).text == "two"


async def test_pi_48_a_note_behind_the_last_answer_is_taken_in_by_the_next_question() -> None:
    agent, model = agent_of(["one", "two"])
    await agent.run("go")
    await agent.steer("the weather changed", wake=False)
    assert (await agent.resume()).text == "one"
    await agent.follow_up("and now?")
    assert (await agent.resume()).text == "two"
    assert shape(model.requests[1].messages)[2:] == ["user: the weather changed", "user: and now?"]


async def test_a_follow_up_after_a_run_is_answered_by_resume() -> None:
    agent, _ = agent_of(["one", "two"])
    await agent.run("go")
    await agent.follow_up("more")
    reply = await agent.resume()
    assert (reply.text, reply.outcome) == ("two", Outcome.FINISHED)


async def test_a_steer_between_two_calls_of_a_sequence_changes_neither() -> None:
    async def ask(x: str) -> str:
        await agent.steer(f"after {x}")
        return x

    calls = (call("ask", "a", x="1"), call("ask", "b", x="2"))
    agent, _ = agent_of([say(*calls)], ask, then="ok", tool_execution=ToolExecution.SEQUENTIAL)
    await agent.run("go")
    assert statuses(agent) == {"a": "ok", "b": "ok"}


@pytest.mark.parametrize("mode", list(QueueMode))
async def test_steer_01_what_a_cut_off_run_was_told_stands_before_the_next_prompt(
    mode: QueueMode,
) -> None:
    async def wait() -> None:
        await agent.steer("use plan B")
        await agent.steer("and be quick")
        await anyio.sleep(100)

    agent, model = agent_of([call("wait", "a"), "done"], wait, queue_mode=mode)
    with anyio.move_on_after(1):
        await agent.run("go")
    await agent.steer("said while idle")
    assert (await agent.run("go on")).text == "done"
    assert shape(model.requests[1].messages)[3:] == [
        *["user: use plan B", "user: and be quick", "user: go on", "user: said while idle"]
    ]
    assert_replays(agent)


async def test_pi_36_what_waits_counts_down_as_it_is_taken() -> None:
    def look(request: ModelRequest) -> str:
        waiting.append(len(agent.state.queued))
        return "ok"

    waiting: list[int] = []
    agent, _ = agent_of([], then=look)
    for text in ("f1", "f2"):
        await agent.follow_up(text)
        waiting.append(len(agent.state.queued))
    await agent.run("go")
    assert waiting == [1, 2, 2, 1, 0]


async def test_messages_that_do_not_wake_go_in_front_of_a_follow_up_and_take_no_turn() -> None:
    agent, model = agent_of(["one", "two"])
    await agent.run("first")
    for text in ("by the way", "besides"):
        await agent.steer(text, wake=False)
    await agent.follow_up("and then?")
    assert (await agent.resume()).text == "two"
    assert [m.text for m in model.requests[1].messages[2:]] == [
        "by the way",
        "besides",
        "and then?",
    ]
    assert agent.state.queued == ()
