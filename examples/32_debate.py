"""Two agents argue in a room, and a third one judges: plain Python over `Room`.

Last line: judge: Cats win: they need no walks. (4 arguments heard)
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.teams import Room
from callboard.testing import ScriptedModel


def debater(name: str, *arguments: str) -> ReActAgent:
    """An agent with a side; a real model would make its own arguments."""
    prompt = f"You argue for {name}. Answer what the other one says, in one sentence."
    return ReActAgent(name=name, model=ScriptedModel(list(arguments)), system_prompt=prompt)


async def main() -> None:
    cats = debater("cats", "They are quiet.", "They need no walks.")
    dogs = debater("dogs", "They come when they are called.", "Walks are good for you.")
    judge = ReActAgent(
        name="judge",
        model=ScriptedModel(["Cats win: they need no walks."]),
        system_prompt="You hear a debate and say who has won.",
    )
    room = Room(cats, dogs, judge)
    await room.say("The question: cats or dogs?")
    for _ in range(2):
        for side in (cats, dogs):
            said = await room.turn(side, "Your argument, please.")
            print(f"{side.name}: {said.text}")
    verdict = await room.turn(judge, "Who has won?")
    heard = [message.text for message in judge.messages if message.role == "user"][1:-1]
    print(f"judge: {verdict.text} ({len(heard)} arguments heard)")


if __name__ == "__main__":
    anyio.run(main)
