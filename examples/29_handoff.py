"""A conversation that another agent takes over, with all that was said; the user goes on with it.

Last line: billing has read: user assistant tool assistant user assistant
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.handing_over import Desk, handoff
from callboard.testing import ScriptedModel, call


async def main() -> None:
    front = ReActAgent(
        name="front",
        model=ScriptedModel([call("handoff", to="billing", why="charged twice")]),
        system_prompt="You find out who can help.",
        tools=[handoff({"billing": "Invoices and payments.", "repairs": "What is broken."})],
    )
    billing = ReActAgent(
        name="billing",
        model=ScriptedModel(["I have paid 20 euros back.", "You are welcome."]),
        system_prompt="You look after invoices.",
        tools=[handoff({"front": "Anything else."})],
    )
    desk = Desk({"front": front, "billing": billing}, holder="front")
    for said in ("I was charged twice.", "Thank you."):
        reply = await desk.run(said)
        print(f"user: {said}\n{desk.holder}: {reply.text}")
    print(f"billing has read: {' '.join([message.role for message in billing.messages])}")


if __name__ == "__main__":
    anyio.run(main)
