"""Every end of `callboard ask` has its exit code, and every error is one line."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.console.command import COMMAND, callboard, calls, script
from tests.run_script import plain_environment

OWN = """
from callboard import ReActAgent

def explode():
    raise RuntimeError("no luck today")

def nothing():
    return None
"""


def failing(category: str) -> list[Any]:
    return [{"stream": [{"error": {"category": category, "message": "it did not work"}}]}]


@pytest.mark.parametrize(
    ("answers", "options", "code"),
    [
        (["yes"], [], 0),
        (failing("bad_request"), [], 1),
        (failing("auth"), [], 3),
        (failing("network"), [], 3),
        ([calls("calculate", expression="1"), "sum"], ["--max-iters", "1"], 4),
        ([{"say": "no", "stop": "refusal"}], [], 5),
        ([{"say": ""}, {"say": ""}, {"say": ""}], [], 5),
    ],
)
def test_how_a_run_ends_is_its_exit_code(
    tmp_path: Path, answers: list[Any], options: list[str], code: int
) -> None:
    done = callboard("ask", "?", "--model", script(tmp_path, answers), *options, cwd=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--model", "nosuch:thing"], 2, "KIND is one of"),
        (["--model", "scripted:missing.json"], 2, "missing.json"),
        (["--model", "scripted"], 2, "needs a file"),
        (["--tool", "nosuch:thing"], 2, "no module 'nosuch'"),
        (["--tool", "json:nosuch"], 2, "nosuch"),
        (["--tool", "nosuch"], 2, "write module:name"),
        (["--agent", "own:explode"], 2, "no luck today"),
        (["--agent", "own:nothing"], 2, "not a ReActAgent"),
        (["--agent", "own:nothing", "--tool", "json:dumps"], 2, "leave out --tool"),
        (["--agent", "own:nothing", "--folder", "."], 2, "leave out --folder"),
        (["--agent", "own:nothing", "--no-built-in"], 2, "leave out --no-built-in"),
        (["--folder", "missing"], 2, "is not a folder"),
    ],
)
def test_a_wrong_option_is_one_line_with_the_remedy(
    tmp_path: Path, options: list[str], code: int, told: str
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    model = [] if "--model" in options else ["--model", script(tmp_path, ["yes"])]
    model = [] if "--agent" in options else model  # the agent brings its own
    done = callboard("ask", "?", *model, *options, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


def test_an_unknown_option_is_wrong_usage(tmp_path: Path) -> None:
    done = callboard("ask", "?", "--nosuch", cwd=tmp_path)
    assert done.returncode == 2
    assert "--nosuch" in done.stderr


def test_a_failed_run_as_json_tells_the_error(tmp_path: Path) -> None:
    model = script(tmp_path, failing("auth"))
    done = callboard("ask", "?", "--json", "--model", model, cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["outcome"]) == (3, "failed")
    assert "it did not work" in found["error"]


def test_a_failed_run_names_the_remedy(tmp_path: Path) -> None:
    done = callboard("ask", "?", "--model", script(tmp_path, failing("auth")), cwd=tmp_path)
    assert "OPENAI_API_KEY" in done.stderr


def test_an_interrupt_ends_the_run_without_a_traceback(tmp_path: Path) -> None:
    model = script(tmp_path, [{"stream": [{"text": "Once"}, {"sleep": 60}, {"finish": "end"}]}])
    with subprocess.Popen(
        [*COMMAND, "ask", "?", "--model", model],
        cwd=tmp_path,
        env=plain_environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.readline()
        assert process.stdout.read(4) == "Once"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == "interrupted\n"


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    model = script(tmp_path, [{"stream": [{"sleep": 0.5}, {"text": "late"}, {"finish": "end"}]}])
    with subprocess.Popen(
        [*COMMAND, "ask", "?", "--model", model],
        cwd=tmp_path,
        env=plain_environment(PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 1
        assert process.stderr.read() == ""


def test_help_documents_the_exit_codes(tmp_path: Path) -> None:
    done = callboard("ask", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "130 interrupted" in " ".join(done.stdout.split())


def test_the_version_is_told(tmp_path: Path) -> None:
    assert callboard("version", cwd=tmp_path).stdout.startswith("callboard ")


def test_a_missing_key_is_told_once(tmp_path: Path) -> None:
    done = callboard("ask", "?", "--model", "openai:gpt-5", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("OPENAI_API_KEY") == 1
    assert "--model local" in done.stderr


def test_an_empty_standard_input_is_no_question(tmp_path: Path) -> None:
    done = callboard("ask", "-", "--model", script(tmp_path, ["yes"]), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no question came on standard input" in done.stderr
