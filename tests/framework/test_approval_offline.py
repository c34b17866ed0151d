"""An answer by another process, through the journal: seen by an agent that is parked or running."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval
from callboard.approving import ApprovalPolicy
from callboard.errors import CommitFailed, NotAnApprover
from callboard.journaling.conversation import R
from callboard.journaling.records import ApprovalResolved, Record
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.replies import Outcome
from callboard.resolving import answer_offline
from callboard.testing import call, say
from tests.framework.approval_kit import GuardMixin, charge, guarded
from tests.framework.kit import Ledger, Script, agent_of, statuses

pytestmark = pytest.mark.anyio


def journal(folder: Path) -> SqliteJournal:
    return SqliteJournal(folder / "agent.db", synchronous="NORMAL")


async def parked(folder: Path, *script: Any, **options: Any) -> tuple[ReActAgent, Ledger, Approval]:
    agent, _, ledger = guarded(*script, journal=journal(folder), **options)
    return agent, ledger, (await agent.run("go")).pending[0]


def yes(asked: Approval, by: str = "amy") -> ApprovalResolved:
    return ApprovalResolved(asked.id, "approved", by)


async def test_a_parked_agent_sees_the_answer_of_another_process(tmp_path: Path) -> None:
    agent, ledger, asked = await parked(tmp_path, charge("a"), "done")
    done, now = await answer_offline(journal(tmp_path), yes(asked))
    assert (done, now.status, now.by) == (True, "approved", "amy")
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [1]


async def test_a_denial_closes_the_call_without_the_agent(tmp_path: Path) -> None:
    agent, ledger, asked = await parked(tmp_path, charge("a"), "done")
    await answer_offline(journal(tmp_path), ApprovalResolved(asked.id, "denied", "amy", "no"))
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_a_second_answer_elsewhere_is_refused(tmp_path: Path) -> None:
    agent, _, asked = await parked(tmp_path, charge("a"), "done")
    await answer_offline(journal(tmp_path), yes(asked))
    assert await agent.deny(asked.id, by="bob") is False
    done, now = await answer_offline(journal(tmp_path), yes(asked, by="bob"))
    assert (done, now.by) == (False, "amy")


async def test_who_may_decide_holds_elsewhere(tmp_path: Path) -> None:
    rules = ApprovalPolicy(approvers=["bob"])
    _, _, asked = await parked(tmp_path, charge("a"), approvals=rules)
    before = len(await journal(tmp_path).read())
    with pytest.raises(NotAnApprover, match="bob"):
        await answer_offline(journal(tmp_path), yes(asked))
    assert len(await journal(tmp_path).read()) == before


async def test_where_the_agents_code_decides_who_may_nobody_can_elsewhere(tmp_path: Path) -> None:
    rules = ApprovalPolicy(approvers=_anybody)
    agent, ledger, asked = await parked(tmp_path, charge("a"), "done", approvals=rules)
    with pytest.raises(NotAnApprover, match="code"):
        await answer_offline(journal(tmp_path), yes(asked))
    assert await agent.approve(asked.id, by="amy")
    await agent.resume()
    assert ledger.entries == [1]


def _anybody(asked: Approval, by: str) -> bool:
    return True


async def test_a_late_answer_elsewhere_closes_the_call(tmp_path: Path) -> None:
    rules = ApprovalPolicy(expires_s=1e-9)
    agent, ledger, asked = await parked(tmp_path, charge("a"), "done", approvals=rules)
    done, now = await answer_offline(journal(tmp_path), yes(asked))
    assert (done, now.status) == (False, "expired")
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})


async def test_an_unknown_id_is_no_approval(tmp_path: Path) -> None:
    await parked(tmp_path, charge("a"))
    with pytest.raises(LookupError, match="nosuch"):
        await answer_offline(journal(tmp_path), ApprovalResolved("nosuch", "approved", "amy"))


@pytest.mark.real_clock
async def test_an_answer_while_siblings_run_does_not_disturb_them(tmp_path: Path) -> None:
    """The running agent finds its journal longer than it expected, by an answer only."""

    async def work() -> str:
        asked = agent.pending[0]
        await answer_offline(journal(tmp_path), yes(asked))
        return "worked"

    agent, _, ledger = guarded(
        say(charge("a"), call("work", "w")), "done", journal=journal(tmp_path), more=[work]
    )
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([1], {"a": "ok", "w": "ok"})


@pytest.mark.real_clock
async def test_an_approver_in_place_and_another_process_do_not_collide(tmp_path: Path) -> None:
    async def slow(asked: Approval) -> None:
        await answer_offline(journal(tmp_path), yes(asked))
        await anyio.sleep(0.01)

    agent, _, ledger = guarded(charge("a"), "done", journal=journal(tmp_path), approver=slow)
    reply = await agent.run("go")
    if reply.outcome is Outcome.AWAITING_APPROVAL:
        reply = await agent.resume()
    assert (reply.text, ledger.entries) == ("done", [1])


async def test_an_agent_that_was_taken_over_meanwhile_does_not_go_on_unawares(
    tmp_path: Path,
) -> None:
    agent, ledger, asked = await parked(tmp_path, charge("a"))
    other, _, _ = guarded("done", journal=journal(tmp_path), ledger=ledger)
    await other.approve(asked.id, by="amy")
    assert (await other.resume()).text == "done"
    with pytest.raises(CommitFailed, match="taken this agent over"):
        await agent.resume()
    assert (await agent.resume()).text == "done"
    assert ledger.entries == [1]


async def test_a_cancel_and_an_answer_elsewhere_leave_a_closed_call(tmp_path: Path) -> None:
    async def slow(asked: Approval) -> None:
        await answer_offline(journal(tmp_path), yes(asked))
        scope.cancel()
        await anyio.sleep(1)

    agent, _, ledger = guarded(charge("a"), "on", journal=journal(tmp_path), approver=slow)
    with anyio.CancelScope() as scope:
        await agent.run("go")
    assert (ledger.entries, statuses(agent)) == ([], {"a": "cancelled"})
    assert (await agent.run("go on")).text == "on"


class Layered(GuardMixin):
    """Its commits never go the short way."""

    def _committing(self, record: R) -> R:
        return super()._committing(record)


async def test_a_layered_agent_sees_an_answer_while_siblings_run(tmp_path: Path) -> None:
    async def work() -> str:
        await answer_offline(journal(tmp_path), yes(agent.pending[0]))
        return "worked"

    ledger = Ledger()
    script: Script = [say(charge("a"), call("work", "w")), "done"]
    agent, _ = agent_of(script, ledger.charge, work, kind=Layered, journal=journal(tmp_path))
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, statuses(agent)) == ([1], {"a": "ok", "w": "ok"})


class Meanwhile(SqliteJournal):
    """Another process writes just before the first offline append."""

    record: Record | None = None

    async def append(self, records: Any, expected: int) -> None:
        if self.record is not None:
            written, self.record = self.record, None
            await super().append([written], expected)
        await super().append(records, expected)


async def test_an_offline_answer_is_tried_again_where_the_agent_wrote_meanwhile(
    tmp_path: Path,
) -> None:
    _, _, asked = await parked(tmp_path, charge("a"))
    contended = Meanwhile(tmp_path / "agent.db")
    contended.record = yes(asked, by="bob")
    done, now = await answer_offline(contended, yes(asked))
    assert (done, now.by) == (False, "bob")
