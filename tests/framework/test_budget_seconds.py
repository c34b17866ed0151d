"""`Budget(seconds=)` is kept in the middle of things: a model call is cut off, a tool has less."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard import Budget, Outcome, tool
from callboard.agent import ReActAgent
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import DraftInterrupted, ModelAttempted
from callboard.messages import AssistantMessage
from callboard.model import ModelRequest
from callboard.testing import ScriptedModel, call, pause, say, stream
from tests.framework.kit import agent_of, assert_paired, assert_replays, statuses, watched

pytestmark = pytest.mark.anyio


async def nap(s: float) -> str:
    """Sleep."""
    await anyio.sleep(s)
    return "rested"


async def test_a_model_that_takes_too_long_is_cut_off_and_the_run_summarized() -> None:
    agent, model = agent_of([stream("well", pause(60), "late"), "sum"], budget=Budget(seconds=5))
    began = anyio.current_time()
    reply, events = await watched(agent)
    assert anyio.current_time() - began == pytest.approx(5)
    assert (reply.outcome, reply.limit, reply.text) == (Outcome.BUDGET, "seconds=5", "sum")
    assert model.open_streams == 0
    assert_paired(events)
    assert_replays(agent)


async def test_what_it_had_said_is_kept_as_a_draft_and_its_time_is_counted() -> None:
    agent, _ = agent_of([stream("well", pause(60)), "sum"], budget=Budget(seconds=5))
    await agent.run("go")
    assert isinstance(agent.journal, InMemoryJournal)
    drafts = [r.partial.text for r in agent.journal.records if isinstance(r, DraftInterrupted)]
    attempts = [r for r in agent.journal.records if isinstance(r, ModelAttempted)]
    assert drafts == ["well"]
    assert [attempt.ended for attempt in attempts] == ["cancelled", "complete"]
    assert [attempt.active_s for attempt in attempts] == [pytest.approx(5), pytest.approx(0)]


async def test_a_tool_gets_no_more_time_than_there_is() -> None:
    agent, _ = agent_of([call("nap", "a", s=60), "sum"], nap, budget=Budget(seconds=5))
    began = anyio.current_time()
    reply = await agent.run("go")
    assert anyio.current_time() - began == pytest.approx(5)
    assert statuses(agent) == {"a": "timed_out"}
    assert reply.limit == "seconds=5"
    assert_replays(agent)


async def test_a_tool_whose_own_deadline_is_nearer_keeps_it() -> None:
    quick = tool(timeout_s=1)(nap)
    agent, _ = agent_of([call("nap", "a", s=60), "done"], quick, budget=Budget(seconds=5))
    reply = await agent.run("go")
    assert (statuses(agent), reply.text) == ({"a": "timed_out"}, "done")


async def test_a_tool_without_a_deadline_is_waited_for() -> None:
    patient = tool(timeout_s=None)(nap)
    agent, _ = agent_of([call("nap", "a", s=60), "sum"], patient, budget=Budget(seconds=5))
    reply = await agent.run("go")
    assert (statuses(agent), reply.limit) == ({"a": "ok"}, "seconds=5")


async def test_what_has_not_begun_when_the_time_is_used_up_does_not_begin() -> None:
    first = tool(timeout_s=None, sequential=True)(nap)
    script: list[Any] = [say(call("nap", "a", s=60), call("other", "b")), "sum"]
    ran: list[str] = []

    async def other() -> None:
        """Do something else."""
        ran.append("other")

    agent, _ = agent_of(script, first, other, budget=Budget(seconds=5))
    await agent.run("go")
    assert statuses(agent) == {"a": "ok", "b": "skipped"}
    assert ran == []


class Slow(ReActAgent):
    """A layer that takes its time before it asks."""

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        await anyio.sleep(60)
        return await super()._reasoning(request)


async def test_a_layer_that_waits_before_the_model_is_cut_off_too() -> None:
    agent, model = agent_of(["late", "sum"], kind=Slow, budget=Budget(seconds=5))
    reply = await agent.run("go")
    assert (reply.limit, len(model.requests)) == ("seconds=5", 1)


async def test_the_summary_itself_has_no_limit() -> None:
    script: list[Any] = [stream(pause(60)), stream(pause(60), "sum")]
    agent, _ = agent_of(script, budget=Budget(seconds=5))
    assert (await agent.run("go")).text == "sum"


async def test_a_cancel_from_outside_is_no_limit() -> None:
    agent, _ = agent_of([stream(pause(60), "late")], budget=Budget(seconds=5))
    with anyio.move_on_after(1) as scope:
        await agent.run("go")
    assert scope.cancelled_caught
    last = agent.state.last_outcome
    assert last is Outcome.INTERRUPTED


async def test_a_model_in_time_costs_nothing_else() -> None:
    agent = ReActAgent(model=ScriptedModel(["done"]), budget=Budget(seconds=5))
    assert (await agent.run("go")).outcome is Outcome.FINISHED
