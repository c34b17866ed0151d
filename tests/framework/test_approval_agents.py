"""Agents as tools: what a sub-agent asks a human is asked, and answered, at the root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval, GrantScope, SealedCall
from callboard.approving import ApprovalPolicy, Approve, Approver
from callboard.errors import NotAnApprover
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.messages import Observation, UserMessage
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import call, drop, say, stream
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import Ledger, agent_of, assert_replays, echo, results, shape, statuses

pytestmark = pytest.mark.anyio


def help_me(id: str = "h", task: str = "pay") -> Any:
    return call("helper", id, task=task)


def above(
    child: ReActAgent,
    *script: Any,
    name: str = "root",
    approver: Approver | None = None,
    **options: Any,
) -> ReActAgent:
    """An agent that has this one as its tool `helper`."""
    tool = child.as_tool(name="helper", description="Does things.")
    return agent_of(script, tool, echo, name=name, approver=approver, **options)[0]


def family(
    *child_script: Any, script: Any = (), **options: Any
) -> tuple[ReActAgent, ReActAgent, Ledger]:
    """A root, the child that is its tool, and what the child's tools did."""
    child, _, ledger = guarded(*child_script, name="child", **options)
    return above(child, *(script or (help_me(), "done"))), child, ledger


async def approve_all(agent: ReActAgent, **more: Any) -> None:
    for asked in agent.pending:
        assert await agent.approve(asked.id, by="amy", **more)


async def test_a_call_of_an_agent_is_a_run_of_it() -> None:
    root, child, _ = family("paid")
    assert (await root.run("go")).text == "done"
    assert results(root)["h"].text == "paid"
    assert shape(child.messages) == ["user: pay", "assistant: paid"]
    assert_replays(root)


async def test_a_sub_agents_question_parks_the_root_and_is_answered_there() -> None:
    root, child, ledger = family(charge("a", 7), "paid")
    reply = await root.run("go")
    assert reply.outcome is Outcome.AWAITING_APPROVAL
    assert [(p.id, p.tool_name, dict(p.preview), p.path) for p in reply.pending] == [
        (child.pending[0].id, "charge", {"amount": 7}, ("agent/child",))
    ]
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert (ledger.entries, results(root)["h"].text) == ([7], "paid")
    assert_replays(root)
    assert_replays(child)


async def test_a_denial_at_the_root_is_read_by_the_sub_agent() -> None:
    root, child, ledger = family(charge("a"), "then not")
    asked = (await root.run("go")).pending[0]
    assert await root.deny(asked.id, reason="too dear", by="amy")
    assert (await root.resume()).text == "done"
    assert (ledger.entries, statuses(child), statuses(root)) == ([], {"a": "denied"}, {"h": "ok"})
    assert "too dear" in results(child)["a"].text


async def test_questions_come_up_through_every_floor() -> None:
    middle, child, ledger = family(charge("a"), "paid")
    root = above(middle, help_me("r"), "all done", name="top")
    asked = (await root.run("go")).pending[0]
    assert asked.path == ("agent/child", "agent/root")
    await approve_all(root)
    assert (await root.resume()).text == "all done"
    assert (ledger.entries, statuses(child)) == ([1], {"a": "ok"})
    assert_replays(middle)


async def test_several_questions_of_a_sub_agent_are_answered_in_any_order() -> None:
    root, child, ledger = family(say(charge("a", 1), charge("b", 2)), "paid")
    first, second = (await root.run("go")).pending
    await root.deny(second.id, by="amy")
    assert (await root.resume()).outcome is Outcome.AWAITING_APPROVAL
    await root.approve(first.id, by="amy")
    assert (await root.resume()).text == "done"
    assert (ledger.entries, statuses(child)) == ([1], {"a": "ok", "b": "denied"})


async def test_a_sub_agent_may_ask_again_later() -> None:
    root, _, ledger = family(charge("a", 1), charge("b", 2), "paid")
    await root.run("go")
    await approve_all(root)
    assert (await root.resume()).outcome is Outcome.AWAITING_APPROVAL
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert ledger.entries == [1, 2]


