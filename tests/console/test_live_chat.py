"""A real chat with a real model on this machine: steered, killed in mid-tool, and picked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.chat_kit import state
from tests.console.terminal import CTRL_C, Terminal

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

OWN = '''
"""A tool of a user."""
from pathlib import Path

import anyio

from callboard import tool

@tool(effect="effect")
async def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    while not Path("go").exists():
        await anyio.sleep(0.01)
    return a * b
'''
OPTIONS = ("--model", "local:qwen2.5-coder-0.5b", "--no-built-in", "--tool", "own:multiply")


def test_a_chat_is_steered_interrupted_killed_and_picked_up(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    with Terminal("chat", *OPTIONS, cwd=tmp_path, **state(tmp_path)) as terminal:
        terminal.expect("tools: multiply")
        terminal.say("How much is 58 times 17?")
        terminal.expect("→ multiply(", timeout_s=300)
        terminal.type(CTRL_C)
        terminal.expect("interrupted in ")
        terminal.say("How much is 58 times 17? Try again.")
        terminal.expect("→ multiply(", timeout_s=300)
        terminal.say("Be brief.")
        terminal.expect("queued behind the running step: Be brief.")
        terminal.kill()
    (tmp_path / "go").touch()
    with Terminal("chat", *OPTIONS, cwd=tmp_path, **state(tmp_path)) as terminal:
        terminal.expect("the last run was cut off in multiply; it goes on")
        terminal.expect("← multiply: unknown_outcome: ")
        terminal.expect("> Be brief.")
        terminal.expect(" tokens in", timeout_s=300)
        terminal.say("/messages")
        terminal.expect("unknown_outcome")
        terminal.say("/quit")
        terminal.leave()
