"""A script is killed in the middle of a tool and started again: its agent goes on, and is told
what nobody can know.

Last line: tuesday: I cannot tell whether the mail is out; ask Ann.
"""

import os
import signal
import subprocess
import sys

import anyio

from callboard import ActorSystem, Effect, ReActAgent, tool
from callboard.actors.system import Seat
from callboard.testing import ScriptedModel, ScriptItem, call

SCRIPTS: dict[str, list[ScriptItem]] = {
    "monday": [call("mail", to="Ann")],
    "tuesday": ["I cannot tell whether the mail is out; ask Ann."],
}


@tool(effect=Effect.EFFECT)
async def mail(to: str) -> str:
    """Send a mail."""
    print(f"  (a mail to {to} leaves)", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    return f"sent to {to}"


def make_clerk(seat: Seat) -> ReActAgent:
    model = ScriptedModel(SCRIPTS[sys.argv[1]])
    return ReActAgent(address=seat.address, model=model, tools=[mail], journal=seat.journal)


async def script() -> None:
    """The same each time: with its id the letter is one letter, however often it is sent."""
    async with ActorSystem("sqlite:team.db") as system:
        system.register("clerk", make_clerk)
        clerk = system.ref("clerk/claire")
        await clerk.tell("Write to Ann.", id="ann-1")
        reply = await system.result("ann-1")
        [result] = [one for one in await clerk.messages() if one.role == "tool"]
        print(f"{sys.argv[1]}: the model read: {result.text}")
        print(f"{sys.argv[1]}: {reply.text}")


if __name__ == "__main__":
    if sys.argv[1:]:
        anyio.run(script)
    else:
        for day in SCRIPTS:
            subprocess.run([sys.executable, __file__, day], check=False)
