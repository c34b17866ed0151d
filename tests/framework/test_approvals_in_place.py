"""An approver that is asked in place: awaited as part of the batch, recorded, and fail-closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard.approvals import Approval, GrantScope
from callboard.approving import Answered, ApprovalPolicy, Approve, Approver, Refuse
from callboard.decide import ToolExecution
from callboard.journaling.records import ApprovalRequested, ApprovalResolved
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import call, say
from tests.framework.approval_kit import answer, charge, guarded
from tests.framework.kit import assert_paired, assert_replays, marks, statuses, watched

pytestmark = pytest.mark.anyio


async def yes(asked: Approval) -> Answered:
    await anyio.sleep(5)
    return Approve(by="amy")


async def no(asked: Approval) -> Answered:
    return Refuse("not on a Sunday", by="amy")


async def test_what_the_approver_lets_runs_without_a_park() -> None:
    agent, _, ledger = guarded(charge("a", 5), "done", approver=yes)
    assert (await agent.run("go")).outcome is Outcome.FINISHED
    assert (ledger.entries, statuses(agent)) == ([5], {"a": "ok"})
    assert [(one.status, one.by) for one in agent._conversation.state.approvals.values()] == [
        ("approved", "amy")
    ]
    assert_replays(agent)


async def test_an_approver_may_be_a_plain_function() -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=lambda _: Approve())
    await agent.run("go")
    assert ledger.entries == [1]


async def test_question_and_answer_are_records() -> None:
    agent, _, _ = guarded(charge("a"), "done", approver=no)
    await agent.run("go")
    kinds = [type(record) for record in await agent.journal.read()]
    assert kinds.count(ApprovalRequested) == kinds.count(ApprovalResolved) == 1
    assert statuses(agent) == {"a": "denied"}
    assert "not on a Sunday" in agent.messages[2].text


@pytest.mark.parametrize(("approver", "end"), [(yes, "te a"), (no, "te! a")], ids=["yes", "no"])
async def test_watchers_see_the_question_its_answer_and_one_call(
    approver: Approver, end: str
) -> None:
    agent, _, _ = guarded(say(charge("a"), call("echo", "f", x="1")), "done", approver=approver)
    _, events = await watched(agent)
    assert_paired(events)
    told = marks(events)
    order = ["ts a", "approval_requested", "te f", "approval_resolved", end, "me a", "me f"]
    assert [told.count(mark) for mark in order] == [1] * len(order)
    if approver is yes:
        assert sorted(order, key=told.index) == order


async def test_safe_siblings_run_while_the_approver_thinks() -> None:
    done_at: dict[str, float] = {}

    async def look(x: str) -> str:
        await anyio.sleep(1)
        done_at[x] = anyio.current_time()
        return x

    agent, _, ledger = guarded(
        say(charge("a"), call("look", "b", x="b")), "done", approver=yes, more=[look]
    )
    start = anyio.current_time()
    await agent.run("go")
    assert done_at["b"] - start == pytest.approx(1)
    assert anyio.current_time() - start == pytest.approx(5)
    assert ledger.entries == [1]


async def test_a_released_call_does_not_wait_for_a_slow_sibling() -> None:
    agent, _, ledger = guarded(
        say(charge("a"), call("slow", "b")), approver=lambda _: Approve(), slow=True
    )
    with anyio.move_on_after(10):
        await agent.run("go")
    assert ledger.entries[:2] in ([1, "started"], ["started", 1])


async def test_several_questions_are_put_at_once() -> None:
    agent, _, ledger = guarded(say(charge("a", 1), charge("b", 2)), "done", approver=yes)
    start = anyio.current_time()
    await agent.run("go")
    assert anyio.current_time() - start == pytest.approx(5)
    assert sorted(ledger.entries) == [1, 2]


async def test_no_slot_is_held_for_a_human() -> None:
    calls = say(charge("a"), call("echo", "b", x="1"), call("echo", "c", x="2"))
    agent, _, _ = guarded(calls, "done", approver=yes, max_concurrency=1)
    with anyio.fail_after(6):
        assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "ok", "b": "ok", "c": "ok"}


async def test_in_sequence_those_behind_wait_for_the_answer() -> None:
    order: list[str] = []

    async def look(x: str) -> str:
        order.append(x)
        return x

    async def ask(asked: Approval) -> Answered:
        order.append("asked")
        return Approve()

    calls = say(call("look", "1", x="first"), charge("2"), call("look", "3", x="last"))
    agent, _, ledger = guarded(
        calls, "done", approver=ask, more=[look], tool_execution=ToolExecution.SEQUENTIAL
    )
    await agent.run("go")
    assert (order, ledger.entries) == (["first", "asked", "last"], [1])


def raising(asked: Approval) -> Answered:
    raise OSError("nobody at the phone")


BROKEN: list[Callable[[Approval], Any]] = [raising, lambda _: True, lambda _: Approve(by="")]


@pytest.mark.parametrize("approver", BROKEN, ids=["raises", "no answer", "unsigned"])
async def test_qp_44_an_approver_that_fails_denies(approver: Any) -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=approver)
    assert (await agent.run("go")).outcome is Outcome.FINISHED
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_none_leaves_the_question_and_the_run_parks() -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=lambda _: None)
    assert (await agent.run("go")).outcome is Outcome.AWAITING_APPROVAL
    assert (await agent.resume()).outcome is Outcome.AWAITING_APPROVAL
    await answer(agent, "a", yes=True)
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [1]


async def for_ever(asked: Approval) -> Answered:
    await anyio.sleep_forever()
    return None


async def test_an_answer_from_elsewhere_counts_and_ends_the_wait() -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=for_ever)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        await answer(agent, "a", yes=True)
    assert ledger.entries == [1]
    assert statuses(agent) == {"a": "ok"}


async def test_a_cancel_withdraws_what_the_approver_thinks_about() -> None:
    agent, _, ledger = guarded(charge("a"), "done", "fine", approver=for_ever)
    with anyio.move_on_after(1):
        await agent.run("go")
    assert (ledger.entries, agent.pending) == ([], ())
    assert statuses(agent) == {"a": "cancelled"}
    assert_replays(agent)


async def test_an_interrupt_does_not_wait_for_the_approver() -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=for_ever)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        await agent.interrupt()
    assert (ledger.entries, statuses(agent)) == ([], {"a": "cancelled"})
    assert agent.state.last_outcome is Outcome.INTERRUPTED


@pytest.mark.parametrize("policy", [SteeringPolicy.SKIP_PENDING, SteeringPolicy.INTERRUPT])
async def test_steering_that_skips_does_not_wait_for_the_approver(policy: SteeringPolicy) -> None:
    agent, _, ledger = guarded(charge("a"), "done", approver=for_ever, steering_policy=policy)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        await agent.steer("never mind")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "skipped"})


async def test_a_question_that_expires_is_denied_though_the_approver_thinks() -> None:
    rules = ApprovalPolicy(expires_s=0.05)
    agent, _, ledger = guarded(charge("a"), "done", approver=for_ever, approvals=rules)
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_an_approver_who_may_not_decide_denies() -> None:
    rules = ApprovalPolicy(approvers=["bob"])
    agent, _, ledger = guarded(charge("a"), "done", approver=yes, approvals=rules)
    await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert "bob" in agent.messages[2].text


async def test_what_an_earlier_process_left_waiting_is_put_to_the_approver() -> None:
    first, _, ledger = guarded(charge("a"), key=b"k" * 32)
    await first.run("go")
    agent, _, _ = guarded("done", approver=yes, journal=first.journal, key=b"k" * 32, ledger=ledger)
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [1]


async def test_an_approver_may_release_more_than_it_was_asked_about() -> None:
    asked: list[str] = []

    def always(one: Approval) -> Answered:
        asked.append(one.call_id)
        return Approve(by="amy", scope=GrantScope.RUN)

    agent, _, ledger = guarded(charge("a", 5), charge("b", 5), "done", approver=always)
    await agent.run("go")
    assert (asked, ledger.entries) == (["a"], [5, 5])
