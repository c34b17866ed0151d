"""Runs a Python file as a user would: in a process of its own, without keys, warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def plain_environment(**changes: str) -> dict[str, str]:
    """This process's environment without keys and settings, with the roots it imports from."""
    dropped = ("OPENAI_", "CALLBOARD_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    roots = [os.path.abspath(path) for path in sys.path if path]
    return {**kept, "PYTHONPATH": os.pathsep.join(roots), **changes}


def run_script(path: Path, *, cwd: Path, timeout_s: float = 20) -> subprocess.CompletedProcess[str]:
    """`python path` in a folder."""
    return subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=cwd,
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
