"""The real command asks a real model on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.command import callboard

pytestmark = pytest.mark.live


def test_a_question_for_one_tool_is_answered_with_it(tmp_path: Path) -> None:
    done = callboard(
        "ask",
        "How much is 58 times 17?",
        "--model",
        "local:qwen2.5-coder-0.5b",
        cwd=tmp_path,
        timeout_s=600,
    )
    assert done.returncode == 0, done.stderr
    assert "→ calculate(" in done.stdout
    assert "986" in done.stdout
