"""The process that `test_sigkill_audit.py` kills: an audited agent that acts over and over.

    python -m tests.faults.sigkill_audit JOURNAL TRAIL

Goes on where the journal ends. Prints `ready` once it is about to, and `done` at the end.
"""

from __future__ import annotations

import sys
from functools import partial

import anyio

from callboard import ReActAgent, SqliteJournal
from callboard.journaling.transcript import fold
from callboard.messages import AssistantMessage
from callboard.testing import ScriptedModel, ScriptItem, call, say
from callboard_mixins import AuditMixin, JsonLinesTrail, SqliteTrail

TURNS = 30


class Audited(AuditMixin, ReActAgent):
    """An agent whose every decision and execution is written."""


async def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


async def main(path: str, file: str) -> None:
    make = SqliteTrail if file.endswith(".db") else JsonLinesTrail
    trail = make(file)
    with SqliteJournal(path) as journal:
        state = fold(await journal.read())
        said = sum([isinstance(message, AssistantMessage) for message in state.messages])
        turns: list[ScriptItem] = [
            say(call("send", f"a{n}", to=f"{n}"), call("nothing", f"b{n}", at=n))
            for n in range(TURNS)
        ]
        agent = Audited(
            model=ScriptedModel([*turns, "all sent"][said:]),
            tools=[send],
            max_iters=TURNS + 1,
            journal=journal,
            audit=trail,
        )
        print("ready", flush=True)
        begun = state.run is not None or state.last_run is not None
        reply = await (agent.resume() if begun else agent.run("Send all."))
        print("done" if reply.text == "all sent" else f"{reply.outcome}: {reply.text}", flush=True)


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
