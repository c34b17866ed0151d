"""One answer of the model: stream it, put it together, and ask again where the protocol broke.

An empty message and a stream that broke off are asked for again, a bounded number of times.
These retries spend model calls of the budget, not turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from anyio import get_cancelled_exc_class, move_on_after

from callboard.assembler import Assembler, Complete, Incomplete, with_unique_ids
from callboard.errors import ErrorCategory, ModelError
from callboard.events import MessageUpdate, Retry
from callboard.journaling.conversation import Conversation
from callboard.journaling.records import DraftInterrupted, ModelAttempted
from callboard.messages import (
    REFUSALS,
    AssistantMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    UserMessage,
    new_id,
)
from callboard.model import (
    AttemptDiscarded,
    Model,
    ModelRequest,
    Purpose,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from callboard.prices import Costs
from callboard.replies import Outcome, RunEnds
from callboard.watchers import Watchers

RETRIES = 2
CLOSING_S = 10.0  # what a stream that is left early may take to close, shielded
NUDGE = "Your last answer was empty. Answer now, with text or with a tool call."
NOTHING: frozenset[type] = frozenset()
SHOWN: dict[Purpose, frozenset[type]] = {  # what watchers see; a summary's calls are removed
    Purpose.ANSWER: frozenset({TextDelta, ThinkingDelta, ToolCallDelta}),
    Purpose.SUMMARY: frozenset({TextDelta, ThinkingDelta}),
}

_SUMMARY = Purpose.SUMMARY  # members of an enum take 0.15 us to look up

Ended = Literal["complete", "incomplete", "failed", "cancelled"]


class Draft:
    """The message that the model is writing. Its id is told before its first delta.

    `answer` is what came of it before the layers: its call ids are unique already.
    """

    __slots__ = ("answer", "attempt", "id", "shown")

    def __init__(self) -> None:
        self.id = new_id("m")
        self.answer: AssistantMessage | None = None
        self.attempt = 0
        self.shown = False


class Reasoning:
    """Asks models for one agent; the root of `_reasoning` and `_summarizing`.

    `around` is the last to wrap each model that is asked, inside of whatever layers made of it.
    """

    __slots__ = ("_conversation", "_watchers", "around", "costs", "draft")

    def __init__(
        self, conversation: Conversation, watchers: Watchers, *, costs: Costs | None
    ) -> None:
        self._conversation = conversation
        self.costs = costs
        self._watchers = watchers
        self.draft = Draft()
        self.around: Callable[[Model], Model] | None = None

    async def respond(self, request: ModelRequest) -> AssistantMessage:
        """A complete message with something in it, and with call ids that are unique.

        Raises:
            ModelError: the provider failed; retrying by category is a layer's work.
            RunEnds: still empty or incomplete after the retries, or refused without a word.
            ConfigurationError: a limit is on the cost, and the cost is not known.
        """
        draft = self.draft
        if draft.shown and request.purpose in SHOWN:
            self._void("a layer asks again")
        tries = 1 if request.purpose is _SUMMARY else RETRIES + 1
        asked, attempt = request, 1
        while True:
            result = await self._attempt(asked)
            if type(result) is Complete:
                message = result.message
                if not _is_empty(message):
                    draft.answer = with_unique_ids(message, self._conversation.state.call_ids)
                    return draft.answer
                if message.stop_reason in REFUSALS:
                    raise self._refused(message)
            acted = type(result) is Incomplete and request.model.capabilities.acts
            if attempt == tries or acted:
                raise self._given_up(result, attempt)
            self._tell_retry(attempt, result)
            attempt += 1
            asked = _nudged(request) if type(result) is Complete else request

    async def _attempt(self, request: ModelRequest) -> Complete | Incomplete:
        """One model call, with its record, whatever comes of it."""
        name = request.model.name
        assembler = Assembler(model=name, id=self.draft.id)
        ended: Ended = "failed"
        error: str | None = None
        category: ErrorCategory | None = None
        answer: AssistantMessage | None = None
        costs = self.costs
        if costs is not None:
            costs.before(name)
        try:
            await self._stream(request, assembler)
            result = assembler.result()
            ended = "complete" if type(result) is Complete else "incomplete"
            if ended == "complete" and request.purpose not in SHOWN:
                answer = result.message
        except ModelError as failure:
            error, category = str(failure), failure.category
            result = assembler.result(broken=error)
            broke_off = failure.category is ErrorCategory.NETWORK and result.message.content
            if failure.final or not broke_off:
                raise
            ended = "incomplete"  # it broke in mid-stream
        except get_cancelled_exc_class():
            ended = "cancelled"
            self._keep_draft(assembler.result(broken="cancelled").message, "cancelled")
            raise
        finally:
            usage, seconds = assembler.usage, self._conversation.lap()
            cost = None if costs is None else costs.of(name, usage)
            self._conversation.ride(
                ModelAttempted(
                    name, request.purpose, ended, usage, seconds, error, cost, answer, category
                )
            )
        if costs is not None and ended == "complete":
            costs.after(name, cost, usage)
        return result

    async def _stream(self, request: ModelRequest, assembler: Assembler) -> None:
        watchers, draft, layers = self._watchers, self.draft, self._conversation.layers
        shown = SHOWN.get(request.purpose, NOTHING) if watchers.active else NOTHING
        model = request.model if self.around is None else self.around(request.model)
        stream = model.stream(request)
        try:
            async for delta in stream:
                if layers is not None:
                    delta = self._conversation.committed(delta)
                if type(delta) is AttemptDiscarded:
                    self._discard(request, assembler.usage, delta.reason)
                piece = assembler.feed(delta)
                if piece is not None and type(piece) in shown:
                    draft.shown = True
                    watchers.tell(MessageUpdate, draft.id, piece, draft.attempt)
                    if watchers.full:
                        await watchers.room()
        except BaseException:
            await _closed(stream)  # at once, and not when it is collected
            raise

    def _discard(self, request: ModelRequest, usage: Usage, reason: str) -> None:
        """A model that a layer wrapped asks again by itself: an attempt like every other."""
        name = request.model.name
        cost = None if self.costs is None else self.costs.of(name, usage)
        lap = self._conversation.lap()
        self._conversation.ride(
            ModelAttempted(name, request.purpose, "failed", usage, lap, reason, cost)
        )
        if request.purpose in SHOWN:
            self._void(reason)
        self._watchers.tell(Retry, self.draft.attempt, reason)

    def _keep_draft(self, partial: AssistantMessage, reason: str) -> None:
        if partial.content:
            self._conversation.ride(DraftInterrupted(partial, reason))

    def _refused(self, message: AssistantMessage) -> RunEnds:
        self._keep_draft(message, "refused")
        return RunEnds(Outcome.REFUSED, message.stop_detail or "The model refused to answer.")

    def _tell_retry(self, attempt: int, last: Complete | Incomplete) -> None:
        reason = last.reason if isinstance(last, Incomplete) else "the answer was empty"
        self._void(reason)
        self._watchers.tell(Retry, attempt, reason)

    def _void(self, reason: str) -> None:
        """What was shown of the draft does not count any more."""
        draft = self.draft
        draft.attempt += 1
        if draft.shown:
            self._watchers.tell(MessageUpdate, draft.id, AttemptDiscarded(reason), draft.attempt)
            draft.shown = False

    def _given_up(self, last: Complete | Incomplete, tries: int) -> RunEnds:
        if isinstance(last, Incomplete):
            self._keep_draft(last.message, last.reason)
            text = f"The model's answer broke off {tries} times: {last.reason}."
            return RunEnds(Outcome.INCOMPLETE, text)
        return RunEnds(Outcome.EMPTY_REPLY, f"The model gave {tries} empty answers.")


async def _closed(stream: object) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        with move_on_after(CLOSING_S, shield=True):
            await close()


def _is_empty(message: AssistantMessage) -> bool:
    """No words, no call and no media: nothing, blanks, or thinking alone."""
    for block in message.content:
        kind = type(block)
        if kind is ToolCall or (type(block) is TextBlock and not block.text.isspace()):
            return False
        if kind is not ThinkingBlock and kind is not TextBlock:
            return False
    return True


def _nudged(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=(*request.messages, UserMessage.of(NUDGE)))
