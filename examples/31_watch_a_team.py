"""One subscription shows a whole team at work: an agent, the actor that is its tool, and whose run
each event belongs to. What was seen can be read again from the journals.

Last line: the journal of the clerk tells the same: True
"""

from __future__ import annotations

import anyio

from callboard import ActorSystem, ReActAgent, Seat
from callboard.events import AgentEnd, AgentStart, Event
from callboard.journal_events import events_of
from callboard.testing import ScriptedModel, call


def make_clerk(seat: Seat) -> ReActAgent:
    """Made when the boss asks for the first time."""
    model = ScriptedModel(["12 pages"])
    return ReActAgent(address=seat.address, model=model, journal=seat.journal)


async def main() -> None:
    seen: list[Event] = []
    async with ActorSystem() as system:
        system.register("clerk", make_clerk)
        clerk = system.ref("clerk/ada")
        boss = ReActAgent(
            name="boss",
            model=ScriptedModel([call("count", task="Count the pages."), "It has 12 pages."]),
            tools=[clerk.as_tool(name="count", description="Counts things.")],
        )
        with system.watch() as events:
            await (await system.spawn(boss)).ask("How long is it?")
        async for event in events:
            seen.append(event)
            if isinstance(event, AgentStart | AgentEnd):
                inside = "inside another run" if event.parent_run else "by itself"
                print(f"{event.address} {event.kind}, {inside}")
        records = await system.journal(clerk.address).read()
    live = [event.kind for event in seen if event.address == clerk.address]
    told = [event.kind for event in events_of(records, clerk.address)]
    print(f"the journal of the clerk tells the same: {told == live}")


if __name__ == "__main__":
    anyio.run(main)
