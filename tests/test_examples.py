"""Every example runs offline as its own process and ends with the line that its docstring states.

The docstring of an example has a line `Last line: ...`; `Exit code: N` where it is not 0.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def stated(text: str, what: str, default: str) -> str:
    found = re.search(rf"^{what}: (.*)$", text, re.MULTILINE)
    return found.group(1).strip().strip("`") if found else default


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_as_it_states(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == int(stated(docstring, "Exit code", "0")), done.stderr
    lines = (done.stdout + done.stderr).strip().splitlines() or ["(no output)"]
    assert lines[-1] == stated(docstring, "Last line", "(the docstring states no last line)")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_shorter_than_60_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
