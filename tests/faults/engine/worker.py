"""A worker process of the soak: clerks that note orders in a ledger, and relays that pass them on.

    python -m tests.faults.engine.worker ENGINE LEDGER LEASE_S

Prints `ready` once it takes part. Ends on SIGTERM, after a drain.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from callboard import Effect, ReActAgent, ToolContext, tool
from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Supervision
from callboard.actors.system import ActorSystem, Seat
from callboard.messages import StopReason, TextBlock, ToolCall, ToolResultMessage
from callboard.model import Capabilities, Delta, ModelRequest, StopDelta, WholeDelta
from tests.faults.engine.engines import engine_of

RULES = ActorRules(idle_s=2.0, attempts=10, supervision=Supervision(on_failure=OnFailure.RESTART))


class Obedient:
    """A model that notes each order with both tools, then says so. It looks at the request only."""

    name = "scripted:obedient"
    capabilities = Capabilities()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta]:
        last = request.messages[-1]
        if isinstance(last, ToolResultMessage):
            yield WholeDelta((TextBlock(text=f"noted after {last.status}"),))
            yield StopDelta(StopReason.END)
            return
        order = last.text.removeprefix("order ")
        arguments = json.dumps({"order": order})
        names = ("effect_note", "idempotent_note")
        yield WholeDelta(
            tuple([ToolCall(id=f"{name}-{order}", name=name, raw=arguments) for name in names])
        )
        yield StopDelta(StopReason.TOOL_USE)


class Relay(Actor):
    """Passes an order on to its clerk. Fails on "poison"; ends its process on "deadly"."""

    def __init__(self, system: ActorSystem) -> None:
        self.system = system

    async def receive(self, letter: Envelope) -> str:
        match letter.payload:
            case "poison":
                raise ValueError("poison")
            case "deadly":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                pass
        clerk, order = letter.payload["clerk"], letter.payload["order"]
        await self.system.ref(f"clerk/{clerk}").tell(f"order {order}", id=f"order-{order}")
        return "passed on"


def noting(ledger: Path) -> list[Any]:
    def note(context: ToolContext, order: str) -> str:
        line = json.dumps([context.tool_name, order, context.idempotency_key]) + "\n"
        time.sleep(0.001)
        with ledger.open("ab", buffering=0) as file:
            file.write(line.encode())
        time.sleep(0.001)
        return f"noted {order}"

    @tool(effect=Effect.EFFECT)
    async def effect_note(context: ToolContext, order: str) -> str:
        """Note an order."""
        return note(context, order)

    @tool(effect=Effect.IDEMPOTENT)
    async def idempotent_note(context: ToolContext, order: str) -> str:
        """Note an order."""
        return note(context, order)

    return [effect_note, idempotent_note]


async def main(spec: str, ledger: str, lease_s: str) -> None:
    system = ActorSystem(engine_of(spec, float(lease_s)), stop_s=5.0)
    tools = noting(Path(ledger))

    def clerk(seat: Seat) -> Actor:
        return ReActAgent(address=seat.address, model=Obedient(), tools=tools, journal=seat.journal)

    system.register("clerk", clerk, RULES)
    system.register("relay", lambda seat: Relay(system), RULES)
    async with system:
        print("ready", flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                break


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
