"""Tools that are cancelled and do not end: they are waited for, and watchers are told so."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio import get_cancelled_exc_class

from callboard import ReActAgent, tool
from callboard.events import Event, Warned
from callboard.testing import call
from tests.framework.kit import agent_of, assert_paired, statuses

pytestmark = pytest.mark.anyio


async def deaf() -> str:
    """Work for 12 s, whatever comes."""
    end = anyio.current_time() + 12
    while anyio.current_time() < end:
        try:
            await anyio.sleep(end - anyio.current_time())
        except get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(end - anyio.current_time())
    return "done all the same"


async def stubborn() -> str:
    """Work for 12 s behind a shield."""
    with anyio.CancelScope(shield=True):
        await anyio.sleep(12)
    return "done all the same"


def listened(agent: ReActAgent) -> list[Event]:
    events: list[Event] = []
    agent._watchers.add(events.append)
    return events


def warnings(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Warned)]


@pytest.mark.parametrize("function", [deaf, stubborn])
async def test_at_its_deadline_it_is_waited_for_with_a_warning_each_grace_period(
    function: Any,
) -> None:
    agent, _ = agent_of([call(function.__name__, "a"), "ok"], tool(timeout_s=1)(function))
    events = listened(agent)
    reply = await agent.run("go")
    assert len(warnings(events)) in (1, 2)  # after 5 to 10 s, then each 5 s
    assert "'a'" in warnings(events)[0]
    assert "was cancelled and does not end" in warnings(events)[0]
    assert reply.text == "ok"


async def test_when_its_run_is_cancelled_it_is_waited_for_with_warnings() -> None:
    agent, _ = agent_of([call("deaf", "a"), "ok"], deaf)
    events = listened(agent)
    began = anyio.current_time()
    with anyio.move_on_after(0.5):
        await agent.run("go")
    assert anyio.current_time() - began == pytest.approx(12)
    assert len(warnings(events)) in (1, 2)
    assert statuses(agent) == {"a": "ok"}
    assert_paired(events)


async def test_a_tool_that_ends_when_it_is_cancelled_warns_nobody() -> None:
    @tool(timeout_s=1)
    async def nap() -> None:
        await anyio.sleep(60)

    agent, _ = agent_of([call("nap", "a"), "ok"], nap)
    events = listened(agent)
    await agent.run("go")
    assert warnings(events) == []


async def test_a_tool_that_is_long_and_not_cancelled_warns_nobody() -> None:
    @tool(timeout_s=None)
    async def nap() -> str:
        for _ in range(30):
            with anyio.move_on_after(1):  # a cancellation of its own
                await anyio.sleep(60)
        return "rested"

    agent, _ = agent_of([call("nap", "a"), "ok"], nap)
    events = listened(agent)
    await agent.run("go")
    assert (warnings(events), statuses(agent)) == ([], {"a": "ok"})
