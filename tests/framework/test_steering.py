"""What a steering message does to a round that is open, by the agent's policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard import (
    Hooks,
    Outcome,
    QueueMode,
    ReActAgent,
    Status,
    SteeringPolicy,
    ToolExecution,
    tool,
)
from callboard.testing import ScriptedModel, call, say
from tests.framework.kit import results, statuses

pytestmark = pytest.mark.anyio


class Bench:
    """An agent with two tools: `a` is steered while it runs, `b` only counts."""

    def __init__(self, *, text: str = "stop", **options: Any) -> None:
        self.ran: list[str] = []
        self.cancelled: list[str] = []
        self.model = ScriptedModel([say(call("a", "1"), call("b", "2")), "done", "done"])
        self.agent = ReActAgent(model=self.model, tools=[self.a(text), self.b()], **options)

    def a(self, text: str) -> Any:
        @tool(name="a", effect="pure")
        async def a() -> str:
            """Is steered while it runs."""
            self.ran.append("a")
            await self.agent.steer(text)
            try:
                await anyio.sleep(1)
            except BaseException:
                self.cancelled.append("a")
                raise
            return "a"

        return a

    def b(self) -> Any:
        @tool(name="b", effect="pure")
        async def b() -> str:
            """Counts."""
            await anyio.sleep(5)
            self.ran.append("b")
            return "b"

        return b


async def test_by_default_nothing_is_skipped() -> None:
    bench = Bench(tool_execution=ToolExecution.SEQUENTIAL)
    await bench.agent.run("go")
    assert bench.ran == ["a", "b"]
    assert [m.role for m in bench.agent.messages][-3:] == ["tool", "user", "assistant"]


async def test_pi_32_skip_pending_skips_what_was_not_started() -> None:
    bench = Bench(
        tool_execution=ToolExecution.SEQUENTIAL, steering_policy=SteeringPolicy.SKIP_PENDING
    )
    await bench.agent.run("go")
    assert bench.ran == ["a"]
    assert statuses(bench.agent) == {"1": Status.OK, "2": Status.SKIPPED}
    assert "user sent a message" in results(bench.agent)["2"].text
    assert bench.model.requests[1].messages[-1].text == "stop"


async def test_pi_32_a_steer_seen_while_preparing_skips_a_whole_parallel_batch() -> None:
    steered: list[str] = []

    async def steer_once(_: Any) -> None:
        if not steered:
            steered.append(await agent.steer("wait"))

    model = ScriptedModel([say(call("ping", "1"), call("ping", "2")), "done"])
    ran: list[str] = []
    agent = ReActAgent(
        model=model,
        tools=[ping(ran)],
        hooks=Hooks(before_tool=steer_once),
        steering_policy=SteeringPolicy.SKIP_PENDING,
    )
    await agent.run("go")
    assert ran == []
    assert statuses(agent) == {"1": Status.SKIPPED, "2": Status.SKIPPED}


def ping(ran: list[str]) -> Callable[..., str]:
    def ping() -> str:
        """Ping."""
        ran.append("ping")
        return "pong"

    return ping


@pytest.mark.parametrize("execution", list(ToolExecution))
async def test_interrupt_cancels_what_runs_and_goes_on(execution: ToolExecution) -> None:
    bench = Bench(tool_execution=execution, steering_policy=SteeringPolicy.INTERRUPT)
    reply = await bench.agent.run("go")
    assert bench.ran == ["a"]
    assert bench.cancelled == ["a"]
    assert statuses(bench.agent)["1"] == Status.CANCELLED
    assert (reply.outcome, reply.text) == (Outcome.FINISHED, "done")
    assert bench.model.requests[1].messages[-1].text == "stop"


async def test_a_message_that_does_not_wake_waits_for_the_next_run() -> None:
    model = ScriptedModel(["one", "two"])
    agent = ReActAgent(model=model)
    await agent.run("first")
    await agent.steer("by the way", wake=False)
    assert (await agent.resume()).text == "one"
    await agent.run("second")
    said = [m.text for m in model.requests[1].messages]
    assert said == ["first", "one", "by the way", "second"]


async def test_suppliers_are_asked_after_the_own_queue() -> None:
    steering, follow_ups = [["from steering"]], [["from follow-up"]]
    hooks = Hooks(
        steering_supplier=lambda: steering.pop() if steering else None,
        follow_up_supplier=lambda: follow_ups.pop() if follow_ups else None,
    )
    model = ScriptedModel(["one", "two"])
    agent = ReActAgent(model=model, hooks=hooks, queue_mode=QueueMode.ALL)
    await agent.run("hi")
    assert [m.text for m in agent.messages if m.role == "user"] == [
        "hi",
        "from steering",
        "from follow-up",
    ]
