"""Work that takes longer than a lease: nobody else begins it as long as its owner lives."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard import ReActAgent, tool
from callboard.actors.system import ActorSystem, Seat
from callboard.model import ModelRequest
from callboard.testing import ScriptedModel, call
from tests.providers.engines.conftest import LEASE_S, Opened

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock, pytest.mark.slow]


class Slow:
    """Agents whose model takes longer than a lease, and whose tool writes down what it does."""

    def __init__(self) -> None:
        self.ledger: list[str] = []
        self.begun = 0

    def agent(self, seat: Seat) -> ReActAgent:
        @tool(effect="effect")
        def pay(who: str) -> str:
            """Pay."""
            self.ledger.append(who)
            return "paid"

        async def think(_: ModelRequest) -> Any:
            self.begun += 1
            await anyio.sleep(1.3 * LEASE_S)
            return call("pay", "a", who="ann")

        script: list[Any] = [think, "done"]
        return ReActAgent(
            address=seat.address,
            model=ScriptedModel(script),
            tools=[pay],
            journal=seat.journal,
        )

    async def begins(self) -> None:
        while not self.begun:
            await anyio.sleep(0.01)

    def system(self, opened: Opened) -> ActorSystem:
        system = ActorSystem(opened())
        system.register("clerk", self.agent)
        return system


async def test_act_07_a_handler_that_outlives_the_lease_runs_once(opened: Opened) -> None:
    slow = Slow()
    async with slow.system(opened) as one, slow.system(opened):
        assert (await one.ref("clerk/a").ask("pay", timeout_s=30)).text == "done"
    assert (slow.begun, slow.ledger) == (1, ["ann"])


async def test_act_07_and_so_it_does_while_its_worker_ends(opened: Opened) -> None:
    slow, over = Slow(), anyio.Event()

    async def end_in_the_middle() -> None:
        async with slow.system(opened):
            await slow.begins()

    async def stand_by() -> None:
        await slow.begins()
        async with slow.system(opened):
            await over.wait()

    async with ActorSystem(opened()) as client, anyio.create_task_group() as group:
        group.start_soon(end_in_the_middle)
        group.start_soon(stand_by)
        reply = await client.ref("clerk/a").ask("pay", timeout_s=30)
        over.set()
        assert (reply.text, slow.begun, slow.ledger) == ("done", 1, ["ann"])
