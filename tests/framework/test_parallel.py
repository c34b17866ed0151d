"""Calls of one message side by side: order, failures, bounds."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable

import anyio
import pytest

from callboard.decide import ToolExecution
from callboard.errors import StopRun
from callboard.hooks import Hooks
from callboard.messages import Observation, ToolCall
from callboard.replies import Outcome
from callboard.testing import call, say
from callboard.testing.script import Answer
from callboard.tooling.tools import Tool, tool
from tests.framework.kit import (
    Ledger,
    agent_of,
    assert_replays,
    boom,
    echo,
    of_tools,
    results,
    shape,
    statuses,
    wait,
    watched,
)

pytestmark = pytest.mark.anyio


class Overlap:
    """Counts how many of its calls run at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def work(self, x: str) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await anyio.sleep(1)
        self.now -= 1
        return x


def works(count: int, name: str = "work") -> Answer:
    return say(*[call(name, f"{name}{at}", x=str(at)) for at in range(count)])


async def test_par_01_a_failure_leaves_its_siblings_alone() -> None:
    calls = (call("echo", "a", x="a"), call("boom", "b"), call("echo", "c", x="b"))
    agent, model = agent_of([say(*calls), "done"], echo, boom)
    assert (await agent.run("go")).text == "done"
    assert shape(model.requests[1].messages)[2:] == ["a: a", "b: failed: ValueError: boom", "c: b"]


@pytest.mark.parametrize("execution", list(ToolExecution))
async def test_par_02_a_call_that_ends_the_run_leaves_nothing_running(
    execution: ToolExecution,
) -> None:
    ledger = Ledger()

    async def fatal() -> None:
        await anyio.sleep(1)
        raise StopRun("enough", output=7)

    calls = (call("fatal", "b"), call("slow", "a"))
    agent, model = agent_of([say(*calls)], ledger.slow, fatal, tool_execution=execution)
    reply = await agent.run("go")
    assert (reply.outcome, reply.text, reply.output) == (Outcome.STOPPED, "enough", 7)
    await anyio.sleep(7200)
    assert "finished" not in ledger.entries
    assert ledger.entries in ([], ["started", "cancelled"])
    assert (set(results(agent)), len(model.requests)) == ({"a", "b"}, 1)
    assert_replays(agent)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # nobody can make trio's by hand
async def test_par_03_a_cancellation_that_nobody_asked_for_is_the_tools_own_failure() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    agent, _ = agent_of([say(call("odd", "a"), call("echo", "b", x="b")), "done"], odd, echo)
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "failed", "b": "ok"}


async def test_par_05_results_stand_in_call_order_however_they_end() -> None:
    calls = [call("wait", f"c{at}", ms=ms) for at, ms in enumerate([60, 20, 40])]
    agent, model = agent_of([say(*calls), "done"], wait)
    _, events = await watched(agent)
    ends = [mark for mark in of_tools(events) if mark.startswith("te")]
    assert ends == ["te c1", "te c2", "te c0"]
    assert shape(agent.messages)[2:5] == ["c0: 60", "c1: 20", "c2: 40"]
    assert shape(model.requests[1].messages)[2:5] == ["c0: 60", "c1: 20", "c2: 40"]


async def test_qp_19_tools_overlap_and_stand_in_call_order() -> None:
    calls = (call("wait", "a", ms=50), call("wait", "b", ms=10))
    agent, _ = agent_of([say(*calls), "done"], wait)
    started = anyio.current_time()
    await agent.run("go")
    assert anyio.current_time() - started == pytest.approx(0.05, abs=0.005)
    assert shape(agent.messages)[2:4] == ["a: 50", "b: 10"]


