"""A plan first, then its steps one after the other, then the answer.

Last line: Buy in the south: it saves 3.
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.testing import ScriptedModel, call, say
from callboard_mixins import PlanAndSolveMixin

PRICES = {"north": 12, "south": 9}


def price(shop: str) -> int:
    """The price in a shop."""
    return PRICES[shop]


class Planner(PlanAndSolveMixin, ReActAgent):
    """An agent that plans."""


async def main() -> None:
    model = ScriptedModel(
        [
            "1. Look up the price in both shops.\n2. Compare them.",
            say(call("price", shop="north"), call("price", shop="south")),
            "North asks 12, south asks 9.",
            "South is 3 cheaper.",
            "Buy in the south: it saves 3.",
        ]
    )
    agent = Planner(model=model, tools=[price])
    reply = await agent.run("Where is it cheaper?")
    assert agent.plan is not None
    for number, step in enumerate(agent.plan.steps, 1):
        print(f"{number}. {step.text}\n   {step.result}")
    print(reply.text)


if __name__ == "__main__":
    anyio.run(main)
