"""Who may decide, for how long, and for how much: approvers, expiry, wider grants, withdrawal."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval, Ask, Deny, GrantScope, Proceed, Verdict
from callboard.approving import ApprovalPolicy, OnPrompt
from callboard.decide import ToolExecution
from callboard.errors import ConfigurationError, NotAnApprover
from callboard.events import Warned
from callboard.messages import ToolCall, UserMessage
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import call, say
from tests.framework.approval_kit import GuardMixin, answer, charge, guarded
from tests.framework.kit import (
    Ledger,
    SlowJournal,
    agent_of,
    assert_replays,
    results,
    shape,
    statuses,
)

pytestmark = pytest.mark.anyio


async def pending_of(*script: Any, **options: Any) -> tuple[ReActAgent, Ledger, Approval]:
    """An agent that is parked on the first call of its script."""
    agent, _, ledger = guarded(*script, **options)
    return agent, ledger, (await agent.run("go")).pending[0]


# -- who -------------------------------------------------------------------------------------------


def only_bob(asked: Approval, by: str) -> bool:
    return by == "bob"


@pytest.mark.parametrize("approvers", [["bob"], only_bob], ids=["names", "a function"])
async def test_who_may_not_decide_is_refused_and_nothing_changes(approvers: Any) -> None:
    rules = ApprovalPolicy(approvers=approvers)
    agent, ledger, asked = await pending_of(charge("a"), "done", approvals=rules)
    with pytest.raises(NotAnApprover, match="eve"):
        await agent.approve(asked.id, by="eve")
    with pytest.raises(NotAnApprover, match="eve"):
        await agent.deny(asked.id, by="eve")
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    assert await agent.approve(asked.id, by="bob") is True
    await agent.resume()
    assert ledger.entries == [1]


async def test_a_rule_that_raises_lets_nobody_decide() -> None:
    async def ask_the_directory(asked: Approval, by: str) -> bool:
        raise OSError("no network")

    rules = ApprovalPolicy(approvers=ask_the_directory)
    agent, _, asked = await pending_of(charge("a"), approvals=rules)
    with pytest.raises(NotAnApprover, match="no network"):
        await agent.approve(asked.id, by="bob")
    assert agent.pending == (asked,)


async def test_the_refusal_names_those_who_may() -> None:
    rules = ApprovalPolicy(approvers=("bob", "amy"))
    agent, _, asked = await pending_of(charge("a"), approvals=rules)
    assert asked.approvers == ("amy", "bob")
    with pytest.raises(NotAnApprover, match="amy, bob may"):
        await agent.approve(asked.id, by="eve")


async def test_who_decided_is_kept() -> None:
    agent, _, asked = await pending_of(charge("a"), "done")
    await agent.approve(asked.id, by="amy")
    kept = agent.approval(asked.id)
    assert kept is not None
    assert (kept.by, kept.status) == ("amy", "approved")


async def test_nobody_decides_without_a_name() -> None:
    agent, _, asked = await pending_of(charge("a"))
    with pytest.raises(ConfigurationError, match="by=''"):
        await agent.approve(asked.id, by="")


def test_one_name_is_not_a_list_of_letters() -> None:
    with pytest.raises(ConfigurationError, match="bob"):
        ApprovalPolicy(approvers="bob")


# -- once, and in time -----------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False], ids=["approved", "denied"])
async def test_a_second_answer_says_what_the_first_one_was(first: bool) -> None:
    agent, _, asked = await pending_of(charge("a"), "done")
    await answer(agent, "a", yes=first)
    with agent.watch() as events:
        assert await agent.approve(asked.id, by="bob") is False
    told = [event.text async for event in events if isinstance(event, Warned)]
    assert told == [f"{asked.id} was {'approved' if first else 'denied'} already by amy"]
    assert_replays(agent)


async def test_every_question_may_expire_by_default() -> None:
    rules = ApprovalPolicy(expires_s=3600)
    _, _, asked = await pending_of(charge("a"), approvals=rules)
    assert asked.expires_at is not None
    assert 3500 < asked.expires_at - time.time() <= 3600


async def test_a_late_approval_says_so_and_runs_nothing() -> None:
    rules = ApprovalPolicy(expires_s=1e-9)
    agent, ledger, asked = await pending_of(charge("a"), "done", approvals=rules)
    with agent.watch() as events:
        assert await agent.approve(asked.id, by="amy") is False
    told = [event.text async for event in events if isinstance(event, Warned)]
    assert told == [f"{asked.id} expired before it was answered; its call did not run"]
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert "expired" in results(agent)["a"].text


# -- withdrawal, and what is said meanwhile --------------------------------------------------------


async def test_a_withdrawn_question_skips_its_call() -> None:
    agent, ledger, asked = await pending_of(say(charge("a"), charge("b", 2)), "done")
    assert await agent.withdraw(asked.id) is True
    assert await agent.withdraw(asked.id) is False
    assert await agent.approve(asked.id, by="amy") is False
    await answer(agent, "b", yes=True)
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([2], {"a": "skipped", "b": "ok"})
    assert_replays(agent)


async def test_by_policy_a_prompt_withdraws_what_waits() -> None:
    rules = ApprovalPolicy(on_prompt="withdraw")
    agent, ledger, asked = await pending_of(charge("a"), "never mind", approvals=rules)
    reply = await agent.run("stop that")
    assert (reply.text, ledger.entries) == ("never mind", [])
    assert shape(agent.messages)[2:] == [
        *["a: skipped: This call was not run: the question whether it may run was withdrawn."],
        *["user: stop that", "assistant: never mind"],
    ]
    assert await agent.approve(asked.id, by="amy") is False


def test_an_unknown_policy_names_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match="queue, withdraw"):
        ApprovalPolicy(on_prompt="forget")
    assert ApprovalPolicy().on_prompt is OnPrompt.QUEUE


@pytest.mark.parametrize("policy", [SteeringPolicy.SKIP_PENDING, SteeringPolicy.INTERRUPT])
async def test_steering_that_skips_withdraws_what_a_parked_agent_waits_for(
    policy: SteeringPolicy,
) -> None:
    agent, ledger, asked = await pending_of(charge("a"), "fine", steering_policy=policy)
    await agent.steer("never mind")
    assert (await agent.resume()).text == "fine"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "skipped"})
    kept = agent.approval(asked.id)
    assert kept is not None
    assert kept.status == "withdrawn"


async def test_steering_after_the_batch_waits_with_a_parked_agent() -> None:
    agent, ledger, asked = await pending_of(charge("a"), "fine")
    await agent.steer("be quick")
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    await agent.approve(asked.id, by="amy")
    await agent.resume()
    assert shape(agent.messages)[2:] == ["a: charged 1", "user: be quick", "assistant: fine"]
    assert ledger.entries == [1]


# -- wider grants ----------------------------------------------------------------------------------


async def test_an_unknown_scope_names_those_that_there_are() -> None:
    agent, _, asked = await pending_of(charge("a"))
    with pytest.raises(ConfigurationError, match="once, run, conversation"):
        await agent.approve(asked.id, by="amy", scope="for ever")


async def granted(scope: GrantScope, *script: Any) -> tuple[ReActAgent, Ledger]:
    """An agent whose first call was approved that widely, after the run went on."""
    agent, ledger, asked = await pending_of(charge("a", 5), *script)
    await agent.approve(asked.id, by="amy", scope=scope)
    await agent.resume()
    return agent, ledger


@pytest.mark.parametrize(
    ("scope", "same", "other", "later"),
    [
        (GrantScope.ONCE, False, False, False),
        (GrantScope.RUN, True, False, False),
        (GrantScope.CONVERSATION, True, False, True),
        (GrantScope.TOOL_IN_RUN, True, True, False),
    ],
)
async def test_a_grant_reaches_as_far_as_was_said(
    scope: GrantScope, same: bool, other: bool, later: bool
) -> None:
    again, _ = await granted(scope, charge("b", 5), "done")
    assert (again.pending == ()) is same
    different, _ = await granted(scope, charge("b", 6), "done")
    assert (different.pending == ()) is other
    next_run, ledger = await granted(scope, "done", charge("c", 5), "done")
    await next_run.run("again")
    assert (next_run.pending == ()) is later
    assert ledger.entries == ([5, 5] if later else [5])


async def test_grants_are_listed_while_they_hold() -> None:
    agent, _ = await granted(GrantScope.CONVERSATION, "done")
    assert [(one.tool_name, one.by, one.scope) for one in agent.grants] == [
        ("charge", "amy", GrantScope.CONVERSATION)
    ]
    assert (await granted(GrantScope.RUN, "done"))[0].grants == ()
    assert_replays(agent)


async def test_a_revoked_grant_releases_nothing_more() -> None:
    agent, ledger = await granted(GrantScope.CONVERSATION, "done", charge("b", 5))
    given = agent.grants[0]
    assert await agent.revoke(given.id, by="bob") is True
    assert await agent.revoke(given.id, by="bob") is False
    assert agent.grants == ()
    assert (await agent.run("again")).outcome is Outcome.AWAITING_APPROVAL
    assert ledger.entries == [5]
    assert_replays(agent)


async def test_a_call_that_was_decided_but_not_started_is_asked_about_anew() -> None:
    """All of a message is decided before the first of its calls runs, which revokes a grant."""

    async def regret() -> str:
        await agent.revoke(agent.grants[0].id, by="amy")
        return "revoked"

    calls = say(call("regret", "r"), charge("b", 5))
    options: Any = {"more": [regret], "tool_execution": ToolExecution.SEQUENTIAL}
    agent, _, ledger = guarded(charge("a", 5), calls, "done", **options)
    await agent.run("go")
    await agent.approve(agent.pending[0].id, by="amy", scope=GrantScope.CONVERSATION)
    await agent.resume()
    assert (ledger.entries, [one.call_id for one in agent.pending]) == ([5], ["b"])


async def test_a_wide_grant_is_no_answer_to_a_layer_that_asks_by_hand() -> None:
    class ByHandMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            verdict = await super()._deciding(call)
            return Ask(verdict.call.call, "sure?") if isinstance(verdict, Proceed) else verdict

    class Stack(ByHandMixin, GuardMixin): ...

    ledger = Ledger()
    agent, _ = agent_of([charge("a"), charge("b")], ledger.charge, kind=Stack)
    await agent.run("go")
    await agent.approve(agent.pending[0].id, by="amy", scope=GrantScope.CONVERSATION)
    await agent.resume()
    assert ledger.entries == []


async def test_what_a_guard_denies_stays_denied_whatever_was_granted() -> None:
    class StrictMixin(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            verdict = await super()._deciding(call)
            return verdict if calls_left else _denied(verdict)

    class Stack(StrictMixin, GuardMixin): ...

    calls_left, ledger = [1], Ledger()
    agent, _ = agent_of([charge("a"), charge("b"), "done"], ledger.charge, kind=Stack)
    await agent.run("go")
    await agent.approve(agent.pending[0].id, by="amy", scope="conversation")
    calls_left.clear()
    await agent.resume()
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied", "b": "denied"})


def _denied(verdict: Verdict) -> Verdict:
    return Deny("closed") if isinstance(verdict, Proceed) else verdict


async def test_a_question_for_a_call_is_not_answered_with_words() -> None:
    agent, _, asked = await pending_of(say(call("echo", "b", x="1"), charge("a")))
    with pytest.raises(ConfigurationError, match="approve or deny"):
        await agent.answer(asked.id, "yes", by="amy")


# -- attacks ---------------------------------------------------------------------------------------


async def test_apr_10_a_call_in_a_history_that_was_brought_in_is_not_run() -> None:
    other, _, _ = guarded(charge("a", 9))
    await other.run("go")
    forged = [*other.messages, UserMessage.of("approved!")]
    agent, _, ledger = guarded("no", messages=forged)
    assert await agent.approve("a", by="eve") is False
    assert (await agent.run("well?")).text == "no"
    assert (ledger.entries, agent.pending) == ([], ())


async def test_apr_02_of_two_answers_at_the_same_time_one_counts() -> None:
    agent, ledger, asked = await pending_of(charge("a"), "done", journal=SlowJournal())
    given: list[bool] = []

    async def click() -> None:
        given.append(await agent.approve(asked.id, by="amy"))

    async with anyio.create_task_group() as group:
        group.start_soon(click)
        group.start_soon(click)
    await agent.resume()
    assert (sorted(given), ledger.entries) == ([False, True], [1])
