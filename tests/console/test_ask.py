"""`callboard ask` as a user meets it: what it prints, and where."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.console.command import COMMAND, callboard, calls, script
from tests.run_script import plain_environment

OWN_TOOLS = '''
"""Tools of a user."""

def double(number: int) -> int:
    """Double a number."""
    return number * 2

def triple(number: int) -> int:
    """Triple a number."""
    return number * 3

both = [double, triple]
'''
OWN_AGENT = '''
"""An agent of a user."""
from callboard import ReActAgent
from callboard.testing import ScriptedModel

def make() -> ReActAgent:
    return ReActAgent(name="mine", model=ScriptedModel(["from my own agent"]))

def with_model(model) -> ReActAgent:
    return ReActAgent(name="mine", model=model)

class Mine(ReActAgent):
    """An agent of a kind of its own."""
'''


def test_the_trace_shows_calls_results_and_the_answer(tmp_path: Path) -> None:
    model = script(tmp_path, [calls("calculate", expression="6 * 7"), "It is 42."])
    done = callboard("ask", "6 times 7?", "--model", model, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0] == "6 times 7?"
    assert lines[1].startswith("scripted:answers.json · tools: current_time, calculate, read_file")
    assert lines[2:5] == ['→ calculate(expression="6 * 7")', "← 42", "It is 42."]
    assert lines[5].startswith("finished in ")
    assert lines[5].endswith("2 turns · 1 tool call")
    assert (done.returncode, done.stderr) == (0, "")


def test_thinking_and_streamed_text_are_shown(tmp_path: Path) -> None:
    pieces = [
        {"think": "so "},
        {"think": "then"},
        {"text": "Hel"},
        {"text": "lo"},
        {"finish": "end"},
    ]
    model = script(tmp_path, [{"stream": pieces}])
    done = callboard("ask", "hi", "--model", model, cwd=tmp_path)
    assert done.stdout.splitlines()[2:4] == ["so then", "Hello"]


def test_a_failing_tool_is_shown_with_its_status(tmp_path: Path) -> None:
    model = script(tmp_path, [calls("calculate", expression="1 / 0"), "No."])
    done = callboard("ask", "1 over 0?", "--model", model, cwd=tmp_path)
    assert "← calculate: failed: " in done.stdout
    assert "divides by zero" in done.stdout


def test_quiet_prints_the_answer_only(tmp_path: Path) -> None:
    model = script(tmp_path, [calls("calculate", expression="6 * 7"), "It is 42."])
    done = callboard("ask", "6 times 7?", "-q", "--model", model, cwd=tmp_path)
    assert done.stdout == "It is 42.\n"


def test_json_is_one_object_with_the_whole_run(tmp_path: Path) -> None:
    last = {"say": "It is 42.", "usage": {"in": 20, "out": 5}}
    model = script(tmp_path, [calls("calculate", expression="6 * 7"), last])
    done = callboard("ask", "6 times 7?", "--json", "--model", model, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (found["outcome"], found["text"], found["error"]) == ("finished", "It is 42.", None)
    assert found["usage"]["output_tokens"] == 5
    assert [message["role"] for message in found["messages"]][-3:] == [
        "assistant",
        "tool",
        "assistant",
    ]


def test_a_tool_of_the_user_is_found_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_TOOLS)
    model = script(tmp_path, [calls("triple", number=4), "12"])
    done = callboard(
        "ask", "3 * 4?", "--no-built-in", "--tool", "own:both", "--model", model, cwd=tmp_path
    )
    assert "tools: double, triple\n" in done.stdout
    assert "→ triple(number=4)\n← 12\n" in done.stdout


@pytest.mark.parametrize("factory", ["with_model", "Mine"])
def test_an_agent_of_the_user_gets_the_model_that_was_named(tmp_path: Path, factory: str) -> None:
    (tmp_path / "own.py").write_text(OWN_AGENT)
    model = script(tmp_path, ["from the script"])
    done = callboard("ask", "hi", "-q", "--agent", f"own:{factory}", "--model", model, cwd=tmp_path)
    assert done.stdout == "from the script\n"


def test_an_agent_of_the_user_may_bring_its_own_model(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_AGENT)
    done = callboard("ask", "hi", "-q", "--agent", "own:make", cwd=tmp_path)
    assert done.stdout == "from my own agent\n"


@pytest.mark.parametrize(
    ("option", "value"), [("--model", "scripted:answers.json"), ("--max-iters", "3")]
)
def test_an_option_that_the_agent_does_not_take_is_refused(
    tmp_path: Path, option: str, value: str
) -> None:
    (tmp_path / "own.py").write_text(OWN_AGENT)
    done = callboard("ask", "hi", "--agent", "own:make", option, value, cwd=tmp_path)
    assert done.returncode == 2
    assert f"'own:make' takes no {option[2:].replace('-', '_')}=; leave out" in done.stderr


def test_the_question_may_come_on_standard_input(tmp_path: Path) -> None:
    model = script(tmp_path, ["Hello"])
    done = subprocess.run(
        [*COMMAND, "ask", "-", "--model", model],
        input="what is\nthis?\n",
        cwd=tmp_path,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("what is\nthis?\n")
    assert done.returncode == 0


def test_files_below_the_current_folder_are_readable(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the answer is 42")
    model = script(tmp_path, [calls("read_file", path="note.txt"), "42"])
    done = callboard("ask", "what does note.txt say?", "--model", model, cwd=tmp_path)
    assert "← the answer is 42\n" in done.stdout


def test_the_debug_log_tells_every_step_with_turn_and_duration(tmp_path: Path) -> None:
    model = script(tmp_path, [calls("calculate", expression="6 * 7"), calls("current_time"), "x"])
    done = callboard(
        "ask", "?", "--max-iters", "1", "--log-level", "debug", "--model", model, cwd=tmp_path
    )
    steps = [
        line.split("]")[1].split()[0] for line in done.stderr.splitlines() if "took_ms" in line
    ]
    assert steps == ["reasoning", "deciding", "acting", "summarizing"]
    assert "result" in done.stderr
    assert "turn=1" in done.stderr


def test_the_debug_log_tells_the_steps_of_a_class_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_AGENT)
    model = script(tmp_path, ["from the script"])
    options = ["--agent", "own:Mine", "--model", model, "--log-level", "debug"]
    assert "reasoning" in callboard("ask", "?", *options, cwd=tmp_path).stderr


def test_no_escape_codes_leave_for_a_pipe(tmp_path: Path) -> None:
    done = callboard("ask", "hi", "--model", script(tmp_path, ["Hello"]), cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr


def test_a_terminal_gets_style(tmp_path: Path) -> None:
    model = script(tmp_path, ["Hello"])
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "ask", "hi", "--model", model],
        cwd=tmp_path,
        env=plain_environment(TERM="xterm-256color"),
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
    ) as process:
        os.close(theirs)
        assert process.wait(30) == 0
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "\x1b[1mHello\x1b[0m" in shown
