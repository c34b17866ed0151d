"""A journal is a test: the code of today does what was recorded, stricter code is told where not.

Last line: what if: Keep it, then.
"""

from __future__ import annotations

from functools import partial

import anyio

from callboard import (
    Deny,
    InMemoryJournal,
    Journal,
    Model,
    Proceed,
    ReActAgent,
    ToolCall,
    Verdict,
    forked,
)
from callboard.testing import ScriptedModel, call, replayed


def refund(amount: int) -> str:
    """Pay money back."""
    print(f"  (paid back {amount})")
    return f"paid back {amount}"


class StrictMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and verdict.call.arguments["amount"] > 100:
            return Deny("more than 100 is for the boss")
        return verdict


def clerk(*, model: Model, journal: Journal, kind: type[ReActAgent] = ReActAgent) -> ReActAgent:
    return kind(model=model, journal=journal, tools=[refund])


def main() -> None:
    journal = InMemoryJournal()
    today = ScriptedModel([call("refund", amount=120), "Paid back."])
    print(clerk(model=today, journal=journal).run_sync("My tea set broke: 120.").text)

    replayed(journal, clerk).assert_same()  # pays nothing back, and asks no model
    print("replayed: the same")
    print(f"stricter: {replayed(journal, partial(clerk, kind=StrictMixin)).difference}")

    other = anyio.run(lambda: forked(journal, at=1))  # right behind the prompt
    agent = clerk(model=ScriptedModel(["Keep it, then."]), journal=other)
    print(f"what if: {agent.run_sync('I found the cups again.').text}")


main()
