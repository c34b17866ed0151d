"""`callboard approvals`: another process looks at what waits, and answers it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import ApprovalPolicy, ReActAgent, SqliteJournal, ask_user
from callboard.testing import call, say
from tests.console.command import callboard
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import Ledger, agent_of, results, statuses


def parked(folder: Path, *script: Any, **options: Any) -> str:
    """The id of what an agent of an earlier process asks."""
    with SqliteJournal(folder / "agent.db") as journal:
        agent, _, _ = guarded(*script, journal=journal, **options)
        return agent.run_sync("go").pending[0].id


def resumed(folder: Path, *script: Any, **options: Any) -> tuple[ReActAgent, Ledger]:
    """The agent as a later process goes on with it, and what its tools did there."""
    journal = SqliteJournal(folder / "agent.db")
    agent, _, ledger = guarded(*script, journal=journal, **options)
    return agent, ledger


def approvals(folder: Path, command: str, *rest: str) -> subprocess.CompletedProcess[str]:
    return callboard("approvals", command, "agent.db", *rest, cwd=folder)


def test_apr_03_what_waits_is_listed_and_approved_without_the_agents_code(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a", 7))
    assert approvals(tmp_path, "list").stdout == (
        f'{asked}  agent/agent  charge {{"amount": 7}}: costs money\n'
    )
    done = approvals(tmp_path, "approve", asked[-6:], "--by", "amy")
    assert (done.returncode, done.stdout) == (0, 'approved: charge {"amount": 7}\n')
    agent, ledger = resumed(tmp_path, "done")
    assert run_on(agent) == "done"
    assert ledger.entries == [7]
    kept = agent.approval(asked)
    assert kept is not None
    assert kept.by == "amy"


def run_on(agent: ReActAgent) -> str:
    return anyio.run(agent.resume).text


def test_a_denial_has_its_reason(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a"))
    assert approvals(tmp_path, "deny", asked, "too dear").returncode == 0
    agent, ledger = resumed(tmp_path, "a pity")
    run_on(agent)
    assert (ledger.entries, statuses(agent)) == ([], {"a": "denied"})
    assert "too dear" in results(agent)["a"].text


def test_show_prints_exactly_what_would_run(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "agent.db") as journal:
        agent, _, _ = guarded(call("charge", "a", amount=7), journal=journal)
        asked = agent.run_sync("go").pending[0].id
    told = approvals(tmp_path, "show", asked).stdout
    assert told.startswith(f"{asked} of agent/agent: {asked} waits for an answer\n")
    assert "  rule      r1\n" in told
    assert told.endswith('{\n  "amount": 7\n}\n')


def test_what_a_terminal_would_not_show_is_written_out(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "agent.db") as journal:
        agent, _ = agent_of(
            [call("ask_user", "q", question="a\u202eb\x1b[2J")], ask_user, journal=journal
        )
        asked = agent.run_sync("go").pending[0].id
    told = approvals(tmp_path, "show", asked).stdout
    assert "a\\u202eb" in told
    assert "\x1b" not in told + approvals(tmp_path, "list").stdout


def test_apr_02_a_second_answer_says_who_was_first(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a"))
    approvals(tmp_path, "approve", asked, "--by", "amy")
    done = approvals(tmp_path, "approve", asked, "--by", "bob")
    assert (done.returncode, done.stderr) == (
        1,
        f"error: {asked} was approved already by amy\n",
    )
    assert approvals(tmp_path, "list").stdout == ""
    assert "by amy" in approvals(tmp_path, "list", "--all").stdout


def test_apr_11_an_unknown_id_is_refused(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a"))
    done = approvals(tmp_path, "approve", "nosuch")
    assert (done.returncode, done.stderr) == (2, f"error: 'nosuch' names none of: {asked}\n")


def test_who_may_not_decide_is_refused(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a"), approvals=ApprovalPolicy(approvers=["bob"]))
    done = approvals(tmp_path, "approve", asked, "--by", "eve")
    assert done.returncode == 1
    assert "'eve' may not answer" in done.stderr
    assert asked in approvals(tmp_path, "list").stdout


def test_a_grant_may_reach_further_and_be_revoked(tmp_path: Path) -> None:
    asked = parked(tmp_path, charge("a"))
    approvals(tmp_path, "approve", asked, "--for", "conversation")
    assert "holds for conversation" in approvals(tmp_path, "show", asked).stdout
    assert approvals(tmp_path, "revoke", asked).returncode == 0
    assert approvals(tmp_path, "revoke", asked).returncode == 1


def test_a_question_is_answered_and_not_approved(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "agent.db") as journal:
        agent, _ = agent_of([call("ask_user", "q", question="Colour?")], ask_user, journal=journal)
        asked = agent.run_sync("go").pending[0].id
    assert "callboard approvals answer" in approvals(tmp_path, "approve", asked).stderr
    assert approvals(tmp_path, "answer", asked, "red").returncode == 0
    agent, _ = agent_of(["nice"], ask_user, journal=SqliteJournal(tmp_path / "agent.db"))
    run_on(agent)
    assert results(agent)["q"].text == "red"


def test_a_sub_agents_question_is_answered_at_the_root(tmp_path: Path) -> None:
    def root(child_script: Any, script: Any) -> tuple[ReActAgent, Ledger]:
        file = tmp_path / "agent.db"
        child, _, ledger = guarded(
            *child_script, name="child", journal=SqliteJournal(file, address="agent/child")
        )
        tool = child.as_tool(name="helper", description="Helps.")
        agent, _ = agent_of(script, tool, journal=SqliteJournal(file, address="agent/root"))
        return agent, ledger

    agent, _ = root([charge("a")], [say(call("helper", "h", task="pay"))])
    asked = agent.run_sync("go").pending[0].id
    listed = approvals(tmp_path, "list").stdout
    assert listed.startswith(f"{asked}  agent/root  charge")
    assert approvals(tmp_path, "approve", asked).returncode == 0
    agent, ledger = root(["paid"], ["done"])
    run_on(agent)
    assert ledger.entries == [1]


@pytest.mark.parametrize("command", ["list", "show", "approve"])
def test_a_file_that_is_not_there_is_not_made(tmp_path: Path, command: str) -> None:
    done = approvals(tmp_path, command, *([] if command == "list" else ["x"]))
    assert done.returncode == 2
    assert "there is no file" in done.stderr
    assert not (tmp_path / "agent.db").exists()
