"""Events that are made of a journal are those that a watcher saw."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.agent import ReActAgent
from callboard.approvals import Deny
from callboard.events import (
    ArgumentsRepaired,
    Event,
    MessageEnd,
    MessageUpdate,
    Retry,
    ToolStart,
    ToolUpdate,
    Warned,
)
from callboard.hooks import Hooks
from callboard.journal_events import events_of
from callboard.messages import AssistantMessage, ToolCall
from callboard.replies import RunFailed
from callboard.testing import call, drop, error, pause, raw_call, say, stream
from callboard.testing.virtual_time import virtual_backend
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import Ledger, Script, agent_of, boom, echo, marks, wait

pytestmark = pytest.mark.anyio

ONLY_LIVE = (MessageUpdate, ToolUpdate, Retry, Warned, ArgumentsRepaired)


def told(events: Iterable[Event]) -> list[Any]:
    """What the events say, but for their numbers and for what only a watcher can see."""
    return [
        (type(one), one.source, *[getattr(one, field.name) for field in fields(one)[2:]])
        for one in events
        if not isinstance(one, ONLY_LIVE)
    ]


def starts_first(events: list[Event]) -> list[Event]:
    """The events with the starts of calls right behind the message that holds them."""
    starts = [one for one in events if isinstance(one, ToolStart)]
    ordered: list[Event] = []
    for one in events:
        if not isinstance(one, ToolStart):
            ordered.append(one)
        message = one.message if isinstance(one, MessageEnd) else None
        calls = message.calls if isinstance(message, AssistantMessage) else ()
        ordered += [start for start in starts if start.call in calls]
    return ordered


async def replayed(agent: ReActAgent) -> list[Event]:
    return list(events_of(await agent.journal.read(), agent.address))


async def same(agent: ReActAgent, *prompts: str) -> None:
    """Run the agent, and compare what was seen with what its journal tells."""
    with agent.watch() as events:
        for prompt in prompts or ("go",):
            try:
                await agent.run(prompt)
            except RunFailed:
                continue
    live = [event async for event in events]
    assert told(await replayed(agent)) == told(starts_first(live))


async def test_a_run_with_calls_side_by_side() -> None:
    calls = say(call("wait", "a", ms=50), call("wait", "b", ms=10), call("echo", "c", x="1"))
    await same(agent_of([calls, "done"], wait, echo)[0])


async def test_several_runs_each_with_its_own_source() -> None:
    agent, _ = agent_of(["one", call("echo", "a", x="1"), "two", "three"], echo)
    await same(agent, "1", "2", "3")
    assert len({event.run_id for event in await replayed(agent)}) == 3


async def test_a_summary_at_a_limit() -> None:
    script: Script = [call("echo", "a", x="1"), "what I know"]
    await same(agent_of(script, echo, max_iters=1)[0])


async def test_a_summary_that_fails() -> None:
    script: Script = [call("echo", "a", x="1"), stream(error("down"))]
    agent, _ = agent_of(script, echo, max_iters=1)
    with agent.watch() as events:
        await agent.run("go")
    lost = ["ms assistant", "me nothing"]  # the answer that never came
    live = [mark for mark in marks([event async for event in events]) if mark not in lost]
    assert [mark for mark in marks(await replayed(agent)) if mark not in lost] == live


async def test_calls_that_fail_are_denied_unknown_or_wrong() -> None:
    def deny_b(call: ToolCall) -> Deny | None:
        return Deny("no!") if call.id == "b" else None

    calls = say(call("boom", "a"), call("echo", "b", x="1"), call("nope", "c"))
    script: Script = [calls, raw_call("echo", "{", id="d"), "done"]
    await same(agent_of(script, boom, echo, hooks=Hooks(before_tool=deny_b))[0])


async def test_an_answer_that_broke_off_is_told_and_ends_as_nothing() -> None:
    script = [stream("par", drop()), stream("par", drop()), stream("par", drop())]
    agent, _ = agent_of(script)
    await same(agent)
    assert "me nothing" in marks(await replayed(agent))


async def test_steering_and_a_follow_up() -> None:
    async def ask() -> str:
        await agent.steer("stop that")
        await agent.follow_up("and then?")
        return "ok"

    agent, _ = agent_of([call("ask", "a"), "done", "more"], ask)
    await same(agent)


async def test_a_run_that_is_cancelled_in_the_middle_of_its_calls() -> None:
    agent, _ = agent_of([say(call("slow", "a"), call("slow", "b"))], Ledger().slow)
    with agent.watch() as events, anyio.move_on_after(1):
        await agent.run("go")
    live = [event async for event in events]
    assert told(await replayed(agent)) == told(starts_first(live))


async def test_a_run_that_is_cancelled_while_the_model_speaks() -> None:
    agent, _ = agent_of([stream("hel", pause(10), "lo")])
    with agent.watch() as events, anyio.move_on_after(1):
        await agent.run("go")
    live = [event async for event in events]
    assert told(await replayed(agent)) == told(live)


async def test_an_approval_is_asked_and_answered() -> None:
    agent, _, _ = guarded(charge("a"), "paid")
    with agent.watch() as events:
        asked = (await agent.run("go")).pending[0]
        await agent.approve(asked.id, by="amy")
        await agent.resume()
    parked = ["turn_end", "agent_end awaiting_approval", "agent_start"]  # no record holds the stop
    live = [mark for mark in marks([event async for event in events]) if mark not in parked]
    assert [mark for mark in marks(await replayed(agent)) if mark not in parked] == live


async def test_events_are_numbered_from_one() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    await agent.run("go")
    events = await replayed(agent)
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))


async def test_any_prefix_of_a_journal_tells_a_prefix_of_the_events() -> None:
    agent, _ = agent_of([say(call("echo", "a", x="1"), call("echo", "b", x="2")), "done"], echo)
    await agent.run("go")
    records = await agent.journal.read()
    whole = list(events_of(records, agent.address))
    for length in range(len(records)):
        part = list(events_of(records[:length], agent.address))
        assert part == whole[: len(part)]


CALLS = st.lists(
    st.sampled_from([("wait", 10), ("wait", 30), ("boom", 0), ("nope", 0)]), max_size=4
)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=40, deadline=None)
@given(rounds=st.lists(CALLS, max_size=4), max_iters=st.integers(1, 5))
def test_whatever_an_agent_does_its_journal_tells_what_was_seen(
    backend: str, rounds: list[list[tuple[str, int]]], max_iters: int
) -> None:
    def spoken(number: int, calls: list[tuple[str, int]]) -> Any:
        made = [
            call(name, f"{number}.{at}", **({"ms": ms} if name == "wait" else {}))
            for at, (name, ms) in enumerate(calls)
        ]
        return say(f"turn {number}", *made)

    async def main() -> None:
        script = [spoken(number, calls) for number, calls in enumerate(rounds)]
        agent, _ = agent_of(script, wait, boom, then="done", max_iters=max_iters)
        await same(agent, "go", "again")

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)
