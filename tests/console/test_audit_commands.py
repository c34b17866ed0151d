"""`callboard audit`: what people see of an audit file, whole and tampered with."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import ReActAgent, SqliteJournal
from callboard.journaling.sqlite_file import opened
from callboard.testing import call
from callboard_mixins import JsonLinesTrail, SqliteTrail
from tests.console.command import callboard
from tests.mixins.audit_kit import PUBLIC_PEM, SIGNING, GuardedAgent, audited, one_run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A signed audit of one run, its journal, and the public key."""
    path = tmp_path / "audit.jsonl"
    (tmp_path / "audit.pub").write_bytes(PUBLIC_PEM)
    with SqliteJournal(tmp_path / "agent.db") as journal:
        one_run(JsonLinesTrail(path, key=SIGNING), "shop", journal=journal)
    return path


def audit(*arguments: str, file: Path) -> subprocess.CompletedProcess[str]:
    command, *options = arguments
    return callboard("audit", command, file.name, *options, cwd=file.parent)


def test_a_whole_audit_is_told_with_its_head(file: Path) -> None:
    done = audit("verify", "--key", "audit.pub", "--journal", "agent.db", file=file)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "agent/shop: as its journal has it",
        "whole and signed: 7 entries (agent/shop 7)",
    ]
    assert lines[2].startswith("head 7:")


def test_a_changed_line_is_named(file: Path) -> None:
    file.write_text(file.read_text().replace("sent to Ada", "sent to Bob", 1))
    done = audit("verify", file=file)
    assert done.returncode == 1
    assert done.stderr == "error: audit.jsonl: line 5: it was changed: its hash is another one\n"


def test_a_signed_audit_without_the_key_says_so(file: Path) -> None:
    assert audit("verify", file=file).stdout.startswith("note: it is signed")


def test_an_audit_that_was_cut_with_its_head_is_found_by_an_anchor(file: Path) -> None:
    head = audit("verify", file=file).stdout.split()[-1]
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    Path(f"{file}.head").unlink()
    assert audit("verify", file=file).returncode == 0
    done = audit("verify", "--anchor", head, file=file)
    assert done.returncode == 1
    assert "the anchor is entry 7" in done.stderr


def test_an_audit_that_was_cut_with_its_head_is_found_by_the_journal(file: Path) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))
    Path(f"{file}.head").unlink()
    done = audit("verify", "--journal", "agent.db", file=file)
    assert done.returncode == 1
    assert "of the journal is not in the audit" in done.stderr


def test_a_changed_journal_is_found(file: Path) -> None:
    connection = opened(file.parent / "agent.db")
    connection.execute("UPDATE journal SET record = replace(record, 'sent to Ada', 'sent to Bob')")
    connection.close()
    done = audit("verify", "--journal", "agent.db", file=file)
    assert done.returncode == 1
    assert "is not what the journal holds" in done.stderr


@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_an_answer_that_was_given_without_the_agent_is_noted(tmp_path: Path, answer: str) -> None:
    """`callboard approvals` writes past the layers of an agent that does not run."""
    script = [call("pay", "a", amount=5), "done"]

    def agent(journal: SqliteJournal, script: list[Any]) -> ReActAgent:
        trail = JsonLinesTrail(tmp_path / "audit.jsonl")
        return audited(script, trail, kind=GuardedAgent, journal=journal)

    with SqliteJournal(tmp_path / "agent.db") as journal:
        asked = agent(journal, script).run_sync("go").pending[0].id
    done = callboard("approvals", answer, "agent.db", asked, "--by", "ada", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with SqliteJournal(tmp_path / "agent.db") as journal:
        anyio.run(agent(journal, ["done"]).resume)
    found = audit("verify", "--journal", "agent.db", file=tmp_path / "audit.jsonl")
    assert (found.returncode, found.stderr) == (0, "")
    assert "was written past the agent: an answer" in found.stdout


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--anchor", "7"], "give ENTRY:HASH"),
        (["--key", "agent.db"], "this is no public key"),
        (["--key", "nothing"], "No such file"),
        (["--journal", "audit.pub"], "is no SQLite database"),
    ],
)
def test_wrong_options_are_told(file: Path, options: list[str], problem: str) -> None:
    done = audit("verify", *options, file=file)
    assert problem in done.stderr
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1


def test_show_tells_one_line_an_entry(file: Path) -> None:
    lines = audit("show", file=file).stdout.splitlines()
    assert [line.split()[4] for line in lines] == [
        "run_started",
        "message",
        "observed",
        "tool_started",
        "tool_finished",
        "observed",
        "run_finished",
    ]
    assert "status=ok text=sent to Ada" in lines[5]


def test_show_tells_what_is_before_a_fault(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines[:2], *lines[3:]]))
    done = audit("show", file=file)
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 2)


def test_a_table_is_verified_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    trail = SqliteTrail(path)
    one_run(trail)
    trail.close()
    assert audit("verify", file=path).stdout.startswith("whole: 7 entries")
    assert len(audit("show", "--agent", "agent/agent", file=path).stdout.splitlines()) == 7


@pytest.mark.parametrize("text", ["Dear diary\n", "SQLite format 3\0", "\xff\n"])
def test_what_is_no_audit_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "diary").write_text(text)
    done = audit("verify", file=tmp_path / "diary")
    assert (done.returncode in (1, 2), len(done.stderr.splitlines())) == (True, 1)
    assert "fault in callboard" not in done.stderr
