"""A layer that keeps to what a provider takes, together with all agents that share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from callboard.agent import ReActAgent
from callboard.errors import ErrorCategory, ModelError
from callboard.events import Warned
from callboard.messages import AssistantMessage
from callboard.model import Delta, Model, ModelRequest, UsageDelta
from callboard_mixins.checked import check_given
from callboard_mixins.rate_limiter import PROCESS, Lane, RateLimiter
from callboard_mixins.rate_window import Sent
from callboard_mixins.retry import RetryMixin
from callboard_mixins.token_estimate import estimate
from callboard_mixins.wrapped_model import WrappedModel, WrappedStream

Tell = Callable[[str], None]


class RateLimitMixin(ReActAgent):
    """Waits for its turn before each request, also for those that a `RetryMixin` sends.

    `rate_limiter` is shared by the agents that are given it. Without one, all agents of the
    process share the pauses that providers ask for ("too many requests"), and there are no
    limits. Waiting can be cancelled, and who waits holds no place.

    Layers wrap the model from the outside in, so the wrapper of an outer layer is the one nearer
    to the model. That is why this layer stands outside of `RetryMixin`: each attempt asks for its
    turn, and no place is held while an attempt waits to be made.
    """

    goes_outside: ClassVar[tuple[type[ReActAgent], ...]] = (RetryMixin,)

    def __init__(self, *, rate_limiter: RateLimiter = PROCESS, **rest: Any) -> None:
        super().__init__(**rest)
        check_given("rate_limiter", rate_limiter, RateLimiter)
        self._rate_limit_limiter = rate_limiter
        self._rate_limit_model: RateLimitedModel | None = None  # around the one asked last

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        return await super()._reasoning(self._rate_limit_wrapped(request))

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        return await super()._summarizing(self._rate_limit_wrapped(request))

    def _rate_limit_wrapped(self, request: ModelRequest) -> ModelRequest:
        wrapped = self._rate_limit_model
        if wrapped is None or wrapped.inner is not request.model:
            limiter = self._rate_limit_limiter
            wrapped = RateLimitedModel(request.model, limiter, tell=self._rate_limit_tell)
            self._rate_limit_model = wrapped
        return request.asking(wrapped)

    def _rate_limit_tell(self, text: str) -> None:
        self._watchers.tell(Warned, text)


class RateLimitedModel(WrappedModel):
    """A model that is asked when it is one's turn; what `RateLimitMixin` puts around it.

    `tell` hears of each request that has to wait.
    """

    __slots__ = ("limiter", "tell")

    def __init__(
        self, inner: Model, limiter: RateLimiter = PROCESS, *, tell: Tell | None = None
    ) -> None:
        super().__init__(inner)
        self.limiter = limiter
        self.tell = tell

    def stream(self, request: ModelRequest) -> _LimitedStream:
        """The answer, once there is room for the request.

        Raises:
            ModelError: what the model raises; or rate_limited and `final`: no turn came.
        """
        lane = self.limiter.lane(self.name)
        return _LimitedStream(self.inner, request, lane, tell=self.tell)


class _LimitedStream(WrappedStream):
    __slots__ = ("_holds", "_lane", "_sent", "_tell")

    def __init__(
        self, model: Model, request: ModelRequest, lane: Lane, *, tell: Tell | None
    ) -> None:
        self._model = model
        self._request = request
        self._deltas = None
        self._lane = lane
        self._tell = tell
        self._holds = False  # a place
        self._sent: Sent | None = None

    async def __anext__(self) -> Delta:
        try:
            if self._deltas is None:
                if not self._lane.is_free:
                    await self._enter()
                self._deltas = self._model.stream(self._request)
            delta = await self._deltas.__anext__()
        except ModelError as failure:
            if failure.category is ErrorCategory.RATE_LIMITED:
                self._lane.pause(failure.retry_after_s)
            raise
        except StopAsyncIteration:
            self._leave()
            raise
        if self._sent is not None:
            self._note(delta, self._sent)
        return delta

    async def _enter(self) -> None:
        lane = self._lane
        tokens = estimate(self._request) if lane.limit.tokens_per_minute is not None else 0
        if self._tell is not None and lane.must_wait(tokens):
            self._tell(f"{self._model.name} has no room now: the request waits for its turn")
        self._sent = await lane.enter(self._model.name, tokens)
        self._holds = True

    def _note(self, delta: Delta, sent: Sent) -> None:
        if self._lane.limit.held_until == "first_delta":
            self._leave()
        if type(delta) is UsageDelta:
            used = (delta.usage.input_tokens or 0) + (delta.usage.output_tokens or 0)
            if used:
                self._lane.correct(sent, used)

    def _leave(self) -> None:
        if self._holds:
            self._holds = False
            self._lane.leave()

    async def aclose(self) -> None:
        try:
            await super().aclose()
        finally:
            self._leave()
