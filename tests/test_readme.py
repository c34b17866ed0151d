"""Every Python block of the README runs as it stands, without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text() if (ROOT / "README.md").exists() else ""
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{i}" for i, _ in enumerate(BLOCKS, 1)])
def test_a_block_of_the_readme_runs(block: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(block)
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
