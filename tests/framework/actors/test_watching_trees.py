"""The events of a whole tree of agents on one subscription."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard.actors.system import ActorSystem, Seat
from callboard.agent import ReActAgent
from callboard.events import AgentStart, Event
from callboard.testing import ScriptedModel, call, pause, say, stream
from callboard.tooling.tools import tool
from callboard.watching import Subscription
from tests.framework.kit import agent_of, marks

pytestmark = pytest.mark.anyio


def family(depth: int) -> tuple[ReActAgent, ReActAgent]:
    """A root and the agent so many floors below it, each the tool of the one above."""
    lowest = agent, _ = agent_of(["done"], name="lowest")
    for floor in range(depth):
        helper = agent.as_tool(name="helper", description="Helps.")
        agent, _ = agent_of([call("helper", task="go"), "done"], helper, name=f"floor{floor}")
    return agent, lowest[0]


async def read(events: Subscription) -> list[Event]:
    """What came by the end of the block that has subscribed."""
    return [event async for event in events]


def keys(events: list[Event]) -> list[str]:
    """Who started, in order."""
    return [event.address.key for event in events if isinstance(event, AgentStart)]


async def test_an_agents_tree_tells_of_all_floors() -> None:
    root, _ = family(2)
    with root.watch(sub_agents=True) as events:
        await root.run("go")
    told = await read(events)
    assert keys(told) == ["floor1", "floor0", "lowest"]
    starts = [event for event in told if isinstance(event, AgentStart)]
    assert [start.parent_run for start in starts] == [None, starts[0].run_id, starts[1].run_id]


async def test_without_it_only_its_own_are_told() -> None:
    root, _ = family(2)
    with root.watch() as events:
        await root.run("go")
    assert keys(await read(events)) == ["floor1"]


async def test_every_event_of_the_tree_is_told_once_and_as_below() -> None:
    root, lowest = family(1)
    with root.watch(sub_agents=True) as events, lowest.watch() as own:
        await root.run("go")
    below = [event for event in await read(events) if event.address == lowest.address]
    assert below == await read(own)


async def test_an_agent_that_is_run_alone_later_is_no_part_of_the_tree() -> None:
    root, lowest = family(1)
    await root.run("go")
    with root.watch(sub_agents=True) as events:
        lowest._requests.model = ScriptedModel(["again"])
        await lowest.run("alone")
    assert await read(events) == []


async def test_a_watcher_that_comes_in_the_middle_hears_who_runs_below() -> None:
    child, _ = agent_of([stream("a", pause(10), "b")], name="child")
    root, _ = agent_of(
        [call("child", task="go"), "done"], child.as_tool(description="Helps."), name="root"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(root.run, "go")
        await anyio.sleep(5)
        with root.watch(sub_agents=True) as events:
            await anyio.sleep(10)
        told = await read(events)
        assert (told[0].address.key, told[0].kind) == ("child", "message_end")
        assert keys(told) == []


async def test_agents_that_a_tool_runs_belong_to_the_tree() -> None:
    other, _ = agent_of(["seen"], name="other")

    @tool
    async def look() -> str:
        """Look."""
        return (await other.run("look")).text

    root, _ = agent_of([call("look"), "done"], look, name="root")
    with root.watch(sub_agents=True) as events:
        await root.run("go")
    assert keys(await read(events)) == ["root", "other"]


async def test_an_agent_in_another_thread_is_not_heard() -> None:
    """Its events could not wake the reader."""
    other, _ = agent_of(["seen"], name="other")

    @tool
    def look() -> str:
        """Look."""
        return other.run_sync("look").text

    root, _ = agent_of([call("look"), "done"], look, name="root")
    with root.watch(sub_agents=True) as events:
        await root.run("go")
    assert keys(await read(events)) == ["root"]


def teller(seat: Seat) -> ReActAgent:
    return ReActAgent(address=seat.address, model=ScriptedModel(["hello"]))


async def test_a_system_tells_of_agents_that_are_made_later() -> None:
    async with ActorSystem() as system:
        system.register("teller", teller)
        with system.watch() as events:
            await system.ref("teller/a").ask("go")
            await (await system.spawn("teller", "b")).ask("go")
            await (await system.spawn(agent_of(["hi"], name="c")[0])).ask("go")
    assert keys(await read(events)) == ["a", "b", "c"]


async def test_a_system_tells_of_agents_that_were_there_before() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(agent_of(["hi"], name="c")[0])
        with system.watch() as events:
            await ref.ask("go")
    assert keys(await read(events)) == ["c"]


async def test_an_agent_outside_the_system_is_heard_where_it_runs_inside() -> None:
    root, _ = family(1)
    async with ActorSystem() as system:
        ref = await system.spawn(root)
        with system.watch() as events:
            await ref.ask("go")
    assert keys(await read(events)) == ["floor0", "lowest"]


async def test_what_is_asked_through_mailboxes_is_one_tree() -> None:
    async with ActorSystem() as system:
        child = await system.spawn(agent_of(["seen"], name="child")[0])
        root, _ = agent_of(
            [call("child", task="go"), "done"], child.as_tool(description="Helps."), name="root"
        )
        await system.spawn(root)
        with root.watch(sub_agents=True) as own, system.watch() as events:
            reply = await system.ref("agent/root").ask("go")
        told = await read(events)
    assert marks(told) == marks(await read(own))
    assert {event.parent_run for event in told} == {None, reply.run_id}


async def test_a_slow_reader_is_told_how_much_it_missed() -> None:
    async with ActorSystem() as system:
        system.register("teller", teller)
        with system.watch(limit=5) as events:
            for number in range(10):
                await system.ref(f"teller/{number}").ask("go")
    told = await read(events)
    assert len(told) == 5
    assert events.missed + len(told) == 10 * 8  # the events of one run
    assert told[-1].address.key == "9"


async def test_nothing_is_built_where_nobody_watches_any_more() -> None:
    agent, _ = agent_of(["one", "two"], name="a")
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        with system.watch() as events:
            await ref.ask("go")
        assert keys(await read(events)) == ["a"]
        assert not agent._watchers.active


async def test_two_subscriptions_hear_the_same() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(agent_of([say("hi")], name="a")[0])
        with system.watch() as first, system.watch() as second:
            await ref.ask("go")
    told: list[Any] = await read(first)
    assert told
    assert told == await read(second)
