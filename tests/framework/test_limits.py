"""What ends a run early: turns, model calls, tokens, seconds, repeats. One road for all."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.budget import Budget
from callboard.errors import ConfigurationError
from callboard.messages import Usage
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, error, pause, say, stream
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    echo,
    shape,
    statuses,
    wait,
    watched,
)

pytestmark = pytest.mark.anyio


def echoes(count: int) -> list[ScriptItem]:
    return [call("echo", f"c{at}", x=str(at)) for at in range(count)]


async def test_lim_01_a_call_in_the_summary_is_neither_run_nor_stored() -> None:
    script: Script = [*echoes(2), say("let me check one more", call("echo", "c9", x="3"))]
    agent, model = agent_of(script, echo, max_iters=2)
    reply = await agent.run("go")
    assert (len(model.requests), model.requests[2].offer) == (3, None)
    assert (reply.outcome, reply.limit) == (Outcome.MAX_ITERS, "max_iters=2")
    assert shape(agent.messages)[-1] == "assistant: let me check one more"
    assert "c9" not in statuses(agent)
    assert [m.role for m in agent.messages].count("user") == 1


async def test_qp_03_the_summary_is_asked_for_with_an_instruction_that_is_not_stored() -> None:
    agent, model = agent_of([*echoes(2), "sum"], echo, max_iters=2)
    reply = await agent.run("go")
    assert "max_iters=2" in model.requests[2].messages[-1].text
    assert reply.text == "sum"
    assert shape(agent.messages)[-2:] == ["c1: 1", "assistant: sum"]
    assert_replays(agent)


async def test_qp_04_a_summary_that_calls_a_tool_keeps_its_text_only() -> None:
    ledger = Ledger()
    script: Script = [*echoes(2), say("sum", call("charge", "extra", amount=9))]
    agent, _ = agent_of(script, echo, ledger.charge, max_iters=2)
    reply, events = await watched(agent)
    assert (reply.text, ledger.entries) == ("sum", [])
    assert reply.message is not None
    assert not reply.message.calls
    assert not any("extra" in repr(event) for event in events if event.kind != "message_update")


async def test_lim_01_a_summary_of_calls_alone_falls_back_to_the_results() -> None:
    script: Script = [*echoes(2), call("echo", "c9", x="3")]
    agent, _ = agent_of(script, echo, max_iters=2)
    reply = await agent.run("go")
    assert (reply.outcome, reply.summary_failed) == (Outcome.MAX_ITERS, True)
    assert "max_iters=2" in reply.text
    assert "echo (ok): 1" in reply.text
    assert shape(agent.messages)[-1] == "c1: 1"


async def test_lim_02_a_summary_that_fails_is_a_reply_that_says_so() -> None:
    agent, _ = agent_of([*echoes(1), error("400", category="bad_request")], echo, max_iters=1)
    reply = await agent.run("go")
    assert (reply.outcome, reply.summary_failed) == (Outcome.MAX_ITERS, True)
    assert reply.error is not None
    assert "400" in reply.error
    assert "echo (ok): 0" in reply.text


async def test_lim_02_the_fallback_text_tells_of_all_rounds_and_is_bounded() -> None:
    calls = [call("echo", f"c{at}", x=f"{at}:" + "x" * 700) for at in range(3)]
    agent, _ = agent_of([*calls, error("down")], echo, max_iters=3)
    text = (await agent.run("go")).text
    assert all(f"{at}:" in text for at in range(3))
    assert len(text.encode()) <= 4_000


async def test_lim_03_the_last_results_are_read_by_the_summary() -> None:
    agent, model = agent_of([*echoes(1), "done"], echo, max_iters=1)
    assert (await agent.run("go")).text == "done"
    assert shape(model.requests[1].messages)[-2] == "c0: 0"


async def test_lim_03_an_answer_within_the_limit_is_no_limit() -> None:
    agent, _ = agent_of(["done"], echo, max_iters=1)
    reply = await agent.run("go")
    assert (reply.outcome, reply.limit) == (Outcome.FINISHED, None)


def test_lim_03_no_turn_at_all_is_refused_at_construction() -> None:
    with pytest.raises(ConfigurationError, match="max_iters=0"):
        ReActAgent(model=ScriptedModel(), max_iters=0)


@pytest.mark.parametrize("max_iters", [True, "3", 2.5])
async def test_max_iters_is_a_whole_number(max_iters: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"max_iters={max_iters!r}"):
        ReActAgent(model=ScriptedModel(), max_iters=max_iters)


def test_two_limits_of_turns_are_a_type_error() -> None:
    with pytest.raises(TypeError, match="not both"):
        ReActAgent(model=ScriptedModel(), max_iters=3, budget=Budget(turns=3))


@pytest.mark.parametrize("stop", ["tool_use", "end"])
async def test_lim_05_an_empty_message_is_asked_again_twice_and_then_ends(stop: str) -> None:
    agent, model = agent_of([], echo, then=say("", stop=stop))
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.EMPTY_REPLY, 3)
    assert "empty" in model.requests[1].messages[-1].text
    assert shape(agent.messages) == ["user: go"]


async def test_lim_05_the_nudge_is_not_stored() -> None:
    agent, _ = agent_of([say(""), "here"], echo)
    assert (await agent.run("go")).text == "here"
    assert shape(agent.messages) == ["user: go", "assistant: here"]


async def test_protocol_retries_spend_model_calls_and_not_turns() -> None:
    agent, _ = agent_of([say(""), *echoes(1), "done"], echo, max_iters=2)
    assert (await agent.run("go")).outcome is Outcome.FINISHED
    assert agent._conversation.state.use.model_calls == 3
    assert agent._conversation.state.use.turns == 2


async def test_lim_11_each_run_counts_its_turns_anew() -> None:
    script: Script = [*echoes(3), "sum one", *echoes(3), "sum two"]
    agent, model = agent_of(script, echo, max_iters=3)
    first, second = await agent.run("go"), await agent.run("go")
    assert (first.text, second.text, len(model.requests)) == ("sum one", "sum two", 8)
    assert first.outcome is second.outcome is Outcome.MAX_ITERS


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(turns=2), "turns=2"),
        (Budget(model_calls=2), "model_calls=2"),
        (Budget(tokens=20), "tokens=20"),
        (Budget(seconds=4), "seconds=4"),
    ],
)
async def test_every_limit_ends_with_a_summary_that_reads_the_results(
    budget: Budget, limit: str
) -> None:
    usage = Usage(input_tokens=9, output_tokens=1)

    async def rest(x: str) -> str:
        await anyio.sleep(2)
        return x

    script: Script = [say(call("rest", f"c{at}", x=str(at)), usage=usage) for at in range(2)]
    agent, model = agent_of([*script, "sum"], rest, budget=budget)
    reply = await agent.run("go")
    assert (reply.outcome, reply.limit, reply.text) == (Outcome.BUDGET, limit, "sum")
    assert len(model.requests) == 3
    assert_replays(agent)


async def test_three_identical_calls_with_identical_results_reach_a_limit() -> None:
    agent, model = agent_of([call("echo", x="1")] * 3 + ["sum"], echo)
    reply = await agent.run("go")
    assert (reply.limit, reply.text, len(model.requests)) == ("repeats=3", "sum", 4)


async def test_the_summary_after_repeats_leaves_the_next_run_alone() -> None:
    agent, _ = agent_of([call("echo", x="1")] * 3 + ["sum", "fine"], echo)
    await agent.run("go")
    assert (await agent.run("again")).outcome is Outcome.FINISHED


async def test_a_polling_tool_may_repeat_itself() -> None:
    @tool(polling=True)
    async def poll() -> str:
        return "not yet"

    agent, _ = agent_of([call("poll")] * 5 + ["done"], poll)
    assert (await agent.run("go")).outcome is Outcome.FINISHED


async def test_seconds_count_the_model_too() -> None:
    slow = stream(pause(5), call("echo", "a", x="1"))
    agent, _ = agent_of([slow, "sum"], echo, budget=Budget(seconds=4))
    assert (await agent.run("go")).limit == "seconds=4"


async def test_seconds_of_overlapping_tools_count_once() -> None:
    calls = [call("wait", f"c{at}", ms=2000 + at) for at in range(3)]
    agent, _ = agent_of([say(*calls), "done"], wait, budget=Budget(seconds=5))
    assert (await agent.run("go")).outcome is Outcome.FINISHED
    assert 2 <= agent._conversation.state.use.active_s < 3


async def test_repeats_of_unknown_tools_count_toward_the_limit() -> None:
    agent, model = agent_of([call("nope", x="1")] * 4 + ["sum"], echo, max_iters=2)
    assert (await agent.run("go")).outcome is Outcome.MAX_ITERS
    assert len(model.requests) == 3


async def test_a_limit_is_told_to_watchers() -> None:
    agent, _ = agent_of([*echoes(1), "sum"], echo, max_iters=1)
    _, events = await watched(agent)
    assert [e.limit for e in events if e.kind == "limit_reached"] == ["max_iters=1"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("turns", [1, 3])
async def test_lim_03_n_turns_are_never_more_than_n_and_one_model_calls(turns: int) -> None:
    agent, model = agent_of(echoes(9), echo, max_iters=turns)
    assert (await agent.run("go")).outcome is Outcome.MAX_ITERS
    assert (len(model.requests), len(statuses(agent))) == (turns + 1, turns)


@pytest.mark.parametrize("blank", ["   ", "\n\n"])
async def test_lim_05_blanks_alone_are_empty(blank: str) -> None:
    agent, model = agent_of([], echo, then=say(blank))
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.EMPTY_REPLY, 3)
    assert shape(agent.messages) == ["user: go"]


async def test_lim_05_a_summary_of_blanks_falls_back_to_the_results() -> None:
    agent, _ = agent_of([*echoes(1), " \n"], echo, max_iters=1)
    reply = await agent.run("go")
    assert (reply.outcome, reply.summary_failed) == (Outcome.MAX_ITERS, True)
    assert "echo (ok): 0" in reply.text


async def test_identical_calls_of_one_message_are_no_repetition() -> None:
    """Three dice that fall alike are three answers to one question."""
    dice = say(call("echo", "a", x="4"), call("echo", "b", x="4"), call("echo", "c", x="4"))
    agent, model = agent_of([dice, "done"], echo)
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.FINISHED, 2)
