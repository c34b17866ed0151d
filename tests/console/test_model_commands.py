"""`callboard model`: which files are here, where they are, and that they can go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.console.command import callboard

SMALL = "qwen2.5-coder-0.5b"


def model(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`callboard model ...` with an own folder of models, and the small one as the default."""
    return callboard(
        "model",
        *arguments,
        cwd=folder,
        CALLBOARD_MODEL_DIR=str(folder),
        CALLBOARD_LOCAL_MODEL=SMALL,
    )


def test_the_list_tells_what_is_here_and_what_is_the_default(tmp_path: Path) -> None:
    lines = model("list", folder=tmp_path).stdout.splitlines()
    assert [line.split() for line in lines] == [
        [SMALL, "491", "MB", "not", "fetched", "(default)"],
        ["qwen2.5-coder-1.5b", "1117", "MB", "not", "fetched"],
    ]


def test_the_path_of_a_missing_file_is_the_command_that_fetches_it(tmp_path: Path) -> None:
    done = model("path", folder=tmp_path)
    assert done.returncode == 3
    assert done.stderr == f"error: {SMALL} is not here: callboard model fetch {SMALL}\n"


def test_a_file_with_other_content_is_not_taken_for_the_model(tmp_path: Path) -> None:
    (tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf").write_bytes(b"something else")
    assert model("path", SMALL, folder=tmp_path).returncode == 3


@pytest.mark.parametrize("command", ["fetch", "path", "remove"])
def test_an_unknown_name_lists_the_known_ones(tmp_path: Path, command: str) -> None:
    done = model(command, "nosuch", folder=tmp_path)
    assert done.returncode == 2
    assert SMALL in done.stderr


def test_a_file_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    file.write_bytes(b"anything")
    assert model("remove", SMALL, folder=tmp_path).stdout == f"removed {SMALL}\n"
    assert not file.exists()
    assert model("remove", SMALL, folder=tmp_path).stdout == f"{SMALL} was not here\n"


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    below = str(tmp_path / "file" / "below")
    done = callboard("model", "fetch", SMALL, cwd=tmp_path, CALLBOARD_MODEL_DIR=below)
    assert done.returncode == 3
    assert "CALLBOARD_MODEL_DIR" in done.stderr.splitlines()[-1]
