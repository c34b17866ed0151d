"""A supervisor gives parts of a task to workers, which are made when they are asked.

Last line: All in all 30 pages; workers made: ada, bob
"""

from __future__ import annotations

import anyio

from callboard import ActorSystem, ReActAgent, Seat, tool
from callboard.teams import map_reduce
from callboard.testing import ScriptedModel, call

PAGES = {"ada": "10 pages", "bob": "20 pages"}
made: list[str] = []


def make_worker(seat: Seat) -> ReActAgent:
    """A worker keeps its conversation when it is put away and made again."""
    made.append(seat.key)
    model = ScriptedModel([PAGES[seat.key]])
    return ReActAgent(address=seat.address, model=model, journal=seat.journal)


async def main() -> None:
    async with ActorSystem() as system:
        system.register("worker", make_worker)
        workers = [system.ref("worker/ada"), system.ref("worker/bob")]

        @tool(effect="pure")
        async def delegate(parts: list[str]) -> str:
            """Have the parts of a task done by the workers, side by side."""

            async def joined(replies: list[object]) -> str:
                return "; ".join([str(getattr(reply, "text", reply)) for reply in replies])

            return await map_reduce(workers, parts, joined, limit=2)

        model = ScriptedModel(
            [call("delegate", parts=["count part 1", "count part 2"]), "All in all 30 pages"]
        )
        boss = await system.spawn(ReActAgent(name="boss", model=model, tools=[delegate]))
        reply = await boss.ask("How many pages are there?")
    print(f"{reply.text}; workers made: {', '.join(sorted(made))}")


if __name__ == "__main__":
    anyio.run(main)
