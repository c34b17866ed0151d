"""Asks whose work goes on when the one who asked gives up."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard.actors.dead_letters import Reason
from callboard.actors.memory_engine import MemoryEngine
from callboard.actors.system import ActorSystem, Seat
from callboard.agent import ReActAgent
from callboard.budget import Budget
from callboard.errors import ActorFailed, AskCycle, AskTimeout
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, pause, stream
from callboard.tooling.tools import tool
from tests.framework.actors.kit import Doing, Failing, Slow
from tests.framework.kit import agent_of, shape

pytestmark = pytest.mark.anyio


async def test_an_answer_in_time_is_an_answer() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Slow())
        assert await ref.ask("x", detached=True) == "x"


async def test_a_run_goes_on_when_its_asker_gives_up() -> None:
    agent, _ = agent_of([stream(pause(5), "late")], name="a")
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        with pytest.raises(AskTimeout):
            await ref.ask("go", timeout_s=1, detached=True)
    assert shape(agent.messages) == ["user: go", "assistant: late"]


async def test_a_letter_that_is_not_read_yet_is_handled_all_the_same() -> None:
    slow = Slow(2)
    async with ActorSystem() as system:
        ref = await system.spawn(slow)
        await ref.tell("first")
        with anyio.move_on_after(1):
            await ref.ask("second", detached=True)
    assert (slow.seen, len(system.dead_letters)) == (["first", "second"], 0)


async def test_it_spends_nothing_of_the_budget_of_the_one_who_asks() -> None:
    inner, inner_model = agent_of(["one", "two", "three"], name="inner")
    async with ActorSystem() as system:
        ref = await system.spawn(inner)

        @tool
        async def ask_inner() -> str:
            """Ask."""
            return str((await ref.ask("look", detached=True)).text)

        script = [call("ask_inner", f"c{n}") for n in range(3)] + ["done"]
        root, _ = agent_of(script, ask_inner, name="root", budget=Budget(model_calls=4))
        reply = await root.run("go")
    assert (reply.outcome, len(inner_model.requests)) == (Outcome.FINISHED, 3)


async def test_what_fails_while_nobody_waits_is_for_the_supervision() -> None:
    async def fail(payload: Any) -> None:
        await anyio.sleep(5)
        raise ValueError("too late")

    system = ActorSystem()
    with pytest.raises(ActorFailed, match="too late"):
        async with system:
            ref = await system.spawn(Doing(fail))
            with pytest.raises(AskTimeout):
                await ref.ask("x", timeout_s=1, detached=True)
    assert [dead.reason for dead in system.dead_letters] == [Reason.FAILED]


async def test_what_fails_in_time_is_raised_to_the_asker() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Failing())
        with pytest.raises(ValueError, match="this one failed"):
            await ref.ask("fail", detached=True)


async def test_a_circle_is_a_circle() -> None:
    async with ActorSystem() as system:

        async def ask_itself(payload: Any) -> Any:
            return await ref.ask(payload, detached=True)

        ref = await system.spawn(Doing(ask_itself))
        with pytest.raises(AskCycle):
            await ref.ask("x")


async def test_over_an_engine_the_answer_can_be_had_later() -> None:
    def make(seat: Seat) -> ReActAgent:
        model = ScriptedModel([stream(pause(5), "late")])
        return ReActAgent(address=seat.address, model=model, journal=seat.journal)

    async with ActorSystem(MemoryEngine()) as system:
        system.register("writer", make)
        ref = system.ref("writer/a")
        with pytest.raises(AskTimeout):
            await ref.ask("go", timeout_s=1, id="q1", detached=True)
        assert (await ref.ask("go", id="q1")).text == "late"
