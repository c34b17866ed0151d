"""A worker process whose actors are made to be broken off at one point.

    python -m tests.faults.engine.hands ENGINE LEDGER LEASE_S

`note/*` writes down what it is told. `teller/*` writes it down, tells `note/sink`, and ends its
process in between where the text begins with "die". `slow/*` takes 20 ms. `clerk/*` is an agent
whose only tool notes an order, and then waits for as long as there is a file LEDGER.hang;
`guarded/*` is one that asks a human first.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from callboard import Effect, Proceed, ReActAgent, ToolCall, ToolContext, Verdict, tool
from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Supervision
from callboard.actors.system import ActorSystem, Seat
from tests.faults.engine.engines import engine_of
from tests.faults.engine.worker import Obedient

RULES = ActorRules(idle_s=0.3, supervision=Supervision(on_failure=OnFailure.RESUME, backoff_s=0.01))
Note = Callable[[str, str], None]


def is_there(file: str | Path) -> bool:
    return os.path.isfile(file)


class Noting(Actor):
    """Writes down what it is told, and takes its time."""

    def __init__(self, note: Note, name: str, takes_s: float) -> None:
        self.note, self.name, self.takes_s = note, name, takes_s

    async def receive(self, letter: Envelope) -> Any:
        await anyio.sleep(self.takes_s)
        self.note(self.name, str(letter.payload))
        return letter.payload


class Teller(Actor):
    def __init__(self, note: Note, system: ActorSystem) -> None:
        self.note, self.system = note, system

    async def receive(self, letter: Envelope) -> None:
        text = str(letter.payload)
        self.note("teller", text)
        await self.system.ref("note/sink").tell(text)
        if text.startswith("die") and not is_there(text.partition(" until ")[2]):
            os.kill(os.getpid(), signal.SIGKILL)


class Guarded(ReActAgent):
    """Asks a human before each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("a human looks first") if isinstance(verdict, Proceed) else verdict


def tools_of(note: Note, hang: Path) -> list[Any]:
    async def noted(context: ToolContext, order: str) -> str:
        note(context.tool_name, order)
        while is_there(hang):  # another process takes it away
            await anyio.sleep(0.01)
        return f"noted {order}"

    @tool(effect=Effect.EFFECT)
    async def effect_note(context: ToolContext, order: str) -> str:
        """Note an order."""
        return await noted(context, order)

    @tool(effect=Effect.IDEMPOTENT)
    async def idempotent_note(context: ToolContext, order: str) -> str:
        """Note an order."""
        return await noted(context, order)

    return [effect_note, idempotent_note]


def register(system: ActorSystem, ledger: Path) -> None:
    """All of them, with a ledger that survives this process."""

    def note(name: str, text: str) -> None:
        with ledger.open("ab", buffering=0) as file:
            file.write((json.dumps([name, text, str(os.getpid())]) + "\n").encode())

    tools = tools_of(note, ledger.with_name(f"{ledger.name}.hang"))

    def agent(cls: type[ReActAgent], seat: Seat) -> ReActAgent:
        return cls(address=seat.address, model=Obedient(), tools=tools, journal=seat.journal)

    system.register("clerk", partial(agent, ReActAgent), RULES)
    system.register("guarded", partial(agent, Guarded), RULES)
    system.register("note", lambda seat: Noting(note, "note", 0), RULES)
    system.register("slow", lambda seat: Noting(note, "slow", 0.02), RULES)
    system.register("teller", lambda seat: Teller(note, system), RULES)


async def main(spec: str, ledger: str, lease_s: str) -> None:
    engine = engine_of(spec, float(lease_s))
    system = ActorSystem(engine, stop_s=5.0)
    register(system, Path(ledger))
    async with system:
        print("ready", flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                break


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
