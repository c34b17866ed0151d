"""A layer that asks a model again where that may help, after a while."""

from __future__ import annotations

from typing import Any

import anyio

from callboard.agent import ReActAgent
from callboard.errors import ModelError
from callboard.messages import AssistantMessage
from callboard.model import AttemptDiscarded, Delta, Model, ModelRequest
from callboard_mixins.checked import check_given
from callboard_mixins.retry_policy import Attempts, RetryPolicy, may_act_twice
from callboard_mixins.wrapped_model import WrappedModel, WrappedStream


class RetryMixin(ReActAgent):
    """Asks the model again after a failure of a category that passes: too many requests, an
    overloaded provider, a broken connection, output that the provider could not read.

    Each attempt stands in the journal and counts in the budget. What watchers were shown of one
    that broke off is voided first (`AttemptDiscarded`), and a `Retry` event says why and how long
    is waited. When it gives up, the last failure is raised. A provider that acts while it answers
    (`Capabilities.acts`) is asked again only if it had no room for the request. Streams that end
    without a stop reason are the loop's own to ask again.

    A `RateLimitMixin` stands outside of it in the class statement, so that each attempt waits for
    its turn and none holds a place while it waits to be retried.
    """

    def __init__(self, *, retry_policy: RetryPolicy | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._retry_policy = RetryPolicy() if retry_policy is None else retry_policy
        check_given("retry_policy", self._retry_policy, RetryPolicy)
        self._retry_model: RetryingModel | None = None  # around the model that was asked last

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        return await super()._reasoning(self._retry_wrapped(request))

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        return await super()._summarizing(self._retry_wrapped(request))

    def _retry_wrapped(self, request: ModelRequest) -> ModelRequest:
        wrapped = self._retry_model
        if wrapped is None or wrapped.inner is not request.model:
            wrapped = self._retry_model = RetryingModel(request.model, self._retry_policy)
        return request.asking(wrapped)


class RetryingModel(WrappedModel):
    """A model that is asked again; what `RetryMixin` puts around the model of a request."""

    __slots__ = ("policy",)

    def __init__(self, inner: Model, policy: RetryPolicy | None = None) -> None:
        super().__init__(inner)
        self.policy = policy or RetryPolicy()

    def stream(self, request: ModelRequest) -> _RetryingStream:
        """The answer, with an `AttemptDiscarded` where the model is asked again.

        Raises:
            ModelError: a failure that passes by no waiting, or the last one, which is `final`.
        """
        return _RetryingStream(self.inner, request, self.policy)


class _RetryingStream(WrappedStream):
    __slots__ = ("_attempts", "_came", "_policy", "_wait_s")

    def __init__(self, model: Model, request: ModelRequest, policy: RetryPolicy) -> None:
        self._model = model
        self._request = request
        self._deltas = None
        self._policy = policy
        self._attempts: Attempts | None = None
        self._came = False  # something of an answer
        self._wait_s = 0.0  # before the next attempt

    async def __anext__(self) -> Delta:
        try:
            if self._deltas is None:
                if self._wait_s:
                    await anyio.sleep(self._wait_s)
                self._deltas = self._model.stream(self._request)
            delta = await self._deltas.__anext__()
        except ModelError as failure:
            return await self._discarded(failure)
        self._came = True
        return delta

    async def _discarded(self, failure: ModelError) -> AttemptDiscarded:
        await self.aclose()
        if may_act_twice(failure, acts=self._model.capabilities.acts, came=self._came):
            raise failure
        attempts = self._attempts = self._attempts or Attempts(self._policy)
        wait_s = attempts.wait_s(failure)
        if wait_s is None:
            raise _last(failure, attempts.count)
        self._wait_s = wait_s
        return AttemptDiscarded(f"{failure}; asking again in {wait_s:.3g} s")


def _last(failure: ModelError, attempts: int) -> ModelError:
    """What is raised at last: nobody is to try the same again if it was tried here."""
    if not failure.retryable:
        return failure
    last = ModelError(
        f"{failure} ({attempts} {'attempt' if attempts == 1 else 'attempts'})",
        category=failure.category,
        retry_after_s=failure.retry_after_s,
        status=failure.status,
        final=True,
    )
    last.__cause__ = failure
    return last
