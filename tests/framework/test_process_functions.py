"""A function in a process of its own answers like any other, and can be killed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from callboard.errors import ToolDefinitionError
from callboard.messages import Status, ToolCall
from callboard.tooling.execution import execute
from callboard.tooling.process_functions import ProcessFailed, in_process
from callboard.tooling.tools import ToolContext
from tests.framework.process_tools import double, fail, hang

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock, pytest.mark.timeout(120)]


async def test_a_tool_runs_in_another_process_and_gives_its_value_back() -> None:
    call = ToolCall(id="c", name="double", raw='{"number": 21, "label": "ä"}')
    found = await execute(double, call, ToolContext("c", "double"))
    assert (found.payload["is"], found.payload["label"]) == (42, "ä")
    assert found.payload["process"] != os.getpid()


def test_its_schema_is_that_of_the_function() -> None:
    assert double.parameters["properties"]["number"] == {"type": "integer", "description": "Any."}
    assert double.description == "Twice a number."


async def test_at_its_deadline_it_is_killed_whatever_it_does(tmp_path: Path) -> None:
    path = tmp_path / "id"
    call = ToolCall(id="c", name="hang", raw=f'{{"path": "{path}"}}')
    found = await execute(hang, call, ToolContext("c", "hang"))
    assert (found.status, found.text) == (Status.TIMED_OUT, "timed out after 2 s")
    assert not is_alive(path)


def is_alive(path: Path) -> bool:
    command = ["ps", "-p", path.read_text().strip()]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


async def test_a_signal_that_killed_it_is_told() -> None:
    with pytest.raises(ProcessFailed) as caught:
        await fail("kill")
    assert caught.value.signal == "SIGKILL"


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("value", ValueError, "boom"),
        ("own", ProcessFailed, "OwnError: mine"),
        ("exit", ProcessFailed, "fail ended with code 3"),
        ("kill", ProcessFailed, "fail ended with SIGKILL"),
    ],
)
async def test_how_it_fails_is_told(kind: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        await fail(kind)


async def test_what_is_no_json_is_refused_before_anything_starts() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        await fail(object())  # type: ignore[arg-type]  # the point of it


def test_what_cannot_be_found_again_is_refused() -> None:
    async def coroutine() -> None: ...

    with pytest.raises(ToolDefinitionError, match="at the top of a module"):
        in_process()(lambda: 1)
    with pytest.raises(ToolDefinitionError, match="at the top of a module"):
        in_process()(coroutine)
