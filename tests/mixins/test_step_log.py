"""The step log tells every step of a run, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ReActAgent, Reply
from callboard.errors import ErrorCategory
from callboard.replies import RunFailed
from callboard.testing import ScriptedModel, call, error, say, stream
from callboard_mixins import StepLogMixin

pytestmark = pytest.mark.anyio


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, dict[str, Any]]] = []

    def debug(self, event: str, **facts: Any) -> None:
        self.kept.append((event, facts))


class LoggedAgent(StepLogMixin, ReActAgent):
    """An agent with the layer under test."""


def double(number: int) -> int:
    """Double a number."""
    return number * 2


async def run(script: list[Any], lines: Lines, **options: Any) -> Reply:
    model = ScriptedModel(script)
    agent = LoggedAgent(step_log=lines, model=model, tools=[double], **options)
    return await agent.run("twice 4?")


async def test_each_step_is_told_with_its_turn_and_duration() -> None:
    lines = Lines()
    await run([say(call("double", number=4)), "8"], lines)
    told = [(step, facts["turn"]) for step, facts in lines.kept]
    assert told == [
        ("reasoning", 1),
        ("deciding", 1),
        ("acting", 1),
        ("result", 1),
        ("reasoning", 2),
    ]
    assert all(facts["took_ms"] >= 0 for step, facts in lines.kept if step != "result")


async def test_the_result_is_told_with_its_status() -> None:
    lines = Lines()
    await run([say(call("double", number="x")), "no"], lines)
    results = [facts["status"] for step, facts in lines.kept if step == "result"]
    assert results == ["invalid"]


async def test_summarizing_is_told() -> None:
    lines = Lines()
    await run([say(call("double", number=4)), "so far 8"], lines, max_iters=1)
    assert lines.kept[-1][0] == "summarizing"


async def test_a_step_that_raises_is_told_and_still_raises() -> None:
    lines = Lines()
    with pytest.raises(RunFailed):
        await run([stream(error("no", category=ErrorCategory.AUTH))], lines)
    assert lines.kept[-1][1]["raised"] == "ModelError"


async def test_turns_count_from_one_in_each_run() -> None:
    lines = Lines()
    agent = LoggedAgent(step_log=lines, model=ScriptedModel(["a", "b"]))
    await agent.run("one")
    await agent.run("two")
    assert [facts["turn"] for _, facts in lines.kept] == [1, 1]
