"""The model of a replay, and how it takes the place of every model that the agent would ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, cast

from callboard.model import Capabilities, Delta, Model, ModelRequest
from callboard.testing.scripted_model import TAKES_ALL


class Answers(Protocol):
    """Where the recorded answers come from."""

    @property
    def model_name(self) -> str: ...

    def answer(self, request: ModelRequest) -> AsyncIterator[Delta]: ...


class RecordedModel:
    """Gives the recorded answers, one for each request. `of` is asked nothing but what it is."""

    def __init__(self, answers: Answers, of: Model | None = None) -> None:
        self._answers = answers
        self._of = of

    @property
    def name(self) -> str:
        return self._answers.model_name if self._of is None else self._of.name

    @property
    def capabilities(self) -> Capabilities:
        return TAKES_ALL if self._of is None else self._of.capabilities

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        return self._answers.answer(request)


def rebased(answers: Answers, before: Callable[[Model], Model] | None, model: Model) -> Model:
    """The model with a recorded one at its base, whatever layers have wrapped around that.

    `before` is what the agent itself does with each model that it asks.
    """
    outer, base = None, cast(Any, model)
    while hasattr(base, "inner"):
        outer, base = base, base.inner
    if not isinstance(base, RecordedModel):
        recorded = RecordedModel(answers, base)
        if outer is None:
            model = recorded
        else:
            outer.inner = recorded
    return model if before is None else before(model)
