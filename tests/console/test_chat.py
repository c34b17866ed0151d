"""`callboard chat` with lines from a pipe: what it prints, keeps, and picks up again."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.console.chat_kit import bench, state
from tests.console.command import COMMAND, calls
from tests.run_script import plain_environment

TOOL = ("--no-built-in", "--tool", "own:send")


def talk(
    folder: Path, lines: str, answers: list[Any], *options: str
) -> subprocess.CompletedProcess[str]:
    """Say some lines to a chat, one after another."""
    return subprocess.run(
        [*COMMAND, *bench(folder, answers, *options)],
        cwd=folder,
        env=plain_environment(**state(folder)),
        input=lines,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_each_line_is_answered_in_turn(tmp_path: Path) -> None:
    done = talk(tmp_path, "first\nsecond", [calls("calculate", expression="6*7"), "42", "again"])
    lines = [line for line in done.stdout.splitlines()[2:] if not line.startswith("finished")]
    assert lines == ["> first", '→ calculate(expression="6*7")', "← 42", "42", "> second", "again"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_session_is_picked_up_again(tmp_path: Path) -> None:
    talk(tmp_path, "I am Ada", ["Hello, Ada"], "--session", "mine")
    done = talk(tmp_path, "/messages", [], "--session", "mine")
    assert done.stdout.startswith("mine: 2 messages\n")
    assert "> I am Ada\nHello, Ada\n" in done.stdout


def test_sessions_are_kept_apart(tmp_path: Path) -> None:
    talk(tmp_path, "I am Ada", ["Hello, Ada"], "--session", "mine")
    done = talk(tmp_path, "/messages", [], "--session", "a / b")
    assert done.stdout.startswith("a / b: 0 messages\n")
    assert "nothing was said yet" in done.stdout


def test_the_state_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    talk(tmp_path, "hi", ["hello"])
    assert (tmp_path / "state").stat().st_mode & 0o77 == 0
    assert (tmp_path / "state" / "chats.db").stat().st_mode & 0o77 == 0


def test_a_new_conversation_leaves_the_old_one_under_its_name(tmp_path: Path) -> None:
    lines = "hi\n/new\n/messages\n/new default\n/new other\n"
    done = talk(tmp_path, lines, ["hello"])
    assert "default-2: 0 messages" in done.stdout
    assert "there is a session 'default' already" in done.stdout
    assert "other: 0 messages" in done.stdout


def test_a_failed_run_is_told_and_can_be_resumed(tmp_path: Path) -> None:
    broken = {"stream": [{"error": {"category": "bad_request", "message": "no luck"}}]}
    done = talk(tmp_path, "hi\n/resume\n", [broken, "now it works"])
    assert "no luck" in done.stdout
    assert done.stdout.count("> hi") == 1
    assert "now it works" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([{"stream": [{"error": {"category": "auth", "message": "no key"}}]}], 3),
        ([{"say": "no", "stop": "refusal"}], 5),
        ([calls("calculate", expression="1"), "sum"], 4),
    ],
)
def test_how_the_last_run_ended_is_the_exit_code(
    tmp_path: Path, answers: list[Any], code: int
) -> None:
    done = talk(tmp_path, "hi\n/quit\nnever asked\n", answers, "--max-iters", "1")
    assert done.returncode == code, done.stdout + done.stderr
    assert "never asked" not in done.stdout


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/nosuch", "/nosuch is no command"),
        ("/withdraw", "nothing waits"),
        ("/resume", "nothing was said yet"),
        ("/approve", "nothing waits for an approval"),
        (" /etc is a folder", "> /etc is a folder"),
    ],
)
def test_what_a_command_cannot_do_is_told(tmp_path: Path, line: str, told: str) -> None:
    done = talk(tmp_path, f"{line}\n", ["yes"])
    assert told in done.stdout
    assert done.returncode == 0


def test_an_approval_is_asked_for_and_outlives_the_process(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    asked = talk(tmp_path, "send it", [calls("send", text="hi")], "own:Careful")
    assert 'may it run send(text="hi")? the owner wants to know' in asked.stdout
    assert asked.returncode == 5
    approval_id = asked.stdout.split("/approve ")[1].split()[0]
    done = talk(tmp_path, f"and?\n/queue\n/approve {approval_id}\n", ["Sent."], "own:Careful")
    assert "← send: sent hi\n" in done.stdout or "← sent hi\n" in done.stdout
    assert "> and?\nSent." in done.stdout
    assert (tmp_path / "ledger").read_text() == "hi\n"


def test_a_denied_call_does_not_run(tmp_path: Path) -> None:
    lines = "send it\n/deny\n/deny nosuch\n"
    asked = talk(tmp_path, lines, [calls("send", text="hi")], "own:Careful")
    assert "which one? " in asked.stdout
    assert "'nosuch' names none of" in asked.stdout
    approval_id = asked.stdout.split("/approve ")[1].split()[0]
    done = talk(tmp_path, f"/deny {approval_id} not today\n", ["A pity."], "own:Careful")
    assert "A pity." in done.stdout
    assert not (tmp_path / "ledger").exists()
    assert "not today" in talk(tmp_path, "/messages\n", [], "own:Careful").stdout


def test_an_agent_that_takes_no_journal_is_told_to_be_forgetful(tmp_path: Path) -> None:
    done = talk(tmp_path, "hi", ["hello"], "own:forgetful")
    assert "this is not kept" in done.stdout
    assert "hello" in done.stdout


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    done = talk(tmp_path, "hi", ["hello"])
    assert done.returncode == 2
    assert done.stderr.startswith("error: the sessions cannot be kept in ")
    assert "CALLBOARD_STATE_DIR" in done.stderr


def test_a_signal_interrupts_the_run_and_the_next_line_is_taken(tmp_path: Path) -> None:
    command = [*COMMAND, *bench(tmp_path, [calls("send", text="hi"), "I see."], *TOOL)]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=plain_environment(PYTHONUNBUFFERED="1", **state(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("send it\nwhat now?\n")
        process.stdin.flush()
        while "→ send" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    assert "interrupted in " in rest
    assert "> what now?\nI see.\n" in rest
    assert process.returncode == 0