async def test_safe_siblings_of_a_waiting_sub_agent_run() -> None:
    root, _, _ = family(
        charge("a"), "paid", script=[say(help_me(), call("echo", "e", x="1")), "done"]
    )
    await root.run("go")
    assert statuses(root) == {"e": "ok"}
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert statuses(root) == {"h": "ok", "e": "ok"}


async def test_a_second_call_waits_behind_the_first() -> None:
    root, child, ledger = family(
        charge("a"), "paid", "looked", script=[say(help_me("1"), help_me("2", "look")), "done"]
    )
    assert len((await root.run("go")).pending) == 1
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert {results(root)[id].text for id in ("1", "2")} == {"paid", "looked"}
    assert (ledger.entries, len(child.messages)) == ([1], 6)


async def test_calls_that_waited_together_do_not_get_each_others_reply() -> None:
    """The second one comes back first, and brings the run of the first one to its end."""

    class PacedMixin(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            await anyio.sleep(paces[call.id].pop(0))
            return await super()._acting(call)

    paces = {"1": [0, 1], "2": [1, 0]}
    child, _, _ = guarded(charge("a"), "paid", "looked", name="child")
    script: list[Any] = [say(help_me("1"), help_me("2", "look")), "done"]
    tool = child.as_tool(name="helper", description="Does things.")
    root, _ = agent_of(script, tool, kind=PacedMixin, name="root")
    await root.run("go")
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert [results(root)[id].text for id in ("1", "2")] == ["paid", "looked"]


async def test_an_approver_of_the_root_is_asked_for_the_sub_agent() -> None:
    child, _, ledger = guarded(charge("a"), "paid", name="child")
    root = above(child, help_me(), "done", approver=lambda _: Approve("amy"))
    assert (await root.run("go")).text == "done"
    assert ledger.entries == [1]


async def test_a_grant_for_a_sub_agent_is_listed_and_revoked_at_the_root() -> None:
    root, child, ledger = family(
        charge("a"), "paid", charge("b"), script=[help_me("1"), "done", help_me("2"), "again"]
    )
    await root.run("go")
    await approve_all(root, scope=GrantScope.CONVERSATION)
    await root.resume()
    given = root.grants[0]
    assert [one.id for one in child.grants] == [given.id]
    await root.revoke(given.id, by="amy")
    assert (await root.run("once more")).outcome is Outcome.AWAITING_APPROVAL
    assert (ledger.entries, child.grants) == ([1], ())


async def test_who_may_decide_for_a_sub_agent_is_its_own_rule() -> None:
    rules = ApprovalPolicy(approvers=["bob"])
    root, _, ledger = family(charge("a"), "paid", approvals=rules)
    asked = (await root.run("go")).pending[0]
    with pytest.raises(NotAnApprover, match="bob"):
        await root.approve(asked.id, by="amy")
    assert await root.approve(asked.id, by="bob")
    await root.resume()
    assert ledger.entries == [1]


async def test_a_sub_agents_rule_that_is_a_function_is_asked_when_the_answer_arrives() -> None:
    def only_bob(asked: Approval, by: str) -> bool:
        return by == "bob"

    root, child, ledger = family(
        charge("a"), "then not", approvals=ApprovalPolicy(approvers=only_bob)
    )
    await root.run("go")
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert (ledger.entries, statuses(child)) == ([], {"a": "denied"})
    assert "'amy' may not decide" in results(child)["a"].text


async def test_a_withdrawn_question_of_a_sub_agent_skips_its_call() -> None:
    root, child, ledger = family(charge("a"), "then not")
    asked = (await root.run("go")).pending[0]
    assert await root.withdraw(asked.id)
    assert (await root.resume()).text == "done"
    assert (ledger.entries, statuses(child)) == ([], {"a": "skipped"})


async def test_interrupting_a_parked_root_stops_its_sub_agents() -> None:
    root, child, ledger = family(charge("a"), "paid")
    asked = (await root.run("go")).pending[0]
    await root.interrupt()
    assert (root.pending, child.pending, child.state.run_id) == ((), (), None)
    assert await child.approve(asked.id, by="eve") is False
    assert (ledger.entries, statuses(child)) == ([], {"a": "cancelled"})


async def test_cancelling_the_root_stops_a_sub_agent_that_waits() -> None:
    child, _, ledger = guarded(charge("a"), name="child")
    slow = Ledger().slow
    tool = child.as_tool(name="helper", description="Helps.")
    root, _ = agent_of([say(help_me(), call("slow", "s"))], tool, slow)
    with anyio.move_on_after(1):
        await root.run("go")
    assert (root.pending, child.pending, child.state.run_id) == ((), (), None)
    assert (ledger.entries, statuses(child)) == ([], {"a": "cancelled"})


async def test_a_sub_agent_whose_call_was_skipped_is_stopped_before_its_next_one() -> None:
    child, _, ledger = guarded(charge("a"), "looked", name="child")
    script = [help_me("1"), help_me("2", "look"), "done"]
    root = above(child, *script, steering_policy=SteeringPolicy.SKIP_PENDING)
    await root.run("go")
    await root.steer("only look")
    assert (await root.resume()).text == "done"
    assert (statuses(root), ledger.entries) == ({"1": "cancelled", "2": "ok"}, [])
    assert statuses(child) == {"a": "cancelled"}


async def test_cancelling_the_root_stops_a_running_sub_agent() -> None:
    child, _, ledger = guarded(call("slow", "s"), name="child", slow=True)
    root = above(child, help_me())
    with anyio.move_on_after(1):
        await root.run("go")
    assert (ledger.entries, child.state.run_id) == (["started", "cancelled"], None)
    assert statuses(root) == {"h": "cancelled"}


async def test_a_sub_agent_that_fails_is_a_failed_call() -> None:
    root, _, _ = family(stream(drop()), stream(drop()), stream(drop()))
    assert (await root.run("go")).text == "done"
    assert statuses(root) == {"h": "failed"}


async def test_apr_03_the_answer_may_come_when_both_agents_are_gone(tmp_path: Path) -> None:
    ledger = Ledger()

    def made(child_script: Any, script: Any) -> ReActAgent:
        child, _, _ = guarded(
            *child_script, name="child", ledger=ledger, journal=_file(tmp_path, "agent/child")
        )
        return above(child, *script, journal=_file(tmp_path, "agent/root"))

    asked = (await made([charge("a", 3)], [help_me()]).run("go")).pending[0]
    second = made([], [])
    assert await second.approve(asked.id, by="amy")
    third = made(["paid"], ["done"])
    assert (await third.resume()).text == "done"
    assert (ledger.entries, results(third)["h"].text) == ([3], "paid")


def _file(folder: Path, address: str) -> SqliteJournal:
    return SqliteJournal(folder / "team.db", address=address, synchronous="NORMAL")


async def test_a_sub_agent_that_was_forgotten_is_an_unknown_outcome(tmp_path: Path) -> None:
    """Its journal was in memory: what it did before it asked is not known."""
    first, _, ledger = guarded(charge("a"), name="child")
    root = above(first, help_me(), journal=_file(tmp_path, "agent/root"))
    asked = (await root.run("go")).pending[0]
    fresh, _, _ = guarded("paid", name="child", ledger=ledger)
    again = above(fresh, "done", journal=_file(tmp_path, "agent/root"))
    await again.approve(asked.id, by="amy")
    assert (await again.resume()).text == "done"
    assert (ledger.entries, statuses(again)) == ([], {"h": "unknown_outcome"})


async def test_a_user_who_talks_to_the_sub_agent_meanwhile_is_not_in_the_way() -> None:
    root, child, _ = family(charge("a"), "paid", "hello")
    await root.run("go")
    await child.run(UserMessage.of("are you there?"))
    await approve_all(root)
    assert (await root.resume()).text == "done"
    assert shape(child.messages)[-2:] == ["user: are you there?", "assistant: hello"]
