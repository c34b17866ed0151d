"""Interrupt and cancel: every call gets a result that says what is known, and it goes on after.

Last line: afterwards: finished: Good that you stopped me.
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent, ToolResultMessage, tool
from callboard.testing import ScriptedModel, call, say


@tool(effect="pure")
async def search() -> None:
    """Only looks, so a call that was cut off is simply cancelled."""
    await anyio.sleep_forever()


@tool(effect="effect")
async def launch() -> None:
    """Changes the world, so nobody knows how a call that was cut off ended."""
    await anyio.sleep_forever()


both = say("I will do both.", call("search"), call("launch"))
model = ScriptedModel([both, both, "Good that you stopped me."])
agent = ReActAgent(model=model, tools=[search, launch])


async def interrupt() -> None:
    await anyio.sleep(0.2)
    await agent.interrupt()


def show(title: str) -> None:
    print(title)
    for message in agent.messages[-2:]:
        if isinstance(message, ToolResultMessage):
            print(f"  {message.tool_name}: {message.status}: {message.text}")


async def main() -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(interrupt)
        reply = await agent.run("Go.")  # an interrupt is a reply
        show(f"interrupted: {reply.outcome}")

    with anyio.move_on_after(0.2):  # a cancel is a cancel: nothing of the run is left
        await agent.run("Once more.")
    show(f"cancelled: {agent.state.last_outcome}")

    reply = await agent.run("And now?")  # the transcript stayed sendable
    print(f"afterwards: {reply.outcome}: {reply.text}")


if __name__ == "__main__":
    anyio.run(main)
