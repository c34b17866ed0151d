"""What tests of engines on the command line share: a program, and `callboard run` on it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Letter
from callboard.actors.payloads import to_body
from callboard.messages import new_id
from callboard_providers.engines.sqlite import SqliteEngine
from tests.console.command import COMMAND
from tests.run_script import plain_environment

PROGRAM = '''
import time
from callboard import ActorRules, Actor, ReActAgent, Supervision
from callboard.approvals import Proceed
from callboard.testing import ScriptedModel, call

class Guarded(ReActAgent):
    async def _deciding(self, call):
        verdict = await super()._deciding(call)
        return verdict.ask("costs money") if isinstance(verdict, Proceed) else verdict

def pay(amount: int) -> str:
    """Pay."""
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"

async def sleep() -> str:
    """Sleep for an hour."""
    import anyio
    open("asleep.txt", "w").close()
    await anyio.sleep(3600)

def answer(request):
    last = request.messages[-1]
    if last.role != "user":
        return f"done: {last.text}"
    return call("sleep") if last.text == "sleep" else call("pay", amount=5)

def clerk(seat):
    model = ScriptedModel((), then=answer)
    return Guarded(address=seat.address, journal=seat.journal, model=model, tools=[pay])

def sleeper(seat):
    model = ScriptedModel((), then=answer)
    return ReActAgent(address=seat.address, journal=seat.journal, model=model, tools=[sleep])

class Broken(Actor):
    async def receive(self, letter):
        raise ValueError("no good")

def register(system):
    system.register("clerk", clerk)
    system.register("sleeper", sleeper)
    rules = ActorRules(supervision=Supervision(on_failure="resume"), attempts=1)
    system.register("broken", lambda seat: Broken(), rules)

KINDS = {"clerk": clerk}
NOTHING = 7
'''


class Serving:
    """`callboard run team:register --engine sqlite:team.db` in a folder."""

    def __init__(self, folder: Path, *more: str, system: str = "team:register") -> None:
        (folder / "team.py").write_text(PROGRAM)
        self.folder = folder
        self.process = subprocess.Popen(
            [*COMMAND, "run", system, "--engine", "sqlite:team.db", *more],
            cwd=folder,
            env=plain_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def leave(self, timeout_s: float = 45.0) -> tuple[int, str]:
        """Wait until it ends: its exit code, and what it wrote since it serves."""
        text, _ = self.process.communicate(timeout=timeout_s)
        return self.process.returncode, text


def tell(folder: Path, address: str, text: str) -> None:
    """Send a message into the engine of the folder."""
    anyio.run(_tell, folder / "team.db", address, text)


async def _tell(file: Path, address: str, text: str) -> None:
    async with SqliteEngine(file) as engine:
        await engine.send(Letter(new_id("l"), Address.parse(address), to_body(text)))


def standing(folder: Path, address: str) -> str:
    """How an agent stands in the engine of the folder; nothing before there is one."""
    return anyio.run(_standing, folder / "team.db", Address.parse(address))


async def _standing(file: Path, address: Address) -> str:
    async with SqliteEngine(file) as engine:
        return "".join([one.standing for one in await engine.actors() if one.address == address])


def dead(folder: Path) -> list[int]:
    """The numbers of the dead letters."""
    return anyio.run(_dead, folder / "team.db")


async def _dead(file: Path) -> list[int]:
    async with SqliteEngine(file) as engine:
        return [one.number for one in await engine.dead()]
