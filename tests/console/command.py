"""Runs the real command in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.run_script import plain_environment

COMMAND = [sys.executable, "-m", "callboard_console"]


def callboard(
    *arguments: str, cwd: Path, timeout_s: float = 60, **changes: str
) -> subprocess.CompletedProcess[str]:
    """`callboard ARGUMENTS...` in a folder, with the changes in its environment."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=plain_environment(**changes),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def script(folder: Path, entries: Sequence[Any]) -> str:
    """The name of a scripted model with these answers."""
    (folder / "answers.json").write_text(json.dumps(list(entries)))
    return "scripted:answers.json"


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    """An answer that calls one tool."""
    return {"calls": [{"id": "c1", "name": name, "arguments": arguments}]}
