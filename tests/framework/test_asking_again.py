"""Whoever asks the model again (a layer, or a model that a layer wrapped), nothing counts twice."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from callboard import Budget, ModelRequest, ReActAgent, RunFailed, Usage
from callboard.errors import ErrorCategory, ModelError
from callboard.events import MessageUpdate, Retry
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import ModelAttempted
from callboard.messages import AssistantMessage
from callboard.model import AttemptDiscarded, Capabilities, Purpose
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, drop, eof, stream, usage
from tests.framework.kit import agent_of, watched

pytestmark = pytest.mark.anyio

VOID = AttemptDiscarded("busy")


class Twice(ReActAgent):
    """Asks twice and takes the second answer."""

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        await super()._reasoning(request)
        return await super()._reasoning(request)


class Judged(ReActAgent):
    """Has the answer judged, and keeps it."""

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        answer = await super()._reasoning(request)
        await super()._reasoning(replace(request, purpose=Purpose.JUDGEMENT))
        return answer


def attempts(agent: ReActAgent) -> list[tuple[str, str | None]]:
    assert isinstance(agent.journal, InMemoryJournal)
    found = [r for r in agent.journal.records if isinstance(r, ModelAttempted)]
    return [(record.ended, record.error) for record in found]


async def test_what_was_shown_before_a_layer_asks_again_is_voided() -> None:
    agent = Twice(model=ScriptedModel([stream("one"), stream("two")]))
    _, events = await watched(agent)
    updates = [(e.delta, e.attempt) for e in events if isinstance(e, MessageUpdate)]
    assert [type(delta).__name__ for delta, _ in updates] == [
        *("TextDelta", "AttemptDiscarded", "TextDelta")
    ]
    assert [attempt for _, attempt in updates] == [0, 1, 1]


async def test_a_judgement_leaves_what_was_shown() -> None:
    agent = Judged(model=ScriptedModel([stream("one"), stream("good")]))
    reply, events = await watched(agent)
    updates = [e.delta for e in events if isinstance(e, MessageUpdate)]
    assert (reply.text, len(updates)) == ("one", 1)


async def test_an_attempt_that_the_model_voids_itself_is_recorded_and_told() -> None:
    agent, _ = agent_of([stream("a", usage(5, 1), VOID, "b", usage(5, 2))])
    reply, events = await watched(agent)
    assert attempts(agent) == [("failed", "busy"), ("complete", None)]
    assert (reply.text, reply.usage) == ("b", Usage(input_tokens=10, output_tokens=3))
    assert [(e.attempt, e.reason) for e in events if isinstance(e, Retry)] == [(1, "busy")]


async def test_its_cost_counts_too() -> None:
    prices = Budget(prices=lambda _, used: float(used.output_tokens or 0))
    agent, _ = agent_of([stream("a", usage(5, 1), VOID, "b", usage(5, 2))], budget=prices)
    assert (await agent.run("go")).cost == 3.0


async def test_an_attempt_that_showed_nothing_voids_nothing() -> None:
    agent, _ = agent_of([stream(VOID, "b")])
    _, events = await watched(agent)
    assert not any(isinstance(e, MessageUpdate) and e.delta == VOID for e in events)


async def test_what_broke_off_is_not_sent_again_to_a_provider_that_acts() -> None:
    model = ScriptedModel([stream("a", eof()), "done"], capabilities=Capabilities(acts=True))
    reply = await ReActAgent(model=model).run("go")
    assert (reply.outcome, model.used) == (Outcome.INCOMPLETE, 1)


async def test_a_final_failure_in_mid_stream_is_not_tried_again() -> None:
    final = ModelError("reset", category=ErrorCategory.NETWORK, final=True)
    model = ScriptedModel([stream("a", final), "done"])
    with pytest.raises(RunFailed, match="reset"):
        await ReActAgent(model=model).run("go")
    assert drop().retryable
    assert not final.retryable


def test_a_request_of_another_model_keeps_everything_else() -> None:
    kept = {one.name: object() for one in fields(ModelRequest)}
    request = ModelRequest(**kept)  # type: ignore[arg-type]  # whatever a field may hold
    other = request.asking(ScriptedModel())
    assert [name for name in kept if getattr(other, name) is not kept[name]] == ["model"]
