"""Runs the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "callboard_console"]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without keys, with the source roots that it imports from."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "CALLBOARD_"))}
    roots = [os.path.abspath(path) for path in sys.path if path]
    return {**kept, "PYTHONPATH": os.pathsep.join(roots), **changes}


def callboard(
    *arguments: str, cwd: Path, timeout_s: float = 60, **changes: str
) -> subprocess.CompletedProcess[str]:
    """`callboard ARGUMENTS...` in a folder, with the changes in its environment."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(**changes),
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
