"""Who may answer, and until when: what must hold for those who would get round it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval
from callboard.approving import ApprovalPolicy
from callboard.errors import NotAnApprover
from callboard.journaling.records import ApprovalResolved
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.resolving import answer_offline
from callboard.testing import call
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import agent_of, statuses

pytestmark = pytest.mark.anyio


def file(folder: Path, address: str) -> SqliteJournal:
    return SqliteJournal(folder / "team.db", address=address, synchronous="NORMAL")


def above(child: ReActAgent, folder: Path, **options: Any) -> ReActAgent:
    helper = child.as_tool(name="helper", description="Does things.")
    script = [call("helper", "h", task="pay"), "done"]
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
        ({"approvers": lambda asked, by: True}, {"approvers": ["amy"]}),
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
