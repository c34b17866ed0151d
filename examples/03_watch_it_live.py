"""A run as it happens: `stream` gives every event, in order, and the reply at the end.

Last line: 3 updates, finished: The answer is 42.
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.events import MessageUpdate, ToolEnd, ToolStart, TurnStart
from callboard.model import TextDelta, ThinkingDelta
from callboard.testing import ScriptedModel, call, stream, think


async def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


model = ScriptedModel(
    [
        stream(think("I should compute that."), call("multiply", a=6, b=7)),
        stream("The answer ", "is 42."),
    ]
)
agent = ReActAgent(model=model, tools=[multiply])


async def main() -> None:
    updates = 0
    async with agent.stream("What is 6 times 7?") as events:
        async for event in events:
            match event:
                case TurnStart():
                    print(f"turn {event.turn}")
                case MessageUpdate(delta=ThinkingDelta(text=text)):
                    updates += 1
                    print(f"  thinks: {text}")
                case MessageUpdate(delta=TextDelta(text=text)):
                    updates += 1
                    print(f"  says:   {text}")
                case ToolStart():
                    print(f"  calls:  {event.call.name} {event.call.raw}")
                case ToolEnd():
                    print(f"  sees:   {event.observation.text}")
                case _:
                    pass  # there are more: see callboard.events
    assert events.reply is not None
    print(f"{updates} updates, {events.reply.outcome}: {events.reply.text}")


if __name__ == "__main__":
    anyio.run(main)
