"""Every example runs offline as its own process and ends with the line that its docstring states.

The docstring of an example has a line `Last line: ...`; `Exit code: N` where it is not 0.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.run_script import run_script

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def stated(path: Path, what: str, default: str) -> str:
    """What the docstring of an example says after `what:`."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    found = re.search(rf"^{what}: (.*)$", text, re.MULTILINE)
    return found.group(1).strip().strip("`") if found else default


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_as_it_states(path: Path, tmp_path: Path) -> None:
    done = run_script(path, cwd=tmp_path)
    assert done.returncode == int(stated(path, "Exit code", "0")), done.stderr
    lines = (done.stdout + done.stderr).strip().splitlines() or ["(no output)"]
    assert lines[-1] == stated(path, "Last line", "(the docstring states no last line)")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_shorter_than_60_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60
