"""Agents in a system: asked by each other, steered, approved, put away, and paid for."""

from __future__ import annotations

import anyio
import pytest

from callboard.actors.rules import ActorRules
from callboard.actors.system import ActorSystem, Seat
from callboard.agent import ReActAgent
from callboard.approvals import Proceed, Verdict
from callboard.budget import Budget
from callboard.errors import AskTimeout, ConfigurationError
from callboard.messages import ToolCall
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, pause, stream
from callboard.tooling.tools import tool
from tests.framework.actors.kit import Echo
from tests.framework.kit import Ledger

pytestmark = pytest.mark.anyio


class Asking(ReActAgent):
    """Asks about every call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("is it all right?") if isinstance(verdict, Proceed) else verdict


async def test_asking_an_agent_gives_its_reply() -> None:
    async with ActorSystem() as system:
        writer = await system.spawn(ReActAgent(name="writer", model=ScriptedModel(["A poem."])))
        reply = await writer.ask("Write.")
    assert (reply.text, reply.outcome) == ("A poem.", Outcome.FINISHED)


async def test_an_agent_asks_another_one_with_a_tool() -> None:
    async with ActorSystem() as system:
        critic = await system.spawn(ReActAgent(name="critic", model=ScriptedModel(["Too long."])))

        @tool
        async def ask_critic(text: str) -> str:
            """Ask the critic."""
            reply = await critic.ask(text)
            return str(reply.text)

        model = ScriptedModel([call("ask_critic", "a", text="My poem"), "It is too long."])
        writer = await system.spawn(ReActAgent(name="writer", model=model, tools=[ask_critic]))
        reply = await writer.ask("Write.")
    assert reply.text == "It is too long."


async def test_what_an_asked_agent_uses_counts_in_the_budget_of_the_one_who_asked() -> None:
    async with ActorSystem() as system:
        inner = ScriptedModel(["one", "two", "three"])
        critic = await system.spawn(ReActAgent(name="critic", model=inner))

        @tool
        async def ask_critic(text: str) -> str:
            """Ask the critic."""
            return str((await critic.ask(text)).text)

        model = ScriptedModel([call("ask_critic", f"c{n}", text=str(n)) for n in range(9)] + ["x"])
        writer = ReActAgent(
            name="writer", model=model, tools=[ask_critic], budget=Budget(model_calls=4)
        )
        reply = await (await system.spawn(writer)).ask("Write.")
    assert reply.outcome is Outcome.BUDGET
    assert len(model.requests) + len(inner.requests) <= 5  # with the summary


async def test_act_01_agents_that_ask_each_other_in_a_circle_are_told() -> None:
    async with ActorSystem() as system:

        @tool
        async def ask_a(text: str) -> str:
            """Ask a."""
            return str((await system.ref("agent/a").ask(text)).text)

        @tool
        async def ask_b(text: str) -> str:
            """Ask b."""
            return str((await system.ref("agent/b").ask(text)).text)

        a_model = ScriptedModel([call("ask_b", "1", text="?"), "a is done"])
        b_model = ScriptedModel([call("ask_a", "1", text="?"), "b is done"])
        a = ReActAgent(name="a", model=a_model, tools=[ask_b])
        b = ReActAgent(name="b", model=b_model, tools=[ask_a])
        await system.spawn(a)
        await system.spawn(b)
        begun = anyio.current_time()
        reply = await system.ref("agent/a").ask("go")
        assert anyio.current_time() == begun
    assert reply.text == "a is done"
    assert "agent/a -> agent/b -> agent/a" in str(b.messages)


async def test_a_run_that_nobody_waits_for_is_cancelled() -> None:
    ledger = Ledger()
    agent = ReActAgent(
        name="slow", model=ScriptedModel([call("slow", "a"), "done"]), tools=[ledger.slow]
    )
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        with pytest.raises(AskTimeout):
            await ref.ask("go", timeout_s=0.1)
        await system.settled()
    assert ledger.entries == ["started", "cancelled"]
    assert agent.state.run_id is None


async def test_a_run_that_was_told_goes_on_by_itself() -> None:
    agent = ReActAgent(name="slow", model=ScriptedModel([stream(pause(5), "late")]), tools=[])
    async with ActorSystem(stop_s=60) as system:
        await (await system.spawn(agent)).tell("go")
    assert agent.messages[-1].text == "late"


async def test_steering_an_idle_agent_wakes_it() -> None:
    agent = ReActAgent(name="a", model=ScriptedModel(["first", "second"]))
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        await ref.ask("go")
        await ref.steer("and more")
    assert agent.messages[-1].text == "second"


async def test_interrupting_goes_past_the_mailbox() -> None:
    agent = ReActAgent(name="a", model=ScriptedModel([stream(pause(50), "late"), "next"]))
    replies: dict[str, str] = {}
    async with ActorSystem() as system:
        ref = await system.spawn(agent)

        async def ask(text: str) -> None:
            replies[text] = str((await ref.ask(text)).outcome)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "first")
            await anyio.sleep(1)
            tasks.start_soon(ask, "second")
            await anyio.sleep(1)
            await ref.interrupt()
    assert replies == {"first": "interrupted", "second": "finished"}


async def test_approving_continues_the_run_and_its_result_can_be_had() -> None:
    notes: list[str] = []

    @tool
    def note(text: str) -> str:
        """Note a text."""
        notes.append(text)
        return "noted"

    model = ScriptedModel([call("note", "a", text="x"), "It is noted."])
    agent = Asking(name="a", model=model, tools=[note])
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        parked = await ref.ask("note x")
        assert (parked.outcome, notes) == (Outcome.AWAITING_APPROVAL, [])
        (asked,) = await ref.pending()
        assert await ref.approve(asked.id, by="alice")
        reply = await system.result(parked.run_id)
    assert (reply.text, notes) == ("It is noted.", ["x"])


async def test_a_result_that_never_comes_is_an_error_in_time() -> None:
    async with ActorSystem() as system:
        with pytest.raises(AskTimeout, match="the run 'nosuch' had not ended after 3 s"):
            await system.result("nosuch", timeout_s=3)


async def test_an_agent_that_is_put_away_goes_on_with_its_conversation() -> None:
    made: list[ReActAgent] = []

    def make(seat: Seat) -> ReActAgent:
        model = ScriptedModel(["Hello, Ann.", "You are Ann."][len(made) :])
        agent = ReActAgent(address=seat.address, model=model, journal=seat.journal)
        made.append(agent)
        return agent

    async with ActorSystem() as system:
        system.register("writer", make, ActorRules(idle_s=10))
        bob = system.ref("writer/bob")
        await bob.ask("I am Ann.")
        await anyio.sleep(60)
        assert system.active == ()
        assert (await bob.ask("Who am I?")).text == "You are Ann."
    assert [message.text for message in made[1].messages] == [
        "I am Ann.",
        "Hello, Ann.",
        "Who am I?",
        "You are Ann.",
    ]


async def test_an_agent_that_is_streamed_is_not_put_away() -> None:
    def make(seat: Seat) -> ReActAgent:
        model = ScriptedModel([stream("a", pause(100), "b")])
        return ReActAgent(address=seat.address, model=model, journal=seat.journal)

    async with ActorSystem() as system:
        system.register("writer", make, ActorRules(idle_s=10))
        async with system.ref("writer/bob").stream("go") as events:
            async for _ in events:
                pass
        assert events.reply is not None
        assert events.reply.text == "ab"


async def test_the_control_lane_is_for_agents() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
        with pytest.raises(ConfigurationError, match="is no agent but a Echo"):
            await ref.steer("x")
