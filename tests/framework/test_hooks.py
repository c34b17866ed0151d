"""Hooks: called once around the outermost step, isolated, fail closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Deny, SealedCall, Verdict
from callboard.hooks import Hooks
from callboard.journaling.records import ToolFinished
from callboard.messages import AssistantMessage, Observation, Status, TextBlock, ToolCall
from callboard.model import ModelRequest
from callboard.testing import call, say
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    echo,
    results,
    shape,
    statuses,
)

pytestmark = pytest.mark.anyio

TWO = say(call("echo", "a", x="1"), call("echo", "b", x="2"))


class Layer(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


class Leaf(Layer):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


@pytest.mark.parametrize("kind", [ReActAgent, Layer, Leaf])
async def test_hook_01_hooks_run_once_whatever_the_layers(kind: type[ReActAgent]) -> None:
    seen: list[str] = []
    hooks = Hooks(
        before_tool=lambda call: seen.append("before"),
        after_tool=lambda call, observation: seen.append("after"),
    )
    agent, _ = agent_of([call("echo", x="1"), "done"], echo, kind=kind, hooks=hooks)
    await agent.run("go")
    assert seen == ["before", "after"]


async def test_qp_26_hooks_belong_to_one_agent() -> None:
    seen: list[str] = []
    hooks = Hooks(before_tool=lambda call: seen.append(call.id))
    one, _ = agent_of([call("echo", "a", x="1"), "done"], echo, kind=Layer, hooks=hooks)
    two, _ = agent_of([call("echo", "b", x="1"), "done"], echo)
    await one.run("go")
    await two.run("go")
    assert seen == ["a"]


async def test_pi_23_a_denied_call_is_not_run_and_its_sibling_is() -> None:
    def deny_a(call: ToolCall) -> Deny | None:
        return Deny("no!") if call.id == "a" else None

    agent, model = agent_of([TWO, "done"], echo, hooks=Hooks(before_tool=deny_a))
    await agent.run("go")
    assert shape(model.requests[1].messages)[2:] == ["a: denied: no!", "b: 2"]


async def test_pi_23_a_denial_without_a_reason_has_a_text() -> None:
    hooks = Hooks(before_tool=lambda call: Deny(""))
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert results(agent)["a"].text


async def test_pi_24_a_before_hook_that_raises_denies() -> None:
    def broken(call: ToolCall) -> None:
        raise RuntimeError("hook is broken")

    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, hooks=Hooks(before_tool=broken))
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert "hook is broken" in results(agent)["a"].text


async def test_pi_26_arguments_that_a_hook_changed_reach_the_tool() -> None:
    hooks = Hooks(before_tool=lambda call: call.with_arguments({"x": "changed"}))
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert results(agent)["a"].text == "changed"
    assert_replays(agent)


async def test_pi_26_arguments_that_a_hook_broke_are_a_refusal() -> None:
    hooks = Hooks(before_tool=lambda call: call.with_arguments({"amount": "much"}))
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, hooks=hooks)
    assert (await agent.run("go")).text == "done"
    assert ledger.entries == []
    assert "amount" in results(agent)["a"].text


async def test_qp_22_a_hook_that_returns_nothing_changes_nothing() -> None:
    hooks = Hooks(before_tool=lambda call: None, after_tool=lambda call, observation: None)
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert results(agent)["a"].text == "1"


async def test_an_after_hook_changes_what_the_model_sees_and_the_tools_own_word_is_kept() -> None:
    hooks = Hooks(after_tool=lambda call, seen: Observation.of("masked"))
    agent, model = agent_of([call("echo", "a", x="secret"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert shape(model.requests[1].messages)[-1] == "a: masked"
    kept = [r for r in await agent.journal.read() if isinstance(r, ToolFinished)]
    assert kept[0].observation.text == "secret"


async def test_pi_28_an_after_hook_that_raises_fails_this_result_only() -> None:
    def broken(call: ToolCall, observation: Observation) -> None:
        if call.id == "a":
            raise RuntimeError("mask is broken")

    agent, _ = agent_of([TWO, "done"], echo, hooks=Hooks(after_tool=broken))
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "failed", "b": "ok"}
    text = results(agent)["a"].text
    assert text.startswith("the tool ran and returned '1'; post-processing failed:")


@pytest.mark.parametrize("both", [True, False])
async def test_pi_29_an_after_hook_may_end_the_run(both: bool) -> None:
    def finish(call: ToolCall, seen: Observation) -> Observation:
        wanted = both or call.id == "a"
        return Observation(content=seen.content, terminate=wanted)

    agent, model = agent_of([TWO, "done"], echo, hooks=Hooks(after_tool=finish))
    await agent.run("go")
    assert len(model.requests) == (1 if both else 2)


async def test_pi_29_a_denial_may_end_the_run() -> None:
    hooks = Hooks(before_tool=lambda call: Deny("stop here", terminate=True))
    agent, model = agent_of([TWO], echo, hooks=hooks)
    await agent.run("go")
    assert (len(model.requests), agent.messages[-1].role) == (1, "tool")


async def test_hooks_may_be_async() -> None:
    async def before(call: ToolCall) -> ToolCall:
        return call.with_arguments({"x": "new"})

    async def after(call: ToolCall, seen: Observation) -> Observation:
        return Observation.of(f"{seen.text}!")

    hooks = Hooks(before_tool=before, after_tool=after)
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert results(agent)["a"].text == "new!"


async def test_qp_24_a_message_that_a_layer_changed_is_the_reply_and_the_memory() -> None:
    class Shouting(ReActAgent):
        async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
            message = await super()._reasoning(request)
            return replace(message, content=(TextBlock(text="LOUD"),))

    agent, _ = agent_of(["quiet"], kind=Shouting)
    assert (await agent.run("go")).text == "LOUD"
    assert shape(agent.messages) == ["user: go", "assistant: LOUD"]


async def test_a_layer_that_raises_while_deciding_denies() -> None:
    class Broken(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            await super()._deciding(call)
            raise RuntimeError("rules are unreadable")

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=1), "done"], ledger.charge, kind=Broken)
    await agent.run("go")
    assert (ledger.entries, results(agent)["a"].status) == ([], Status.DENIED)


async def test_qp_22_what_a_hook_is_given_cannot_be_edited() -> None:
    refused: list[type] = []

    def edit(given: ToolCall) -> None:
        try:
            given.arguments["x"] = "edited"
        except TypeError as error:
            refused.append(type(error))

    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=Hooks(before_tool=edit))
    await agent.run("go")
    assert (refused, results(agent)["a"].text) == ([TypeError], "1")


@pytest.mark.parametrize(
    "answer", ["yes", ToolCall(id="other", name="charge"), ToolCall(id="a", name="echo")]
)
async def test_pi_24_a_before_hook_that_answers_with_something_else_denies(answer: Any) -> None:
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    hooks = Hooks(before_tool=lambda call: answer)
    agent, _ = agent_of(script, ledger.charge, echo, hooks=hooks)
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert_replays(agent)
