"""LOOP-06: a stream may be closed from another task than the one that reads it."""

from __future__ import annotations

import anyio
import pytest

from callboard import Outcome, ReActAgent
from callboard.events import AgentEnd, Event
from callboard.testing import ScriptedModel, pause, stream

pytestmark = pytest.mark.anyio


async def test_loop_06_a_stream_is_closed_from_another_task() -> None:
    model = ScriptedModel([stream("a", pause(60), "b"), "again"])
    agent = ReActAgent(model=model)
    seen: list[Event] = []
    async with anyio.create_task_group() as group, agent.stream("go") as events:
        async for event in events:
            seen.append(event)
            if event.kind == "message_update":
                group.start_soon(events.aclose)
    assert isinstance(seen[-1], AgentEnd)
    assert (seen[-1].outcome, events.reply) == (Outcome.INTERRUPTED, None)
    assert model.open_streams == 0
    assert (await agent.run("and now?")).text == "again"


async def test_closing_twice_and_after_the_end_is_nothing() -> None:
    agent = ReActAgent(model=ScriptedModel(["done"]))
    async with agent.stream("go") as events:
        async for _ in events:
            pass
        await events.aclose()
        await events.aclose()
    assert events.reply is not None
    assert events.reply.text == "done"


async def test_closing_what_its_reader_has_left_waits_for_nothing() -> None:
    agent = ReActAgent(model=ScriptedModel([stream("a", pause(60), "b")]))
    async with agent.stream("go") as events:
        async for _ in events:
            break
    with anyio.fail_after(5):
        await events.aclose()
