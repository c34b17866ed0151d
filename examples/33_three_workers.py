"""Three workers share the agents of a NATS server. The one that is at work is killed in the middle
of a run; another one goes on, and the answer still comes.

Last line: The mail is out: sent to Ann
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio

from callboard import ActorSystem, Effect, ReActAgent, tool
from callboard.actors.system import Seat
from callboard.model import ModelRequest
from callboard.testing import ScriptedModel, ScriptItem, call
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.nats_server import NatsServers


@tool(effect=Effect.IDEMPOTENT)  # a call that was cut off is made again, with the same key
def mail(to: str) -> str:
    """Send a mail."""
    if not Path("tried").exists():
        Path("tried").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"sent to {to}"


def think(request: ModelRequest) -> ScriptItem:
    last = request.messages[-1]
    return call("mail", to="Ann") if last.role == "user" else f"The mail is out: {last.text}"


def make_clerk(seat: Seat) -> ReActAgent:
    model = ScriptedModel((), then=think)
    return ReActAgent(address=seat.address, model=model, tools=[mail], journal=seat.journal)


async def main(url: str, *, works: bool) -> None:
    async with ActorSystem(NatsEngine(url, lease_s=2)) as system:
        if works:
            system.register("clerk", make_clerk)
            await anyio.sleep_forever()
        print((await system.ref("clerk/claire").ask("Write to Ann.", timeout_s=60)).text)


if sys.argv[1:]:
    anyio.run(lambda: main(sys.argv[1], works=True))
else:
    with NatsServers(Path("nats")) as servers:
        workers = [subprocess.Popen([sys.executable, __file__, servers.url]) for _ in range(3)]
        anyio.run(lambda: main(servers.url, works=False))
        for one in workers:
            one.kill()
            one.wait()
