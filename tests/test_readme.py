"""Every Python block of the README runs as it stands, without a network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.run_script import run_script

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{i}" for i, _ in enumerate(BLOCKS, 1)])
def test_a_block_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(block)
    done = run_script(script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
