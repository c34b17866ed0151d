"""Asking a human: the run parks, exactly the call that was approved is released, once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Ask, Verdict
from callboard.decide import ToolExecution
from callboard.hooks import Hooks
from callboard.journaling.records import Taken
from callboard.messages import ToolCall
from callboard.replies import Outcome
from callboard.testing import call, say
from tests.framework.approval_kit import GuardMixin, answer, charge, guarded
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_paired,
    assert_replays,
    marks,
    results,
    shape,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio


async def test_apr_01_the_run_parks_and_the_stored_call_runs_when_it_is_approved() -> None:
    agent, model, ledger = guarded(charge("a", 5), charge("b", 6), "done")
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests), ledger.entries) == (
        Outcome.AWAITING_APPROVAL,
        1,
        [],
    )
    assert [(a.tool_name, dict(a.preview), a.reason) for a in reply.pending] == [
        ("charge", {"amount": 5}, "costs money")
    ]
    await answer(agent, "a", yes=True)
    second = await agent.resume()
    assert (second.outcome, ledger.entries) == (Outcome.AWAITING_APPROVAL, [5])
    assert second.run_id == reply.run_id
    assert_replays(agent)


async def test_apr_01_other_arguments_need_their_own_approval() -> None:
    agent, _, ledger = guarded(charge("a", 5), charge("b", 5), "done")
    await agent.run("go")
    await answer(agent, "a", yes=True)
    await agent.resume()
    assert [a.call_id for a in agent.pending] == ["b"]
    assert ledger.entries == [5]


async def test_apr_02_a_second_answer_changes_nothing_and_later_runs_run_nothing() -> None:
    agent, _, ledger = guarded(charge("a"), "done", "hello")
    pending = (await agent.run("go")).pending[0]
    assert await agent.approve(pending.id, by="amy") is True
    assert await agent.approve(pending.id, by="amy") is False
    assert await agent.deny(pending.id, by="amy") is False
    assert (await agent.resume()).text == "done"
    assert (await agent.run("hi")).text == "hello"
    assert ledger.entries == [1]


async def test_apr_04_several_approvals_are_answered_in_any_order() -> None:
    agent, model, ledger = guarded(say(charge("a", 1), charge("b", 2), charge("c", 3)), "done")
    assert len((await agent.run("go")).pending) == 3
    await answer(agent, "c", yes=True)
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    await answer(agent, "a", yes=True)
    await answer(agent, "b", yes=False, reason="no")
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, len(model.requests)) == ([3, 1], 2)
    assert statuses(agent) == {"a": "ok", "b": "denied", "c": "ok"}
    assert_replays(agent)


async def test_apr_08_a_denial_has_its_text_and_the_sibling_its_result() -> None:
    agent, _, ledger = guarded(say(charge("a"), call("echo", "f", x="free")), "done")
    await agent.run("go")
    assert [result.text for result in results_now(agent)] == ["free"]
    await answer(agent, "a", yes=False, reason="not today")
    assert (await agent.resume()).text == "done"
    assert "not today" in results(agent)["a"].text
    assert (statuses(agent), ledger.entries) == ({"a": "denied", "f": "ok"}, [])


def results_now(agent: ReActAgent) -> list[Any]:
    return list(results(agent).values())


@pytest.mark.parametrize("id", ["made up", ""])
async def test_apr_11_an_unknown_id_is_refused(id: str) -> None:
    agent, _, ledger = guarded(charge("a"), "done")
    await agent.run("go")
    assert await agent.approve(id, by="eve") is False
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    assert ledger.entries == []


async def test_apr_11_another_agents_id_is_refused() -> None:
    agent, _, ledger = guarded(charge("a"), "done")
    other, _, _ = guarded(charge("a"), "done")
    pending = (await agent.run("go")).pending[0]
    await other.run("go")
    assert await other.approve(pending.id, by="eve") is False
    assert ledger.entries == []


async def test_qp_34_approve_one_deny_one_in_sequence() -> None:
    calls = (call("echo", "1", x="ls"), charge("2", 2), charge("3", 3), call("echo", "4", x="pwd"))
    agent, model, ledger = guarded(say(*calls), "done", tool_execution=ToolExecution.SEQUENTIAL)
    await agent.run("go")
    assert statuses(agent) == {"1": "ok"}
    for id, yes in (("2", True), ("3", False)):
        await answer(agent, id, yes=yes)
        await agent.resume()
    assert (ledger.entries, len(model.requests)) == ([2], 2)
    assert statuses(agent) == {"1": "ok", "2": "ok", "3": "denied", "4": "ok"}


async def test_qp_37_no_model_call_while_a_call_waits_and_siblings_run_in_parallel() -> None:
    calls = (call("echo", "1", x="ls"), charge("2"), call("echo", "3", x="pwd"))
    agent, model, _ = guarded(say(*calls), "done")
    await agent.run("go")
    assert (len(model.requests), statuses(agent)) == (1, {"1": "ok", "3": "ok"})
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    assert len(model.requests) == 1
    await answer(agent, "2", yes=True)
    await agent.resume()
    assert shape(model.requests[1].messages)[2:] == ["1: ls", "2: charged 1", "3: pwd"]


async def test_qp_38_a_grant_never_releases_another_call_and_is_not_burnt() -> None:
    class RewritingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            asked = call.with_arguments({"amount": amounts[0]}) if call.name == "charge" else call
            return await super()._deciding(asked)

    class Stack(GuardMixin, RewritingMixin): ...

    amounts, ledger = [1], Ledger()
    agent, _ = agent_of([charge("a"), "done"], ledger.charge, kind=Stack)
    await agent.run("go")
    await answer(agent, "a", yes=True)
    amounts[0] = 1000
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    assert ledger.entries == []
    assert [dict(a.preview) for a in agent.pending] == [{"amount": 1000}]


async def test_qp_40_a_denied_tool_is_never_pending() -> None:
    async def boom() -> str:
        raise AssertionError

    agent, _ = agent_of([call("boom", "a"), "done"], boom, kind=GuardMixin)
    assert (await agent.run("go")).outcome is Outcome.FINISHED
    assert (agent.pending, statuses(agent)) == ((), {"a": "denied"})


async def test_qp_44_a_guard_that_raises_denies() -> None:
    class Broken(GuardMixin):
        async def _deciding(self, call: ToolCall) -> Verdict:
            await super()._deciding(call)
            raise OSError("rule file is unreadable")

    ledger = Ledger()
    agent, _ = agent_of([charge("a"), "done"], ledger.charge, kind=Broken)
    await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_qp_46_an_interrupt_withdraws_what_waits() -> None:
    agent, _, ledger = guarded(say(charge("a"), call("echo", "f", x="1")), "fine")
    pending = (await agent.run("go")).pending[0]
    await agent.interrupt()
    assert (agent.pending, ledger.entries) == ((), [])
    assert statuses(agent) == {"a": "cancelled", "f": "ok"}
    assert await agent.approve(pending.id, by="amy") is False
    assert agent.state.last_outcome is Outcome.INTERRUPTED
    assert (await agent.run("next")).text == "fine"
    assert_replays(agent)


async def test_qp_48_a_question_while_parked_is_queued_and_is_no_denial() -> None:
    agent, model, ledger = guarded(charge("a"), "done", "the answer")
    await agent.run("go")
    reply = await agent.run("what path?")
    assert (reply.outcome, len(model.requests)) == (Outcome.AWAITING_APPROVAL, 1)
    assert [item.content[0].text for item in agent.state.queued] == ["what path?"]  # type: ignore[union-attr]
    await answer(agent, "a", yes=True)
    assert (await agent.resume()).text == "the answer"
    assert ledger.entries == [1]
    assert [type(r) for r in await agent.journal.read()].count(Taken) == 1


async def test_before_hooks_are_not_asked_again_about_a_call_that_was_answered() -> None:
    seen: list[str] = []
    hooks = Hooks(before_tool=lambda call: seen.append(call.id))
    agent, _, ledger = guarded(charge("a"), "done", hooks=hooks)
    await agent.run("go")
    await answer(agent, "a", yes=True)
    await agent.resume()
    assert (seen, ledger.entries) == (["a"], [1])


async def test_arguments_that_a_hook_changed_are_those_that_are_asked_about_and_run() -> None:
    hooks = Hooks(before_tool=lambda call: call.with_arguments({"amount": 3}))
    agent, _, ledger = guarded(charge("a", 9), "done", hooks=hooks)
    assert [dict(a.preview) for a in (await agent.run("go")).pending] == [{"amount": 3}]
    await answer(agent, "a", yes=True)
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [3]


async def test_a_park_ends_the_turn_and_the_answer_ends_the_call() -> None:
    agent, _, _ = guarded(charge("a"), "done")
    with agent.watch() as events:
        await agent.run("go")
        await answer(agent, "a", yes=True)
        await agent.resume()
    told = marks([event async for event in events])
    assert told.count("ts a") == told.count("te a") == 1
    assert told.index("approval_requested") < told.index("agent_end awaiting_approval")
    assert told.index("approval_resolved") < told.index("te a")
    assert told[-1] == "agent_end finished"


async def test_a_denied_call_that_waited_has_its_end_event() -> None:
    agent, _, _ = guarded(charge("a"), "done")
    with agent.watch() as events:
        await agent.run("go")
        await answer(agent, "a", yes=False)
        await agent.resume()
    told = marks([event async for event in events])
    assert (told.count("ts a"), told.count("te! a"), told.count("me a")) == (1, 1, 1)


async def test_a_denied_call_of_a_parked_run_that_is_interrupted_has_its_end_event() -> None:
    agent, _, _ = guarded(charge("a"), "done")
    with agent.watch() as events:
        await agent.run("go")
        await answer(agent, "a", yes=False)
        await agent.interrupt()
    told = marks([event async for event in events])
    assert (told.count("ts a"), told.count("te! a"), told.count("me a")) == (1, 1, 1)


async def test_a_day_of_waiting_costs_no_budget() -> None:
    agent, _, _ = guarded(charge("a"), "done")
    await agent.run("go")
    await anyio.sleep(86_400)
    await answer(agent, "a", yes=True)
    await agent.resume()
    assert agent._conversation.state.use.active_s < 60


class ExpiringMixin(GuardMixin):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return replace(verdict, expires_at=time.time()) if isinstance(verdict, Ask) else verdict


@pytest.mark.parametrize("answered", [True, False])
async def test_an_approval_that_comes_late_or_never_runs_nothing_and_says_so(
    answered: bool,
) -> None:
    ledger = Ledger()
    agent, _ = agent_of([charge("a"), "done"], ledger.charge, kind=ExpiringMixin)
    pending = (await agent.run("go")).pending[0]
    if answered:
        assert await agent.approve(pending.id, by="amy") is False
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert "expired" in results(agent)["a"].text
    assert_replays(agent)


async def test_an_answer_while_siblings_still_run_is_taken() -> None:
    async def approve_all() -> str:
        await anyio.sleep(1)
        for asked in agent.pending:
            await agent.approve(asked.id, by="amy")
        return "approved"

    ledger = Ledger()
    script: Script = [say(charge("a"), call("approve_all", "b")), "done"]
    agent, _ = agent_of(script, ledger.charge, approve_all, kind=GuardMixin)
    reply, _ = await watched(agent)
    assert (reply.text, ledger.entries) == ("done", [1])
    assert statuses(agent) == {"a": "ok", "b": "ok"}


async def test_an_interrupt_on_a_parked_agent_is_told_as_a_stretch_of_its_own() -> None:
    agent, _, _ = guarded(charge("a"), "done")
    with agent.watch() as events:
        await agent.run("go")
        await agent.interrupt()
    told = [event async for event in events]
    assert_paired(told)
    assert marks(told)[-5:] == [
        *["agent_start", "te! a", "ms tool", "me a", "agent_end interrupted"]
    ]


async def test_qp_38_the_call_that_was_granted_still_runs_once_it_is_the_same_again() -> None:
    class RewritingMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            return await super()._deciding(call.with_arguments({"amount": amounts[0]}))

    class Stack(GuardMixin, RewritingMixin): ...

    amounts, ledger = [1], Ledger()
    agent, _ = agent_of([charge("a"), "done"], ledger.charge, kind=Stack)
    await agent.run("go")
    await answer(agent, "a", yes=True)
    amounts[0] = 1000
    await agent.resume()
    await answer(agent, "a", yes=True)  # of 1000, while the call is one of 1 again
    amounts[0] = 1
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [1]
