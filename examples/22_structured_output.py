"""An answer in the form of a type: the first try is wrong, and is corrected.

Last line: Weather(city='Oslo', degrees=-3) after 2 model calls
"""

from __future__ import annotations

import anyio
from pydantic import BaseModel, Field

from callboard import ReActAgent
from callboard.testing import ScriptedModel, call
from callboard_mixins import StructuredOutputMixin


class Weather(BaseModel):
    """What is wanted."""

    city: str
    degrees: int = Field(ge=-90, le=60)


class Forecaster(StructuredOutputMixin[Weather], ReActAgent):
    """An agent that answers with a Weather."""


async def main() -> None:
    model = ScriptedModel(
        [
            call("final_answer", city="Oslo", degrees=270),
            call("final_answer", city="Oslo", degrees=-3),
        ]
    )
    agent = Forecaster(model=model, output=Weather)
    reply = await agent.run("How is it in Oslo?")
    assert reply.output is not None
    print(f"told: {agent.messages[2].text.splitlines()[0]}")
    print(f"{reply.output!r} after {len(model.requests)} model calls")


if __name__ == "__main__":
    anyio.run(main)