async def test_qp_20_hooks_run_once_for_each_parallel_call() -> None:
    seen: list[str] = []

    def before(call: ToolCall) -> None:
        seen.append(f"before {call.id}")

    def after(call: ToolCall, observation: Observation) -> None:
        seen.append(f"after {call.id}")

    hooks = Hooks(before_tool=before, after_tool=after)
    calls = (call("wait", "a", ms=50), call("wait", "b", ms=10))
    agent, _ = agent_of([say(*calls), "done"], wait, hooks=hooks)
    await agent.run("go")
    assert seen == ["before a", "before b", "after b", "after a"]


async def test_pi_12_all_of_a_batch_run_at_once() -> None:
    overlap = Overlap()
    agent, _ = agent_of([works(3), "done"], overlap.work)
    await agent.run("go")
    assert overlap.most == 3


@pytest.mark.parametrize(
    "bounded",
    [
        tool(max_concurrency=2),
        tool(resource="disk"),
        tool(sequential=True),
    ],
)
async def test_a_tool_bounds_how_many_of_it_run_at_once(
    bounded: Callable[[Callable[..., Awaitable[str]]], Tool],
) -> None:
    overlap = Overlap()
    made = bounded(overlap.work)
    agent, _ = agent_of([works(4), "done"], made)
    await agent.run("go")
    assert overlap.most == (made.max_concurrency or 1)
    assert len(results(agent)) == 4


async def test_an_agent_bounds_how_many_calls_run_at_once() -> None:
    overlap = Overlap()
    agent, _ = agent_of([works(5), "done"], overlap.work, max_concurrency=2)
    await agent.run("go")
    assert overlap.most == 2


async def test_tools_of_one_resource_exclude_each_other() -> None:
    overlap = Overlap()
    one = tool(name="one", resource="disk")(overlap.work)
    two = tool(name="two", resource="disk")(overlap.work)
    agent, _ = agent_of([say(call("one", "a", x="1"), call("two", "b", x="2")), "done"], one, two)
    await agent.run("go")
    assert overlap.most == 1


async def test_pi_29_the_next_model_call_is_skipped_if_all_results_want_it() -> None:
    @tool(terminate=True)
    async def finish(x: str) -> str:
        return x

    agent, model = agent_of([say(call("finish", "a", x="1"), call("finish", "b", x="bye"))], finish)
    reply = await agent.run("go")
    assert (len(model.requests), reply.outcome, reply.text) == (1, Outcome.FINISHED, "bye")
    assert agent.messages[-1].role == "tool"


async def test_pi_29_one_result_that_does_not_want_it_is_enough_to_go_on() -> None:
    @tool(terminate=True)
    async def finish(x: str) -> str:
        return x

    calls = (call("finish", "a", x="1"), call("echo", "b", x="2"))
    agent, model = agent_of([say(*calls), "done"], finish, echo)
    assert (await agent.run("go")).text == "done"
    assert len(model.requests) == 2


@pytest.mark.parametrize("queue", ["steer", "follow_up"])
async def test_pi_30_what_is_queued_still_runs_after_a_terminating_batch(queue: str) -> None:
    @tool(terminate=True)
    async def finish() -> str:
        await getattr(agent, queue)("and then?")
        return "bye"

    agent, model = agent_of([call("finish", "a"), "done"], finish)
    assert (await agent.run("go")).text == "done"
    assert shape(model.requests[1].messages)[-2:] == ["a: bye", "user: and then?"]


@pytest.mark.real_clock
async def test_loop_02_threads_run_side_by_side_and_the_loop_stays_awake() -> None:
    beats: list[float] = []

    def sleep() -> str:
        time.sleep(0.2)
        return "slept"

    async def heartbeat() -> None:
        while True:
            beats.append(time.monotonic())
            await anyio.sleep(0.01)

    agent, _ = agent_of([say(call("sleep", "a"), call("sleep", "b")), "done"], sleep)
    async with anyio.create_task_group() as group:
        group.start_soon(heartbeat)
        started = time.monotonic()
        await agent.run("go")
        assert time.monotonic() - started < 0.39
        group.cancel_scope.cancel()
    assert max(b - a for a, b in itertools.pairwise(beats)) < 0.1
