"""The process that `test_sigkill.py` kills: an agent whose tools write to a ledger.

    python -m tests.faults.sigkill_agent JOURNAL LEDGER SYNCHRONOUS

Goes on where the journal ends. Prints `ready` once it is about to, and `done` at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio

from callboard import Effect, ReActAgent, SqliteJournal, ToolContext, tool
from callboard.journaling.transcript import State, fold
from callboard.messages import AssistantMessage
from callboard.testing import ScriptedModel, call, say

TURNS = 12
KINDS = (Effect.PURE, Effect.IDEMPOTENT, Effect.EFFECT)


def noting(ledger: Path) -> list[Any]:
    """One tool for each effect, each of which notes what it did, for good, as its last act but
    one: it can be killed before and after.
    """

    def note(context: ToolContext) -> str:
        line = json.dumps([context.call_id, context.idempotency_key]) + "\n"
        time.sleep(0.001)
        with ledger.open("ab", buffering=0) as file:
            file.write(line.encode())
            os.fsync(file.fileno())
        time.sleep(0.001)
        return f"noted {context.call_id}"

    return [tool(effect=effect)(_named(note, effect)) for effect in KINDS]


def _named(note: Callable[[ToolContext], str], effect: Effect) -> Callable[..., Any]:
    async def act(context: ToolContext) -> str:
        """Note it; on the event loop or in a thread."""
        return note(context)

    def act_in_thread(context: ToolContext) -> str:
        """Note it; on the event loop or in a thread."""
        return note(context)

    chosen: Callable[..., Any] = act if effect is Effect.IDEMPOTENT else act_in_thread
    chosen.__name__ = f"{effect}_note"
    return chosen


def answers(state: State) -> list[Any]:
    """What the model has yet to say."""
    said = sum([isinstance(message, AssistantMessage) for message in state.messages])
    turns = [
        say(*[call(f"{effect}_note", f"{effect}-{n}") for effect in KINDS]) for n in range(TURNS)
    ]
    return [*turns, "all noted"][said:]


async def main(path: str, ledger: str, mode: str) -> None:
    synchronous: Literal["FULL", "NORMAL"] = "FULL" if mode == "FULL" else "NORMAL"
    with SqliteJournal(path, synchronous=synchronous) as journal:
        state = fold(await journal.read())
        agent = ReActAgent(
            model=ScriptedModel(answers(state)),
            tools=noting(Path(ledger)),
            max_iters=TURNS + 1,
            journal=journal,
        )
        print("ready", flush=True)
        begun = state.run is not None or state.last_run is not None
        reply = await (agent.resume() if begun else agent.run("Note everything."))
        print("done" if reply.text == "all noted" else f"{reply.outcome}: {reply.text}", flush=True)


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
