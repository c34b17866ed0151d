"""What the command line lets an agent do to a folder: nothing, unless it is told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callboard_providers.tools.bubblewrap import Bubblewrap
from tests.console.command import callboard, calls, script

DEFECT = Bubblewrap(root=Path(__file__).parent).defect()


def status_of_call(folder: Path, call: dict[str, object], *options: str) -> str:
    """The status of the result of one call."""
    model = script(folder, [call, "done"])
    done = callboard("ask", "go", "--model", model, "--json", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    (status,) = [m["status"] for m in json.loads(done.stdout)["messages"] if m["role"] == "tool"]
    return str(status)


@pytest.mark.parametrize(("options", "status"), [((), "unknown_tool"), (("--edit",), "ok")])
def test_files_are_changed_only_with_edit(
    tmp_path: Path, options: tuple[str, ...], status: str
) -> None:
    write = calls("write_file", path="new.txt", text="new")
    assert status_of_call(tmp_path, write, *options) == status
    assert (tmp_path / "new.txt").exists() is (status == "ok")


def test_commands_are_not_run_without_leave(tmp_path: Path) -> None:
    assert status_of_call(tmp_path, calls("run_command", command="true")) == "unknown_tool"


@pytest.mark.skipif(DEFECT is not None, reason=f"no bubblewrap here: {DEFECT}")
def test_commands_run_in_a_sandbox_with_shell(tmp_path: Path) -> None:
    run = calls("run_command", command="echo 1 > new.txt; echo 1 > /usr/new.txt")
    assert status_of_call(tmp_path, run, "--shell") == "ok"
    assert (tmp_path / "new.txt").exists()
    assert not Path("/usr/new.txt").exists()


def test_without_a_sandbox_there_is_no_shell(tmp_path: Path) -> None:
    model = script(tmp_path, ["done"])
    done = callboard("ask", "go", "--model", model, "--shell", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "bubblewrap" in done.stderr


@pytest.mark.parametrize("option", ["--edit", "--shell"])
def test_an_own_agent_has_its_own_tools(tmp_path: Path, option: str) -> None:
    done = callboard("ask", "go", "--agent", "own:agent", option, cwd=tmp_path)
    assert (done.returncode, f"leave out {option}" in done.stderr) == (2, True)
