"""An answer is judged, and tried again with what was wrong in mind.

Last line: Splash!
"""

from __future__ import annotations

import anyio

from callboard import Prompt, ReActAgent, Reply
from callboard.testing import ScriptedModel
from callboard_mixins import Judgement, ReflexionMixin, ReflexionPolicy


class Careful(ReflexionMixin, ReActAgent):
    """An agent that tries again."""


def judge(prompt: Prompt, reply: Reply) -> Judgement:
    """A haiku has three lines."""
    lines = reply.text.count("\n") + 1
    return Judgement(1.0) if lines == 3 else Judgement(0.3, f"a haiku has 3 lines, not {lines}")


async def main() -> None:
    model = ScriptedModel(
        ["An old pond, a frog.", "An old silent pond.\nA frog jumps into the pond.\nSplash!"]
    )
    agent = Careful(model=model, reflexion_policy=ReflexionPolicy(evaluator=judge))
    reply = await agent.run("Write a haiku.")
    for attempt in agent.state.layers["reflexion"]:
        print(attempt["score"], attempt["reflection"] or "good")
    print(reply.text)


if __name__ == "__main__":
    anyio.run(main)
