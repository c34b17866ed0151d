"""Tools with types, bounds, progress, and a context that knows the call and the agent's deps.

Last line: finished: Booked two seats; please pay 59.8.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from callboard import ReActAgent, ToolContext, tool
from callboard.testing import ScriptedModel, call, say


@dataclass
class Theatre:
    free_seats: int = 5


@tool(effect="pure", timeout_s=5)
async def price(kind: Literal["stalls", "balcony"], seats: Annotated[int, Field(ge=1)]) -> float:
    """Tell what seats cost together."""
    return {"stalls": 29.9, "balcony": 19.9}[kind] * seats


@tool(effect="effect", resource="seats")  # calls that share a resource never overlap
async def book(seats: int, context: ToolContext) -> AsyncIterator[str]:
    """Book seats. What it yields is progress; the last value is the result."""
    theatre: Theatre = context.deps
    yield f"asking for {seats} of {theatre.free_seats} seats"
    theatre.free_seats -= seats
    yield f"booked {seats}, order {context.call_id}"


model = ScriptedModel(
    [
        say(call("price", kind="gallery", seats=0)),  # does not fit the schema
        say(call("price", kind="stalls", seats="2"), call("book", seats=2)),  # "2" is repaired
        "Booked two seats; please pay 59.8.",
    ]
)
agent = ReActAgent(model=model, tools=[price, book], deps=Theatre())


def main() -> None:
    print(price.parameters["properties"]["kind"])
    reply = agent.run_sync("Two seats in the stalls, please.")
    for message in reply.messages:
        if message.role == "tool":
            print(f"{message.tool_name}: {message.status}: {message.text}")
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    main()
