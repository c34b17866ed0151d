"""Replays of agents with layers: what a layer asked for itself is in the journal, and no model is
asked, whoever holds it.
"""

from __future__ import annotations

from typing import Any

from callboard import InMemoryJournal, Journal, ModelRequest, ReActAgent
from callboard.journaling.record_codec import encode
from callboard.journaling.records import ModelAttempted
from callboard.model import Model
from callboard.testing import Replay, ScriptedModel, error, replayed
from callboard.testing.script import ScriptItem
from callboard_mixins import (
    FallbackMixin,
    PlanAndSolveMixin,
    RedactionMixin,
    RetryMixin,
    RetryPolicy,
)

KEY = "AKIAIOSFODNN7EXAMPLE"


class Planning(PlanAndSolveMixin, ReActAgent):
    """Asks for a plan, then for each step of it."""


class HidingPlanning(PlanAndSolveMixin, RedactionMixin, ReActAgent):
    """Its plans hold no secrets."""


class Sturdy(FallbackMixin, RetryMixin, ReActAgent):
    """Asks again, and then another model."""


def recorded(kind: type[ReActAgent], *script: ScriptItem, **options: Any) -> InMemoryJournal:
    """The journal of one run."""
    journal = InMemoryJournal()
    kind(model=ScriptedModel(script), journal=journal, **options).run_sync("go")
    return journal


def again(journal: Journal, kind: type[ReActAgent], **options: Any) -> Replay:
    def make(*, model: Model, journal: Journal) -> ReActAgent:
        return kind(model=model, journal=journal, **options)

    return replayed(journal, make)


def test_a_plan_is_made_again_as_it_was() -> None:
    journal = recorded(Planning, "1. look\n2. say", "looked", "said", "done")
    answers = [one.answer for one in journal.records if isinstance(one, ModelAttempted)]
    assert [answer and answer.text for answer in answers] == ["1. look\n2. say", None, None, None]
    again(journal, Planning).assert_same()


def test_what_a_model_answers_a_layer_is_redacted_like_all_else() -> None:
    journal = recorded(HidingPlanning, f"1. use {KEY}", "used", "done")
    assert KEY.encode() not in b"".join([encode(record) for record in journal.records])
    again(journal, HidingPlanning).assert_same()


def _never(request: ModelRequest) -> ScriptItem:
    raise SystemExit("a model was asked in a replay")


def test_a_fallback_is_taken_again_and_its_model_is_not_asked() -> None:
    busy, twice = [error(category="overloaded")] * 2, RetryPolicy(attempts=2, first_wait_s=0.01)
    spare = ScriptedModel(["from the spare one"], name="spare")
    journal = recorded(Sturdy, *busy, fallback_models=[spare], retry_policy=twice)
    same = ScriptedModel((), then=_never, name="spare")
    again(journal, Sturdy, fallback_models=[same], retry_policy=twice).assert_same()
    new = ScriptedModel((), then=_never, name="new")
    other = again(journal, Sturdy, fallback_models=[new], retry_policy=twice)
    assert other.difference is not None
    assert other.difference.detail == 'model was "spare" and is "new"'
