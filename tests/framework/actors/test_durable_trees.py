"""Sub-agents and hand-offs behind mailboxes that an engine keeps."""

from __future__ import annotations

from typing import Any

import pytest

from callboard.actors.memory_engine import MemoryEngine
from callboard.actors.system import ActorSystem, Seat
from callboard.agent import ReActAgent
from callboard.approvals import Proceed, Verdict
from callboard.events import AgentStart
from callboard.handing_over import Desk, handoff
from callboard.messages import ToolCall
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call
from tests.framework.kit import Ledger, shape

pytestmark = pytest.mark.anyio
ASK = call("child", "h", task="pay")
PAY = call("charge", "a", amount=7)


class Guarded(ReActAgent):
    """Asks a human before each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("a human looks first") if isinstance(verdict, Proceed) else verdict


def team(system: ActorSystem, ledger: Ledger, *, child: list[Any], root: list[Any]) -> None:
    """Register a root whose tool is an agent of another kind, each on what is left to say."""

    def make_child(seat: Seat) -> ReActAgent:
        model = ScriptedModel(child)
        return Guarded(
            address=seat.address, model=model, journal=seat.journal, tools=[ledger.charge]
        )

    def make_root(seat: Seat) -> ReActAgent:
        helper = system.ref("child/a").as_tool(name="child", description="Pays.")
        model = ScriptedModel(root)
        return ReActAgent(address=seat.address, model=model, journal=seat.journal, tools=[helper])

    system.register("child", make_child)
    system.register("root", make_root)


async def test_a_sub_agent_answers_through_the_engine_in_one_tree() -> None:
    async with ActorSystem(MemoryEngine()) as system:
        team(system, Ledger(), child=["paid"], root=[ASK, "done"])
        with system.watch() as events:
            reply = await system.ref("root/a").ask("go")
    starts = [event async for event in events if isinstance(event, AgentStart)]
    assert reply.text == "done"
    assert [event.parent_run for event in starts] == [None, reply.run_id]


async def test_its_question_is_answered_above_after_a_restart() -> None:
    engine, ledger = MemoryEngine(), Ledger()
    async with ActorSystem(engine) as system:
        team(system, ledger, child=[PAY], root=[ASK])
        parked = await system.ref("root/a").ask("go")
    assert (parked.outcome, ledger.entries) == (Outcome.AWAITING_APPROVAL, [])
    async with ActorSystem(engine) as system:
        team(system, ledger, child=["paid"], root=["done"])
        (asked,) = await system.ref("root/a").pending()
        assert asked.path == ("child/a",)
        assert await system.ref("root/a").approve(asked.id, by="amy")
        assert (await system.result(parked.run_id)).text == "done"
    assert ledger.entries == [7]


def register_desk(system: ActorSystem, **scripts: list[Any]) -> Desk:
    """A desk of actors, one of each kind."""
    tool = handoff(dict.fromkeys(scripts, "Theirs."))

    def make(seat: Seat) -> ReActAgent:
        model = ScriptedModel(scripts[seat.address.type])
        return ReActAgent(address=seat.address, model=model, journal=seat.journal, tools=[tool])

    for kind in scripts:
        system.register(kind, make)
    return Desk({kind: system.ref(f"{kind}/1") for kind in scripts}, holder=next(iter(scripts)))


async def test_a_conversation_is_handed_over_and_outlives_the_system() -> None:
    engine = MemoryEngine()
    async with ActorSystem(engine) as system:
        desk = register_desk(system, front=[call("handoff", "h", to="billing")], billing=["Once."])
        assert (await desk.run("I was charged twice.")).text == "Once."
    async with ActorSystem(engine) as system:
        desk = register_desk(system, billing=["You are welcome."], front=[])
        assert (await desk.run("Thanks.")).text == "You are welcome."
        assert shape(await system.ref("billing/1").messages()) == [
            "user: I was charged twice.",
            "calls: h",
            "h: billing goes on with the conversation from here.",
            "assistant: Once.",
            "user: Thanks.",
            "assistant: You are welcome.",
        ]
