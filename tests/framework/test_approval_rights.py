"""Who may answer, and until when: what must hold for those who would get round it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval, GrantScope
from callboard.approving import ApprovalPolicy, Approve
from callboard.errors import ConfigurationError, NotAnApprover
from callboard.journaling.records import ApprovalResolved
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.resolving import answer_offline
from callboard.testing import call
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import agent_of, statuses

pytestmark = pytest.mark.anyio


def anybody(asked: Approval, by: str) -> bool:
    return True


def file(folder: Path, address: str) -> SqliteJournal:
    return SqliteJournal(folder / "team.db", address=address, synchronous="NORMAL")


def above(child: ReActAgent, folder: Path, **options: Any) -> ReActAgent:
    helper = child.as_tool(name="helper", description="Does things.")
    script: list[Any] = [call("helper", "h", task="pay"), "done"]
    return agent_of(script, helper, name="root", journal=file(folder, "root"), **options)[0]


async def asked_below(folder: Path, root: Any, child: Any) -> Approval:
    """The question of a sub-agent, as it stands in its root, with the rules of both."""
    below, _, _ = guarded(charge("a"), "paid", name="child", approvals=ApprovalPolicy(**child))
    reply = await above(below, folder, approvals=ApprovalPolicy(**root)).run("go")
    return reply.pending[0]


@pytest.mark.parametrize(
    ("root", "child"),
    [
        ({"approvers": ["bob"]}, {}),
        ({}, {"approvers": ["bob"]}),
        ({"approvers": ["bob", "amy"]}, {"approvers": ["bob"]}),
        ({"approvers": ["bob"]}, {"approvers": ["bob", "amy"]}),
        ({"approvers": ["bob"]}, {"approvers": ["amy"]}),
        ({"approvers": anybody}, {"approvers": ["amy"]}),
    ],
)
async def test_the_rules_of_all_floors_hold_in_another_process(
    tmp_path: Path, root: Any, child: Any
) -> None:
    asked = await asked_below(tmp_path, root, child)
    with pytest.raises(NotAnApprover):
        await answer_offline(file(tmp_path, "root"), ApprovalResolved(asked.id, "approved", "amy"))


async def test_whom_all_floors_let_may_answer_in_another_process(tmp_path: Path) -> None:
    rule = {"approvers": ["amy", "bob"]}
    asked = await asked_below(tmp_path, rule, {"approvers": ["amy"]})
    answer = ApprovalResolved(asked.id, "approved", "amy")
    done, now = await answer_offline(file(tmp_path, "root"), answer)
    assert (done, now.by) == (True, "amy")


async def test_a_question_that_expires_while_its_approver_is_checked_is_not_approved() -> None:
    """The check is the user's own, and may take longer than the question stands."""

    def slow(asked: Approval, by: str) -> bool:
        while time.time() <= (asked.expires_at or 0):
            pass
        return True

    rules = ApprovalPolicy(approvers=slow, expires_s=0.2)
    agent, _, ledger = guarded(charge("a"), "done", approvals=rules)
    asked = (await agent.run("go")).pending[0]
    assert await agent.approve(asked.id, by="amy") is False
    await agent.resume()
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_a_scope_given_as_text_reaches_no_further_than_it_says() -> None:
    asked_about: list[str] = []

    def owner(asked: Approval) -> Approve:
        asked_about.append(asked.call_id)
        return Approve(by="amy", scope=cast("GrantScope", "once"))

    agent, _, ledger = guarded(charge("a"), charge("b"), "done", approver=owner)
    await agent.run("go")
    assert (asked_about, ledger.entries, agent.grants) == (["a", "b"], [1, 1], ())


def test_a_scope_that_there_is_not_is_refused_where_it_is_given() -> None:
    with pytest.raises(ConfigurationError, match="for_ever"):
        Approve(scope=cast("GrantScope", "for_ever"))
