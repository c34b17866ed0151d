"""`callboard chat` asks its user: y, n with a reason, always, and answers to questions."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.console.chat_kit import bench, state
from tests.console.command import COMMAND, calls
from tests.run_script import plain_environment


def talk(
    folder: Path, lines: str, answers: list[Any], agent: str = "own:Careful"
) -> subprocess.CompletedProcess[str]:
    """Say some lines to a chat with an agent that asks before each call."""
    (folder / "go").touch()  # what the tool `send` waits for
    return subprocess.run(
        [*COMMAND, *bench(folder, answers, agent)],
        cwd=folder,
        env=plain_environment(**state(folder)),
        input=lines,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def sent(folder: Path) -> str:
    ledger = folder / "ledger"
    return ledger.read_text() if ledger.exists() else ""


def test_y_lets_the_call_run(tmp_path: Path) -> None:
    done = talk(tmp_path, "send it\ny\n", [calls("send", text="hi"), "Sent."])
    assert 'may it run send(text="hi")? the owner wants to know' in done.stdout
    assert (sent(tmp_path), done.returncode) == ("hi\n", 0)
    assert done.stdout.rstrip().splitlines()[-2] == "Sent."


def test_n_refuses_it_with_a_reason(tmp_path: Path) -> None:
    done = talk(tmp_path, "send it\nn not today\n", [calls("send", text="hi"), "A pity."])
    assert sent(tmp_path) == ""
    assert "Denied by the user: not today" in done.stdout
    assert "A pity." in done.stdout


def test_always_lets_the_very_same_call_run_again(tmp_path: Path) -> None:
    again = {"calls": [{"id": "c2", "name": "send", "arguments": {"text": "hi"}}]}
    other = {"calls": [{"id": "c3", "name": "send", "arguments": {"text": "ho"}}]}
    lines = "send it\nalways\nonce more\n/grants\nand ho\n"
    done = talk(tmp_path, lines, [calls("send", text="hi"), "Sent.", again, "Again.", other])
    assert sent(tmp_path) == "hi\nhi\n"
    assert 'send {"text": "hi"} (conversation)' in done.stdout
    assert 'may it run send(text="ho")?' in done.stdout


def test_another_line_is_no_answer(tmp_path: Path) -> None:
    answers = [calls("send", text="hi"), "Sent.", "A greeting."]
    done = talk(tmp_path, "send it\nno idea, what is hi?\ny\n", answers)
    assert "queued behind an approval: no idea" in done.stdout
    assert sent(tmp_path) == "hi\n"


def test_a_question_is_answered_by_the_next_line(tmp_path: Path) -> None:
    with (tmp_path / "asks.py").open("w") as module:
        module.write(
            "from callboard import ReActAgent, ask_user\n"
            "def agent(model, journal):\n"
            "    return ReActAgent(model=model, journal=journal, tools=[ask_user])\n"
        )
    asked = calls("ask_user", question="Which colour?", options=["red", "blue"])
    done = talk(tmp_path, "paint it\ndeep red\n", [asked, "Painted."], "asks:agent")
    assert "it asks: Which colour?" in done.stdout
    assert "- blue" in done.stdout
    assert "← deep red" in done.stdout
    assert "Painted." in done.stdout


def test_a_grant_ends_when_it_is_revoked(tmp_path: Path) -> None:
    again = {"calls": [{"id": "c2", "name": "send", "arguments": {"text": "hi"}}]}
    talk(tmp_path, "send it\na\n", [calls("send", text="hi"), "Sent."])
    listed = talk(tmp_path, "/grants\n", []).stdout
    given = next(line.split()[0] for line in listed.splitlines() if "(conversation)" in line)
    done = talk(tmp_path, f"/revoke {given}\nonce more\n", [again])
    assert 'may it run send(text="hi")?' in done.stdout
    assert sent(tmp_path) == "hi\n"
