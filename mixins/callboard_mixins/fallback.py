"""A layer that asks another model where one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from callboard.agent import ReActAgent
from callboard.entering import Entered
from callboard.errors import RETRYABLE, ConfigurationError, ErrorCategory, ModelError
from callboard.events import Warned
from callboard.messages import AssistantMessage
from callboard.model import Model, ModelRequest
from callboard.replies import Outcome, Prompt, Reply, RunEnds
from callboard_mixins.checked import check_given
from callboard_mixins.media.media_filter import MediaFilterMixin
from callboard_mixins.rate_limit import RateLimitMixin
from callboard_mixins.retry import RetryMixin

MOVING_ON = RETRYABLE | {ErrorCategory.QUOTA}
_NO_ANSWER = frozenset({Outcome.INCOMPLETE, Outcome.EMPTY_REPLY})

Ask = Callable[[ModelRequest], Awaitable[AssistantMessage]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackPolicy:
    """When the next model is asked, and for how long.

    `categories` are the failures that another model may not have: by default those that pass, and
    a used-up quota. A wrong key, a request that is too long or one that a provider's filter
    refused move on only if they are named here. `no_answer` moves on from a model whose answer
    stayed empty or broke off each time.

    `stays` says how long the model that answered is asked first: for this "request" only, for the
    "run", or as long as the "agent" lives.
    """

    categories: frozenset[ErrorCategory] = MOVING_ON
    no_answer: bool = True
    stays: Literal["request", "run", "agent"] = "request"

    def __post_init__(self) -> None:
        if self.stays not in ("request", "run", "agent"):
            raise ConfigurationError(
                f"FallbackPolicy(stays={self.stays!r}): there are 'request', 'run' and 'agent'"
            )

    def moves_on(self, failure: ModelError | RunEnds) -> bool:
        """Whether another model is to be asked."""
        if isinstance(failure, ModelError):
            return failure.category in self.categories
        return self.no_answer and failure.outcome in _NO_ANSWER


_USUAL = FallbackPolicy()


class FallbackMixin(ReActAgent):
    """Asks the `fallback_models` one after another where the agent's own model fails.

    Every model gets the request from the start: what was shown of an answer that broke off is
    voided, each attempt stands in the journal, and the message says who answered. What only one
    model could read (call ids, signed thinking) is made safe by the adapter of the next, and media
    by `MediaFilterMixin`. A model that acts while it answers (`Capabilities.acts`) is followed by
    none: the next could act again. If all fail, the last failure is raised.

    It asks the layers inside once for each model, so it stands outside of those that suit a
    request to its model or count what one model is asked. A model that was asked once keeps its
    connections to the end of the attempt.

    Raises:
        ConfigurationError: there is no model to fall back on.
    """

    goes_outside: ClassVar[tuple[type[ReActAgent], ...]] = (
        RateLimitMixin,
        RetryMixin,
        MediaFilterMixin,
    )

    def __init__(
        self,
        *,
        fallback_models: Sequence[Model],
        fallback_policy: FallbackPolicy = _USUAL,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        check_given("fallback_policy", fallback_policy, FallbackPolicy)
        self._fallback_models = tuple(fallback_models)
        self._fallback_policy = fallback_policy
        self._fallback_stay: tuple[str, Model] | None = None  # of which run, and who answered
        self._fallback_entered: Entered | None = None  # of an attempt, once one was asked
        if not all([hasattr(model, "stream") for model in self._fallback_models]):
            raise ConfigurationError(
                f"fallback_models={fallback_models!r}: give models; a name becomes one with "
                "callboard_providers.models.resolve_model(name)"
            )
        if not self._fallback_models:
            raise ConfigurationError("fallback_models is empty: give one model or more")

    async def reply(self, prompt: Prompt) -> Reply:
        async with Entered(self._warn, outer=self._entered) as self._fallback_entered:
            return await super().reply(prompt)

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        return await self._fallback_answer(request, super()._reasoning)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        return await self._fallback_answer(request, super()._summarizing)

    async def _fallback_answer(self, request: ModelRequest, ask: Ask) -> AssistantMessage:
        own = request.model
        models = [own, *self._fallback_models]
        if self._fallback_stay is not None:
            models = self._fallback_turned(models, *self._fallback_stay)
        while True:
            model = models.pop(0)
            try:
                message = await ask(
                    request if model is own else await self._fallback_for(request, model)
                )
            except (ModelError, RunEnds) as failure:
                acts = model.capabilities.acts
                if not models or acts or not self._fallback_policy.moves_on(failure):
                    raise
                text = f"{model.name} failed ({failure}); asking {models[0].name}"
                self._watchers.tell(Warned, text)
            else:
                self._fallback_note(own, model)
                return message

    def _fallback_turned(self, models: list[Model], scope: str, stays: Model) -> list[Model]:
        """The models from the one that is to stay, and round."""
        if scope != self._fallback_scope() or stays not in models:
            return models
        at = models.index(stays)
        return models[at:] + models[:at]

    async def _fallback_for(self, request: ModelRequest, model: Model) -> ModelRequest:
        if self._fallback_entered is not None:
            await self._fallback_entered.add(model)
        return request.asking(model)

    def _fallback_note(self, own: Model, answered: Model) -> None:
        if answered is own or self._fallback_policy.stays == "request":
            self._fallback_stay = None
        else:
            self._fallback_stay = (self._fallback_scope(), answered)

    def _fallback_scope(self) -> str:
        run = self._conversation.state.run
        return "" if self._fallback_policy.stays == "agent" or run is None else run.run_id
