"""What the tests of `callboard chat` share: tools that wait for a file, and agents that ask."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

OWN = '''
"""Tools and agents of a user."""
from pathlib import Path

import anyio

from callboard import Proceed, ReActAgent, ToolCall, Verdict, tool

@tool(effect="effect")
async def send(text: str) -> str:
    """Write the text down, then wait for the file `go`."""
    with Path("ledger").open("a") as ledger:
        ledger.write(text + "\\\\n")
    while not Path("go").exists():
        await anyio.sleep(0.01)
    return f"sent {text}"

def shout() -> str:
    """Print something."""
    print("LOUD")
    return "shouted"

class Careful(ReActAgent):
    """Asks before each call."""

    def __init__(self, **rest):
        super().__init__(tools=[send], **rest)

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("the owner wants to know") if isinstance(verdict, Proceed) else verdict

def forgetful(model):
    return ReActAgent(model=model)
'''.replace("\\\\n", "\\n")


def bench(folder: Path, answers: Sequence[Any], *options: str) -> list[str]:
    """The arguments of a chat with a scripted model, in a folder with the module `own`."""
    (folder / "own.py").write_text(OWN)
    (folder / "answers.json").write_text(json.dumps(list(answers)))
    return ["chat", "--model", "scripted:answers.json", *options]


def state(folder: Path) -> dict[str, str]:
    """Where the sessions of a test are kept."""
    return {"CALLBOARD_STATE_DIR": str(folder / "state")}
