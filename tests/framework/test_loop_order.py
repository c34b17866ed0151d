"""The order of things inside a run, and what decides whether it goes on."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from callboard.errors import ModelError
from callboard.hooks import Hooks, NextTurn
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage, StopReason
from callboard.model import ModelSettings
from callboard.replies import Outcome, RunFailed
from callboard.testing import ScriptedModel, call, error, say
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    boom,
    echo,
    shape,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio


async def test_pi_02_a_call_then_an_answer_take_two_turns() -> None:
    agent, model = agent_of([call("echo", "a", x="1"), "done"], echo)
    reply, events = await watched(agent, "hi")
    assert shape(reply.messages) == ["user: hi", "calls: a", "a: 1", "assistant: done"]
    assert [e.kind for e in events].count("turn_start") == 2
    assert [e.kind for e in events].count("turn_end") == 2
    assert shape(model.requests[1].messages)[-1] == "a: 1"


async def test_qp_02_a_call_and_an_answer_are_two_model_calls() -> None:
    agent, model = agent_of([call("echo", "a", x="ra"), "done"], echo)
    reply = await agent.run("hi")
    assert (reply.text, reply.outcome, len(model.requests)) == ("done", Outcome.FINISHED, 2)
    assert_replays(agent)


async def test_pi_06_two_prompts_are_announced_in_order_before_one_request() -> None:
    agent, model = agent_of(["done"])
    with agent.watch() as events:
        await agent.run(["one", "two"])
    told = [e.message.text async for e in events if e.kind == "message_end"]  # type: ignore[attr-defined]
    assert told == ["one", "two", "done"]
    assert shape(model.requests[0].messages) == ["user: one", "user: two"]


async def test_pi_08_the_second_run_continues_the_conversation() -> None:
    agent, model = agent_of(["first", "second"])
    await agent.run("a")
    reply = await agent.run("b")
    assert shape(model.requests[1].messages) == ["user: a", "assistant: first", "user: b"]
    assert shape(reply.messages) == ["user: b", "assistant: second"]


async def test_pi_18_a_tool_that_raises_is_a_result_and_the_run_goes_on() -> None:
    agent, _ = agent_of([call("boom", "a"), "done"], boom)
    assert (await agent.run("go")).text == "done"
    assert shape(agent.messages)[2] == "a: failed: ValueError: boom"


@pytest.mark.parametrize("stop", ["end", "other"])
async def test_lim_06_calls_of_a_complete_message_run_whatever_the_stop_reason(stop: str) -> None:
    agent, _ = agent_of([say("I look", call("echo", "a", x="1"), stop=stop), "done"], echo)
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "ok"}


@pytest.mark.parametrize("stop", ["refusal", "filter"])
async def test_lim_08_calls_beside_a_refusal_never_run(stop: str) -> None:
    ledger = Ledger()
    agent, model = agent_of(
        [say("no", call("charge", "a", amount=1), stop=stop), "later"], ledger.charge
    )
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.REFUSED, 1)
    assert (ledger.entries, statuses(agent)) == ([], {"a": "skipped"})
    assert (await agent.run("again")).text == "later"


async def test_pi_17_calls_of_a_message_that_the_limit_cut_never_run() -> None:
    ledger = Ledger()
    calls = (call("charge", "a", amount=1), call("charge", "b", amount=2))
    agent, model = agent_of([say(*calls, stop="length"), "done"], ledger.charge)
    assert (await agent.run("go")).text == "done"
    assert ledger.entries == []
    assert all("output limit" in text for text in shape(agent.messages)[2:4])
    assert len(model.requests) == 2


async def test_a_text_that_the_limit_cut_finishes_with_its_stop_reason() -> None:
    agent, _ = agent_of([say("half an ans", stop="length")])
    reply = await agent.run("go")
    assert (reply.outcome, reply.text) == (Outcome.FINISHED, "half an ans")
    assert reply.stop_reason is StopReason.LENGTH


async def test_qp_06_a_provider_error_fails_the_run_and_the_prompt_stays_once() -> None:
    agent, model = agent_of([error("500"), "done"])
    with pytest.raises(RunFailed) as failure:
        await agent.run("hi")
    assert isinstance(failure.value.__cause__, ModelError)
    assert failure.value.reply.outcome is Outcome.FAILED
    assert shape(failure.value.reply.messages) == ["user: hi"]
    assert (await agent.resume()).text == "done"
    assert shape(model.requests[1].messages) == ["user: hi"]


async def test_pi_60_a_transformed_context_is_sent_and_not_stored() -> None:
    seen: list[int] = []

    def last_two(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        seen.append(len(messages))
        return messages[-1:]

    agent, model = agent_of(["one", "two"], hooks=Hooks(transform_context=last_two))
    await agent.run("a")
    await agent.run("b")
    assert seen == [1, 3]
    assert shape(model.requests[1].messages) == ["user: b"]
    assert len(agent.messages) == 4


async def test_pi_62_the_next_turn_may_have_another_model_prompt_settings_and_tools() -> None:
    other = ScriptedModel(["done"], name="other")
    change = NextTurn(
        model=other, settings=ModelSettings(max_tokens=7), system_prompt="new", tools=[boom]
    )
    agent, _ = agent_of(
        [call("echo", "a", x="1")], echo, hooks=Hooks(prepare_next_turn=lambda _: change)
    )
    assert (await agent.run("go")).text == "done"
    request = other.requests[0]
    assert (request.system, request.settings.max_tokens) == ("new", 7)
    assert request.offer is not None
    assert [tool.name for tool in request.offer.tools] == ["boom"]


async def test_pi_56_a_context_hook_that_raises_fails_the_run_before_a_request() -> None:
    def explode(messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        raise RuntimeError("context exploded")

    agent, model = agent_of(["done"], hooks=Hooks(transform_context=explode))
    with pytest.raises(RunFailed, match="context exploded"):
        await agent.run("go")
    assert model.requests == []


async def test_pi_56_a_next_turn_hook_that_raises_fails_the_run_before_a_request() -> None:
    def explode(state: State) -> NextTurn:
        raise RuntimeError("no next turn")

    script: Script = [call("echo", "a", x="1"), "done"]
    agent, model = agent_of(script, echo, hooks=Hooks(prepare_next_turn=explode))
    with pytest.raises(RunFailed, match="no next turn"):
        await agent.run("go")
    assert len(model.requests) == 1
    assert statuses(agent) == {"a": "ok"}


async def test_a_system_prompt_may_be_a_function_asked_before_each_request() -> None:
    prompts = iter(["one", "two"])

    async def prompt() -> str:
        return next(prompts)

    agent, model = agent_of([call("echo", x="1"), "done"], echo, system_prompt=prompt)
    await agent.run("go")
    assert [request.system for request in model.requests] == ["one", "two"]


async def test_pi_60_a_context_that_cuts_a_round_in_two_is_mended() -> None:
    hooks = Hooks(transform_context=lambda messages: [messages[0], messages[-1]])
    agent, model = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    assert (await agent.run("go")).text == "done"
    assert shape(model.requests[1].messages) == ["user: go"]
    assert shape(agent.messages)[2] == "a: 1"


async def test_pi_60_a_context_hook_that_returns_nothing_changes_nothing() -> None:
    agent, model = agent_of(["done"], hooks=Hooks(transform_context=lambda messages: None))
    await agent.run("go")
    assert shape(model.requests[0].messages) == ["user: go"]
