"""`callboard replay`: what people see of a journal that is run again against their code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from callboard import SqliteJournal
from callboard.testing import call
from tests.console.command import callboard
from tests.framework.kit import agent_of, echo

CODE = """
from callboard import ReActAgent
from callboard.approvals import Deny

def echo(x: str) -> str:
    "Say it again."
    raise SystemExit("a tool ran in a replay")

def same(model, journal):
    return ReActAgent(model=model, journal=journal, tools=[echo])

def short(model, journal):
    return ReActAgent(model=model, journal=journal, tools=[echo], max_iters=1)

def forgetful(model):
    return ReActAgent(model=model)

class Stern(ReActAgent):
    def __init__(self, **rest):
        super().__init__(tools=[echo], **rest)

    async def _deciding(self, call):
        await super()._deciding(call)
        return Deny("never")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The journal of one run, beside the code."""
    (tmp_path / "shop.py").write_text(CODE)
    path = tmp_path / "agent.db"
    with SqliteJournal(path) as journal:
        agent_of([call("echo", "a", x="1"), "done"], echo, journal=journal)[0].run_sync("go")
    return path


def replay(file: Path, agent: str, *more: str) -> subprocess.CompletedProcess[str]:
    return callboard("replay", file.name, *more, "--agent", f"shop:{agent}", cwd=file.parent)


def test_code_that_does_the_same_is_told_so(file: Path) -> None:
    done = replay(file, "same")
    assert (done.returncode, done.stdout, done.stderr) == (0, "the same: 10 records\n", "")


def test_a_difference_is_told_with_what_was_and_what_is(file: Path) -> None:
    done = replay(file, "Stern", "agent/agent")
    assert (done.returncode, done.stderr) == (1, "")
    first, was, now = done.stdout.splitlines()
    assert first == "record 4: they are of different kinds"
    assert was == "  recorded  tool_started        a: echo (effect)"
    assert now == "  now       decided             a: deny never"


def test_what_the_model_is_sent_instead_of_the_conversation_is_noted(file: Path) -> None:
    done = replay(file, "short")
    assert done.returncode == 1
    assert done.stdout.startswith("note: record 7: the request's 4 messages")


def test_an_agent_that_drops_the_journal_is_wrong_usage(file: Path) -> None:
    done = replay(file, "forgetful")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("does not use the journal it was given: pass journal= on\n")


def test_an_address_that_is_not_there_is_wrong_usage(file: Path) -> None:
    done = replay(file, "same", "a/b")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("not 'a/b'\n")


def test_a_replay_leaves_the_journal_as_it_is(file: Path) -> None:
    before = file.read_bytes()
    replay(file, "same")
    assert file.read_bytes() == before
