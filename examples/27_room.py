"""Three agents in a room: each hears what the others said, in one order, when its turn comes.

Last line: cleo heard: host: Tea or coffee? | ann: Tea. | bert: Coffee.
"""

from __future__ import annotations

import anyio

from callboard import ReActAgent
from callboard.teams import Room
from callboard.testing import ScriptedModel


async def main() -> None:
    answers = {"ann": "Tea.", "bert": "Coffee.", "cleo": "Tea wins, 2 to 1."}
    guests = [ReActAgent(name=name, model=ScriptedModel([said])) for name, said in answers.items()]
    room = Room(*guests)
    await room.say("host: Tea or coffee?")
    for guest in guests:
        reply = await room.turn(guest)
        print(f"{guest.name}: {reply.text}")
    heard = [message.text for message in guests[-1].messages if message.role == "user"]
    print(f"cleo heard: {' | '.join(heard[:-1])}")


if __name__ == "__main__":
    anyio.run(main)
