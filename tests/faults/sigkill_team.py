"""The process that `test_sigkill_team.py` kills: an agent, and one that it asks as a tool.

    python -m tests.faults.sigkill_team JOURNAL LEDGER

Both keep their journals in one file and go on where these end. Prints `ready` once they are about
to, and `done` at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from callboard import Effect, ReActAgent, SqliteJournal
from callboard.journaling.records import Record
from callboard.journaling.transcript import fold
from callboard.messages import AssistantMessage
from callboard.testing import ScriptedModel, call, say
from tests.faults.sigkill_agent import noting

TASKS = 4  # of the one above, one after the other
STEPS = 2  # of the one below in each, each with an effect and something that may be done again


def above() -> list[Any]:
    """What the model of the one above says: an effect of its own beside each task."""
    turns = [
        say(call("below", f"task-{n}", task=f"Note {n}."), call("effect_note", f"effect-{n}"))
        for n in range(TASKS)
    ]
    return [*turns, "all noted"]


def below() -> list[Any]:
    """What the model of the one below says, task by task."""
    return [
        answer
        for n in range(TASKS)
        for answer in (
            *[
                say(
                    call("effect_note", f"effect-below-{n}-{step}"),
                    call("idempotent_note", f"idempotent-below-{n}-{step}"),
                )
                for step in range(STEPS)
            ],
            f"noted {n}",
        )
    ]


def left(script: Sequence[Any], records: Sequence[Record]) -> list[Any]:
    """What a model has yet to say."""
    said = sum([isinstance(message, AssistantMessage) for message in fold(records).messages])
    return list(script[said:])


async def main(path: str, ledger: str) -> None:
    tools = [one for one in noting(Path(ledger)) if one.effect is not Effect.PURE]
    with (
        SqliteJournal(path, synchronous="NORMAL") as journal,
        SqliteJournal(path, address="agent/below", synchronous="NORMAL") as inner,
    ):
        records = await journal.read()
        helper = ReActAgent(
            name="below",
            model=ScriptedModel(left(below(), await inner.read())),
            tools=tools,
            journal=inner,
        )
        agent = ReActAgent(
            model=ScriptedModel(left(above(), records)),
            tools=[helper.as_tool(description="Takes notes."), tools[1]],
            journal=journal,
        )
        print("ready", flush=True)
        reply = await (agent.resume() if fold(records).seq else agent.run("Have it noted."))
        print("done" if reply.text == "all noted" else f"{reply.outcome}: {reply.text}", flush=True)


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
