"""Teams over an engine: agents as tools, approvals and steering, from one life to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard import Proceed, ReActAgent, ToolCall, Verdict, tool
from callboard.actors.engine import Engine
from callboard.actors.system import ActorSystem, Seat
from callboard.messages import ToolResultMessage
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call

Opened = Callable[[], Engine]
pytestmark = pytest.mark.anyio


class Guarded(ReActAgent):
    """Asks a human before each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("a human looks first") if isinstance(verdict, Proceed) else verdict


class Team:
    """A boss that gives work to a clerk, who pays. Each life has scripts of its own."""

    def __init__(self, opened: Opened, ledger: list[str]) -> None:
        self._opened = opened
        self._ledger = ledger
        self.hang = False

    def system(self, *, boss: list[Any], clerk: list[Any], stop_s: float = 5.0) -> ActorSystem:
        system = ActorSystem(self._opened(), stop_s=stop_s)

        @tool(effect="effect")
        async def pay(amount: int) -> str:
            """Pay."""
            self._ledger.append(f"pay {amount}")
            if self.hang:
                await anyio.sleep_forever()
            return "paid"

        def make_clerk(seat: Seat) -> ReActAgent:
            model = ScriptedModel(clerk)
            return Guarded(address=seat.address, model=model, tools=[pay], journal=seat.journal)

        def make_boss(seat: Seat) -> ReActAgent:
            below = system.ref("clerk/ann").as_tool(name="ann", description="Pays.")
            model = ScriptedModel(boss)
            return ReActAgent(
                address=seat.address, model=model, tools=[below], journal=seat.journal
            )

        system.register("clerk", make_clerk)
        system.register("boss", make_boss)
        return system


async def test_a_child_parked_inside_its_parent_is_answered_in_the_next_life(
    opened: Opened,
) -> None:
    ledger: list[str] = []
    team = Team(opened, ledger)
    async with team.system(boss=[call("ann", task="Pay 3.")], clerk=[call("pay", amount=3)]) as one:
        reply = await one.ref("boss/b").ask("Have it paid.", id="run-1")
        assert reply.outcome is Outcome.AWAITING_APPROVAL
        assert [asked.path for asked in reply.pending] == [("clerk/ann",)]
    async with team.system(boss=["It is paid."], clerk=["Paid."]) as two:
        (asked,) = await two.ref("boss/b").pending()
        assert await two.ref("boss/b").approve(asked.id, by="alice")
        reply = await two.result("run-1", timeout_s=10)
    assert (reply.text, ledger) == ("It is paid.", ["pay 3"])


async def test_a_parent_and_its_child_go_on_after_both_were_cut_off(opened: Opened) -> None:
    """What the child had begun is not known; both are told, and the parent gets its answer."""
    ledger: list[str] = []
    team = Team(opened, ledger)
    team.hang = True
    scripts = {"boss": [call("ann", task="Pay 3.")], "clerk": [call("pay", amount=3)]}
    async with team.system(**scripts, stop_s=0.2) as one:
        await one.ref("boss/b").ask("Have it paid.", id="run-1")
        (asked,) = await one.ref("boss/b").pending()
        await one.ref("boss/b").approve(asked.id, by="alice")
        with anyio.fail_after(10):
            while not ledger:
                await anyio.sleep(0.01)
    async with team.system(boss=["Nobody knows."], clerk=["I cannot tell."]) as two:
        reply = await two.result("run-1", timeout_s=10)
        messages = await two.ref("clerk/ann").messages()
    (result,) = [one for one in messages if isinstance(one, ToolResultMessage)]
    assert (reply.text, result.status) == ("Nobody knows.", "unknown_outcome")
    assert ledger == ["pay 3"]


async def test_steering_waits_for_an_agent_that_nobody_serves_now(opened: Opened) -> None:
    team = Team(opened, [])
    async with ActorSystem(opened()) as client, anyio.create_task_group() as group:
        group.start_soon(lambda: client.ref("boss/b").steer("Be quick."))
        await anyio.sleep(0.2)
        async with team.system(boss=["Quick."], clerk=[]) as system:
            with anyio.fail_after(10):
                while len(await system.ref("boss/b").messages()) < 2:
                    await anyio.sleep(0.05)
            said = [message.text for message in await system.ref("boss/b").messages()]
            assert said == ["Be quick.", "Quick."]
