"""A layer: override a step, call super(), change what comes back. Here it masks card numbers.

Last line: finished: The card ends with 1111.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from callboard import Observation, ReActAgent, SealedCall, TextBlock
from callboard.testing import ScriptedModel, call, check_layer

CARD = re.compile(r"\b(?:\d{4}[ -]?){3}(\d{4})\b")


class CardMaskMixin(ReActAgent):
    """Keeps card numbers from the model. `card_mask` is what stands for the digits."""

    def __init__(self, *, card_mask: str = "****", **rest: Any) -> None:
        super().__init__(**rest)
        self._card_mask = card_mask

    async def _acting(self, call: SealedCall) -> Observation:
        observation = await super()._acting(call)  # the next layer, and at last the tool
        content = [
            TextBlock(text=CARD.sub(rf"{self._card_mask} \1", block.text))
            if isinstance(block, TextBlock)
            else block
            for block in observation.content
        ]
        return replace(observation, content=tuple(content), payload=None)


class ShopAgent(CardMaskMixin, ReActAgent):
    """An agent is a stack of layers, the outermost first."""


def find_customer(name: str) -> str:
    """Look a customer up."""
    return f"{name}, card 4111 1111 1111 1111"


def main() -> None:
    print(ShopAgent.explain())
    check_layer(CardMaskMixin, orders=24)  # raises where it breaks a law, alone or among others
    model = ScriptedModel([call("find_customer", name="Ada"), "The card ends with 1111."])
    agent = ShopAgent(model=model, tools=[find_customer])
    reply = agent.run_sync("Which card does Ada use?")
    print(f"the model saw: {model.requests[-1].messages[-1].text}")
    print(f"{reply.outcome}: {reply.text}")


if __name__ == "__main__":
    main()
