"""What stacks of layers do to calls, records and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, SealedCall, Verdict
from callboard.composition import replaces
from callboard.errors import CommitFailed, StopRun
from callboard.journaling.records import MessageAdded, Observed, ToolStarted
from callboard.messages import AssistantMessage, Observation, Status, ToolCall, UserMessage
from callboard.model import ModelRequest, TextDelta
from callboard.replies import Outcome, Prompt, Reply
from callboard.testing import call, say, stream
from callboard.tooling.tools import Tool, tool
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


class OneMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        trail(self).append("one in")
        seen = await super()._acting(call)
        trail(self).append("one out")
        return seen


class TwoMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        trail(self).append("two in")
        seen = await super()._acting(call)
        trail(self).append("two out")
        return seen


def trail(agent: ReActAgent) -> list[str]:
    found: list[str] = agent.deps
    return found


@pytest.mark.parametrize(
    ("bases", "order"),
    [
        ((OneMixin, TwoMixin), ["one in", "two in", "two out", "one out"]),
        ((TwoMixin, OneMixin), ["two in", "one in", "one out", "two out"]),
    ],
)
async def test_layers_run_in_the_order_of_the_class_statement(
    bases: tuple[type[ReActAgent], ...], order: list[str]
) -> None:
    kind = type("Stack", bases, {})
    seen: list[str] = []
    agent, _ = agent_of([call("echo", x="1"), "done"], echo, kind=kind, deps=seen)
    await agent.run("go")
    assert seen == order


class DenyingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return Deny("by rule 7", rule="7") if call.name == "deny" else verdict


class AuditMixin(ReActAgent):
    def _committing(self, record: Any) -> Any:
        written = super()._committing(record)
        if isinstance(written, Observed):
            trail(self).append(f"{written.call_id} {written.observation.status}")
        return written


class Leaf(AuditMixin, DenyingMixin):
    async def _acting(self, call: SealedCall) -> Observation:
        return await super()._acting(call)


class NoLeaf(AuditMixin, DenyingMixin): ...


@pytest.mark.parametrize("kind", [Leaf, NoLeaf])
async def test_qp_25_a_denial_is_seen_by_the_audit_with_and_without_a_leaf(
    kind: type[ReActAgent],
) -> None:
    seen: list[str] = []
    denied = tool(name="deny")(echo)
    script: Script = [say(call("deny", "1", x="x"), call("echo", "2", x="x")), "done"]
    agent, _ = agent_of(script, denied, echo, kind=kind, deps=seen)
    await agent.run("go")
    assert seen == ["1 denied", "2 ok"]


async def test_hook_03_an_ok_that_never_reached_the_root_is_refused_by_name() -> None:
    class Broken(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            if call.name == "never":
                return await super()._acting(call)
            return Observation.of("all fine")

    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, kind=Broken)
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "failed"})
    assert "Broken" in results(agent)["a"].text


async def test_a_layer_may_refuse_in_acting() -> None:
    class Careful(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            if call.name == "charge":
                return Observation.of("not today", Status.DENIED)
            return await super()._acting(call)

    agent, _ = agent_of([call("charge", "a", amount=1), "done"], Ledger().charge, kind=Careful)
    await agent.run("go")
    assert shape(agent.messages)[2] == "a: denied: not today"


async def test_a_cache_marked_with_replaces_may_answer_for_the_tool() -> None:
    class Cached(ReActAgent):
        @replaces
        async def _acting(self, call: SealedCall) -> Observation:
            return Observation.of("cached")

    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, kind=Cached)
    await agent.run("go")
    assert shape(agent.messages)[2] == "a: cached"


async def test_a_rewrite_on_the_way_in_is_what_runs_and_what_guards_see() -> None:
    judged: list[Any] = []

    class RewritingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            return await super()._deciding(call.with_arguments({"x": "safe"}))

    class JudgingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            verdict = await super()._deciding(call)
            assert isinstance(verdict, Proceed)
            judged.append(verdict.call.arguments["x"])
            return verdict

    class Stack(JudgingMixin, RewritingMixin): ...

    agent, _ = agent_of([call("echo", "a", x="rm"), "done"], echo, kind=Stack)
    await agent.run("go")
    assert (judged, results(agent)["a"].text) == (["safe"], "safe")
    assert_replays(agent)


async def test_a_rewrite_on_the_way_out_is_denied() -> None:
    class Late(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            verdict = await super()._deciding(call)
            assert isinstance(verdict, Proceed)
            changed = verdict.call.call.with_arguments({"amount": 99})
            return Proceed(replace(verdict.call, call=changed))

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=1), "done"], ledger.charge, kind=Late)
    await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_a_rewrite_in_acting_is_refused() -> None:
    class Sly(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            changed = call.call.with_arguments({"amount": 99})
            return await super()._acting(replace(call, call=changed))

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=1), "done"], ledger.charge, kind=Sly)
    await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


@pytest.mark.parametrize(("effect", "runs"), [("idempotent", 2), ("pure", 2), ("effect", 1)])
async def test_a_layer_retries_only_what_may_run_twice(effect: str, runs: int) -> None:
    class Retrying(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            seen = await super()._acting(call)
            return seen if seen.status is Status.OK else await super()._acting(call.again())

    attempts: list[int] = []

    @tool(effect=effect)
    async def flaky() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("first")
        return "second"

    agent, _ = agent_of([call("flaky", "a"), "done"], flaky, kind=Retrying)
    await agent.run("go")
    assert len(attempts) == runs
    assert statuses(agent) == {"a": "ok" if runs == 2 else "failed"}
    assert_replays(agent)


async def test_entering_acting_twice_runs_the_tool_once() -> None:
    class Twice(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            await super()._acting(call)
            return await super()._acting(call)

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=5), "done"], ledger.charge, kind=Twice)
    await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([5], {"a": "ok"})


async def test_a_layer_that_fails_after_the_tool_ran_does_not_run_it_again() -> None:
    class Masking(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            await super()._acting(call)
            raise RuntimeError("mask is broken")

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=5), "done"], ledger.charge, kind=Masking)
    assert (await agent.run("go")).text == "done"
    assert ledger.entries == [5]
    assert "the tool ran and returned 'charged 5'" in results(agent)["a"].text


async def test_a_layers_facts_are_journaled_and_folded() -> None:
    class NotingMixin(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            await self._record("noting", {"tool": call.name})
            return await super()._acting(call)

    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, kind=NotingMixin)
    await agent.run("go")
    assert [dict(fact) for fact in agent.state.layers["noting"]] == [{"tool": "echo"}]
    assert_replays(agent)


async def test_a_redactor_changes_what_is_stored_and_sent() -> None:
    class RedactingMixin(ReActAgent):
        def _committing(self, record: Any) -> Any:
            if isinstance(record, Observed):
                record = replace(record, observation=Observation.of("[redacted]"))
            return super()._committing(record)

    agent, model = agent_of([call("echo", "a", x="s3cret"), "done"], echo, kind=RedactingMixin)
    await agent.run("go")
    assert shape(model.requests[1].messages)[-1] == "a: [redacted]"
    assert_replays(agent)


async def test_a_record_that_is_changed_on_the_way_out_fails_the_commit() -> None:
    class Late(ReActAgent):
        def _committing(self, record: Any) -> Any:
            written = super()._committing(record)
            return replace(written) if isinstance(written, MessageAdded) else written

    agent, _ = agent_of(["done"], kind=Late)
    with pytest.raises(CommitFailed, match="on its way out|way in"):
        await agent.run("go")


async def test_an_audit_that_cannot_write_keeps_the_effect_from_happening() -> None:
    class Failing(ReActAgent):
        def _committing(self, record: Any) -> Any:
            if isinstance(record, ToolStarted):
                raise OSError("disk is full")
            return super()._committing(record)

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=1)], ledger.charge, kind=Failing)
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    assert ledger.entries == []


async def test_a_layer_that_raises_on_a_delta_fails_the_commit() -> None:
    class Failing(ReActAgent):
        def _committing(self, record: Any) -> Any:
            if isinstance(record, TextDelta):
                raise OSError("disk is full")
            return super()._committing(record)

    agent, model = agent_of([stream("hello")], kind=Failing)
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    assert model.open_streams == 0


async def test_a_layer_may_change_the_request() -> None:
    class Hinting(ReActAgent):
        async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
            hinted = (*request.messages, UserMessage.of("be brief"))
            return await super()._reasoning(replace(request, messages=hinted))

    agent, model = agent_of(["done"], kind=Hinting)
    await agent.run("go")
    assert shape(model.requests[0].messages)[-1] == "user: be brief"
    assert shape(agent.messages) == ["user: go", "assistant: done"]


async def test_a_layer_may_end_the_run_after_a_call_and_the_result_is_kept() -> None:
    class Stopping(ReActAgent):
        async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
            if len(request.messages) > 1:
                raise StopRun("that will do")
            return await super()._reasoning(request)

    agent, model = agent_of([call("echo", "a", x="1")], echo, kind=Stopping)
    reply = await agent.run("go")
    assert (reply.outcome, reply.text, len(model.requests)) == (Outcome.STOPPED, "that will do", 1)
    assert statuses(agent) == {"a": "ok"}


async def test_an_outer_loop_enters_reply_again_in_one_run() -> None:
    class TwiceMixin(ReActAgent):
        async def reply(self, prompt: Prompt) -> Reply:
            first = await super().reply(prompt)
            again = Prompt.of(f"better than {first.text}", id=f"{prompt.id}/again")
            return await super().reply(again)

    script: Script = [call("echo", "a", x="1"), "one", call("echo", "b", x="2"), "two"]
    agent, model = agent_of(script, echo, kind=TwiceMixin, max_iters=2)
    reply = await agent.run("go")
    assert (reply.text, reply.outcome, len(model.requests)) == ("two", Outcome.FINISHED, 4)
    assert shape(agent.messages)[4] == "user: better than one"
    assert_replays(agent)


async def test_two_instances_share_nothing() -> None:
    class Offering(ReActAgent):
        def _tools(self) -> Sequence[Tool]:
            return super()._tools()

    one, _ = agent_of([call("echo", "a", x="1"), "done"], echo, kind=Offering)
    two, _ = agent_of(["hello"], kind=Offering)
    await one.run("go")
    await two.run("hi")
    assert shape(two.messages) == ["user: hi", "assistant: hello"]
