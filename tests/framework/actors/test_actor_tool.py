"""References as tools: a sub-agent behind a mailbox, and what it asks a human."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest

from callboard.actors.ref import Ref
from callboard.actors.rules import ActorRules
from callboard.actors.system import ActorSystem, Seat
from callboard.agent import ReActAgent
from callboard.agent_calls import AgentCall
from callboard.budget import Budget
from callboard.errors import AskTimeout
from callboard.journaling.transcript import fold
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, pause, say, stream
from tests.framework.actors.kit import Echo
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import Ledger, agent_of, assert_replays, results, shape, statuses

pytestmark = pytest.mark.anyio


def ask(id: str = "h", task: str = "pay") -> Any:
    return call("child", id, task=task)


def above(child: Ref, *script: Any, **options: Any) -> ReActAgent:
    """An agent that has this one as its tool `child`."""
    return agent_of(script, child.as_tool(description="Does things."), name="root", **options)[0]


async def test_a_call_of_a_reference_is_a_run_of_its_agent() -> None:
    child, _ = agent_of(["paid"], name="child")
    async with ActorSystem() as system:
        root = above(await system.spawn(child), ask(), "done")
        assert (await root.run("go")).text == "done"
    assert results(root)["h"].text == "paid"
    assert shape(child.messages) == ["user: pay", "assistant: paid"]
    assert_replays(root)
    assert_replays(child)


async def test_an_agent_that_is_not_there_yet_is_made_by_the_call() -> None:
    def make(seat: Seat) -> ReActAgent:
        return ReActAgent(address=seat.address, model=ScriptedModel(["paid"]))

    async with ActorSystem() as system:
        system.register("clerk", make)
        root = above(system.ref("clerk/child"), ask(), "done")
        await root.run("go")
    assert results(root)["h"].text == "paid"


async def test_it_waits_longer_than_an_ask_would() -> None:
    child, _ = agent_of([stream(pause(90), "paid")], name="child")
    async with ActorSystem(ask_timeout_s=1) as system:
        root = above(await system.spawn(child), ask(), "done")
        await root.run("go")
    assert results(root)["h"].text == "paid"


async def test_its_question_parks_the_agent_above_and_is_answered_there() -> None:
    child, _, ledger = guarded(charge("a", 7), "paid", name="child")
    async with ActorSystem() as system:
        root = above(await system.spawn(child), ask(), "done")
        asked = (await root.run("go")).pending[0]
        assert (asked.tool_name, asked.path) == ("charge", ("agent/child",))
        assert await root.approve(asked.id, by="amy")
        assert (await root.resume()).text == "done"
    assert (ledger.entries, results(root)["h"].text) == ([7], "paid")
    assert_replays(root)
    assert_replays(child)


async def test_both_in_the_system_the_answer_goes_to_the_one_above() -> None:
    child, _, ledger = guarded(charge("a", 7), "paid", name="child")
    async with ActorSystem() as system:
        root = await system.spawn(above(await system.spawn(child), ask(), "done"))
        parked = await root.ask("go")
        (asked,) = await root.pending()
        assert await root.approve(asked.id, by="amy")
        assert (await system.result(parked.run_id)).text == "done"
    assert ledger.entries == [7]


async def test_an_agent_that_was_put_away_meanwhile_goes_on() -> None:
    made: list[ReActAgent] = []

    def make(seat: Seat) -> ReActAgent:
        script = [charge("a", 7), "paid"][len(made) :]
        agent, _, _ = guarded(*script, address=seat.address, journal=seat.journal, ledger=ledger)
        made.append(agent)
        return agent

    ledger = Ledger()
    async with ActorSystem() as system:
        system.register("clerk", make, ActorRules(idle_s=10))
        root = above(system.ref("clerk/child"), ask(), "done")
        asked = (await root.run("go")).pending[0]
        await anyio.sleep(60)
        await root.approve(asked.id, by="amy")
        assert (await root.resume()).text == "done"
    assert (len(made), ledger.entries) == (2, [7])


async def test_interrupting_a_parked_root_stops_what_waits_behind_the_mailbox() -> None:
    child, _, ledger = guarded(charge("a"), name="child")
    async with ActorSystem() as system:
        root = above(await system.spawn(child), ask())
        await root.run("go")
        await root.interrupt()
        assert (root.pending, child.pending, child.state.run_id) == ((), (), None)
    assert (ledger.entries, statuses(child)) == ([], {"a": "cancelled"})


async def test_cancelling_the_root_ends_the_running_sub_agent_first() -> None:
    child, _, ledger = guarded(call("slow", "s"), name="child", slow=True)
    async with ActorSystem() as system:
        root = above(await system.spawn(child), ask())
        with anyio.move_on_after(1):
            await root.run("go")
        assert (ledger.entries, child.state.run_id) == (["started", "cancelled"], None)
    assert statuses(root) == {"h": "cancelled"}


async def test_a_call_that_is_cancelled_before_it_is_read_never_runs() -> None:
    child, _, ledger = guarded(call("slow", "s"), "late", name="child", slow=True)
    async with ActorSystem(stop_s=1_000) as system:
        ref = await system.spawn(child)
        await ref.tell("look")
        root = above(ref, ask())
        with anyio.move_on_after(1):
            await root.run("go")
        assert ledger.entries == ["started"]
    assert shape(child.messages)[0] == "user: look"
    assert "user: pay" not in shape(child.messages)


async def test_what_it_uses_counts_in_the_budget_of_the_agent_above() -> None:
    child, inner = agent_of(["one", "two", "three"], name="child")
    async with ActorSystem() as system:
        calls = [ask(f"c{n}") for n in range(9)]
        root = above(await system.spawn(child), *calls, budget=Budget(model_calls=4))
        reply = await root.run("go")
    assert reply.outcome is Outcome.BUDGET
    assert len(inner.requests) == 2


async def test_calls_at_once_queue_up_in_the_mailbox() -> None:
    child, _ = agent_of(["one", "two"], name="child")
    async with ActorSystem() as system:
        root = above(await system.spawn(child), say(ask("1", "a"), ask("2", "b")), "done")
        await root.run("go")
    assert {results(root)[id].text for id in ("1", "2")} == {"one", "two"}


async def test_a_call_that_is_delivered_twice_is_one_run() -> None:
    child, model = agent_of(["paid"], name="child")
    async with ActorSystem() as system:
        ref = await system.spawn(child)
        replies = [await ref.ask(AgentCall("run/h", "pay")) for _ in range(2)]
    assert [reply.text for reply in replies] == ["paid", "paid"]
    assert len(model.requests) == 1


async def test_agents_that_are_tools_of_each_other_are_told_of_the_circle() -> None:
    async with ActorSystem() as system:
        child, _ = agent_of(
            [call("root", "r", task="back"), "no way"],
            system.ref("agent/root").as_tool(description="Root."),
            name="child",
        )
        root = above(await system.spawn(child), ask(), "done")
        assert (await (await system.spawn(root)).ask("go")).text == "done"
    assert "agent/root -> agent/child -> agent/root" in results(child)["r"].text


async def test_an_actor_that_is_no_agent_is_a_failed_call() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
        root, _ = agent_of(
            [call("echo", "h", task="x"), "done"], ref.as_tool(name="echo", description="No.")
        )
        await root.run("go")
    assert "is no agent: it answered a call with a AgentCall" in results(root)["h"].text


async def test_an_address_where_nobody_is_is_a_failed_call() -> None:
    async with ActorSystem() as system:
        root = above(system.ref("clerk/child"), ask(), "done")
        await root.run("go")
    assert statuses(root) == {"h": "failed"}
    assert "there is no actor at clerk/child" in results(root)["h"].text


def floors(system: ActorSystem, depth: int) -> Ref:
    """Kinds `f1` to `f<depth>`, each with the one below as its tool; the lowest works for long."""
    for floor in range(1, depth + 1):
        system.register(f"f{floor}", partial(made_floor, system))
    return system.ref(f"f{depth}/a")


def made_floor(system: ActorSystem, seat: Seat) -> ReActAgent:
    floor = int(seat.address.type[1:])
    if floor == 1:
        model = ScriptedModel([stream("a", pause(90), "b")])
        return ReActAgent(address=seat.address, model=model, journal=seat.journal)
    helper = system.ref(f"f{floor - 1}/a").as_tool(name="below", description="Helps.")
    model = ScriptedModel([call("below", task="go"), "done"])
    return ReActAgent(address=seat.address, model=model, journal=seat.journal, tools=[helper])


async def outcomes(system: ActorSystem, depth: int) -> list[str]:
    """How the last run of each floor ended, by what its journal says; the lowest first."""
    ends: list[str] = []
    for floor in range(1, depth + 1):
        state = fold(await system.journal(system.ref(f"f{floor}/a").address).read())
        ends.append(str(state.last_run.outcome) if state.last_run else "no end")
    return ends


async def test_who_gives_up_at_the_top_cancels_all_floors_through_the_mailboxes() -> None:
    async with ActorSystem() as system:
        with pytest.raises(AskTimeout):
            await floors(system, 4).ask("go", timeout_s=5)
        await system.settled()
        assert await outcomes(system, 4) == ["interrupted"] * 4


async def test_interrupting_the_top_ends_all_floors() -> None:
    async with ActorSystem() as system, anyio.create_task_group() as tasks:
        top = floors(system, 3)
        tasks.start_soon(top.ask, "go")
        await anyio.sleep(5)
        await top.interrupt()
        await system.settled()
        assert await outcomes(system, 3) == ["interrupted"] * 3


async def test_a_floor_that_is_interrupted_alone_is_a_cancelled_call_above() -> None:
    async with ActorSystem() as system, anyio.create_task_group() as tasks:
        top = floors(system, 3)
        tasks.start_soon(top.ask, "go")
        await anyio.sleep(5)
        await system.ref("f1/a").interrupt()
        await system.settled()
        assert await outcomes(system, 3) == ["interrupted", "finished", "finished"]


async def test_a_long_chain_comes_to_its_end() -> None:
    async with ActorSystem(ask_timeout_s=1_000) as system:
        assert (await floors(system, 6).ask("go")).text == "done"
        assert await outcomes(system, 6) == ["finished"] * 6
