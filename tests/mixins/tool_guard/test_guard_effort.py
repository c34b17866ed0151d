"""What a guard spends on a text is bounded, however the text is made."""

from __future__ import annotations

import json
import time

import pytest

from callboard import ToolCall
from callboard.workspace import Workspace
from callboard_mixins.tool_guard.builtin import detectors_for
from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_parse import parse_shell
from tests.mixins.tool_guard.guard_kit import anything, judge

pytestmark = pytest.mark.real_clock
LONGEST_S = 5.0  # of a machine's time; most take a tenth, and without bounds they took up to 21


@pytest.mark.parametrize(
    "text",
    [
        "awk '" + "print " * 10_000 + "'",
        "awk '" + "printf a " * 6_000 + "'",
        "make a=" + "a=" * 20_000,
        "cmake -D" + "LAUNCHER" * 6_000,
        "sqlite3 x '" + "vacuum " * 8_000 + "'",
        "sed '" + "/a" * 20_000 + "'",
        "sed 's/" + "\\\\a" * 20_000 + "'",
        "echo " + "[$`;" * 9_000,
        "echo " + "[$;" * 9_000,
        "curl http:" + "http:" * 9_000,
        "git " + "-a " * 3_000 + "push",
        "cat " + "{a,b}" * 300,
        "ls " + "**/" * 500,
    ],
)
def test_a_command_is_judged_in_bounded_time(text: str, workspace: Workspace) -> None:
    begun = time.process_time()
    judge(text, Places(workspace))
    assert time.process_time() - begun < LONGEST_S


@pytest.mark.parametrize("name", ["url", "host", "path", "anything"])
@pytest.mark.parametrize(
    "text",
    [
        "http:" * 40_000,
        "a://b:" * 30_000,
        "%25" * 60_000,
        "../" * 1_300,
        "=,:@/" * 800,
        "[" * 199_999,
    ],
)
def test_an_argument_is_judged_in_bounded_time(name: str, text: str, workspace: Workspace) -> None:
    call = ToolCall(id="c", name="anything", raw=json.dumps({name: text}))
    begun = time.process_time()
    for detect in detectors_for(workspace):
        detect(call, anything)
    assert time.process_time() - begun < LONGEST_S


def test_a_large_document_is_still_read() -> None:
    text = "cat > f <<EOF\n" + "x = foo(a, b) | $y  [1]\n" * 900 + "EOF\n"
    assert parse_shell(text).problem is None


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("effort"))
