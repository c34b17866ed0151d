"""One answer of the model: stream it, put it together, and ask again where the protocol broke.

An empty message and a stream that broke off are asked for again, a bounded number of times.
These retries spend model calls of the budget, not turns.
"""

from __future__ import annotations

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
    UserMessage,
    new_id,
)
from callboard.model import (
    AttemptDiscarded,
    ModelRequest,
    Purpose,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from callboard.prices import Costs
from callboard.replies import Outcome, RunEnds
from callboard.watching import Watchers

RETRIES = 2
CLOSING_S = 10.0  # what a stream that is left early may take to close, shielded
NUDGE = "Your last answer was empty. Answer now, with text or with a tool call."
NOTHING: frozenset[type] = frozenset()
SHOWN: dict[Purpose, frozenset[type]] = {  # what watchers see; a summary's calls are removed
    Purpose.ANSWER: frozenset({TextDelta, ThinkingDelta, ToolCallDelta, AttemptDiscarded}),
    Purpose.SUMMARY: frozenset({TextDelta, ThinkingDelta, AttemptDiscarded}),
}

Ended = Literal["complete", "incomplete", "failed", "cancelled"]


class Draft:
    """The message that the model is writing. Its id is told before its first delta."""

    __slots__ = ("attempt", "id", "shown")

    def __init__(self) -> None:
        self.id = new_id("m")
        self.attempt = 0
        self.shown = False


class Reasoning:
    """Asks models for one agent; the root of `_reasoning` and `_summarizing`."""

    __slots__ = ("_conversation", "_costs", "_watchers", "draft")

    def __init__(
        self, conversation: Conversation, watchers: Watchers, *, costs: Costs | None
    ) -> None:
        self._conversation = conversation
        self._costs = costs
        self._watchers = watchers
        self.draft = Draft()

    async def respond(self, request: ModelRequest) -> AssistantMessage:
        """A complete message with something in it, and with call ids that are unique.

        Raises:
            ModelError: the provider failed; retrying by category is a layer's work.
            RunEnds: still empty or incomplete after the retries, or refused without a word.
            ConfigurationError: a limit is on the cost, and the cost is not known.
        """
        tries = 1 if request.purpose is Purpose.SUMMARY else RETRIES + 1
        asked, attempt = request, 1
        while True:
            result = await self._attempt(asked)
            if type(result) is Complete:
                message = result.message
                if not _is_empty(message):
                    return with_unique_ids(message, self._conversation.state.call_ids)
                if message.stop_reason in REFUSALS:
                    raise self._refused(message)
            if attempt == tries:
                raise self._given_up(result, tries)
            self._tell_retry(attempt, result)
            attempt += 1
            asked = _nudged(request) if type(result) is Complete else request

    async def _attempt(self, request: ModelRequest) -> Complete | Incomplete:
        """One model call, with its record, whatever comes of it."""
        name = request.model.name
        assembler = Assembler(model=name, id=self.draft.id)
        ended: Ended = "failed"
        error: str | None = None
        costs = self._costs
        if costs is not None:
            costs.before(name)
        try:
            await self._stream(request, assembler)
            result = assembler.result()
            ended = "complete" if type(result) is Complete else "incomplete"
        except ModelError as failure:
            error = str(failure)
            result = assembler.result(broken=error)
            if failure.category is not ErrorCategory.NETWORK or not result.message.content:
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
                ModelAttempted(name, request.purpose, ended, usage, seconds, error, cost)
            )
        if costs is not None and ended == "complete":
            costs.after(name, cost, usage)
        return result

    async def _stream(self, request: ModelRequest, assembler: Assembler) -> None:
        watchers, draft, layers = self._watchers, self.draft, self._conversation.layers
        shown = SHOWN.get(request.purpose, NOTHING) if watchers.active else NOTHING
        stream = request.model.stream(request)
        try:
            async for delta in stream:
                if layers is not None:
                    delta = self._conversation.committed(delta)
                piece = assembler.feed(delta)
                if piece is not None and type(piece) in shown:
                    draft.shown = True
                    watchers.tell(MessageUpdate, draft.id, piece, draft.attempt)
                    if watchers.full:
                        await watchers.room()
        except BaseException:
            await _closed(stream)  # at once, and not when it is collected
            raise

    def _keep_draft(self, partial: AssistantMessage, reason: str) -> None:
        if partial.content:
            self._conversation.ride(DraftInterrupted(partial, reason))

    def _refused(self, message: AssistantMessage) -> RunEnds:
        self._keep_draft(message, "refused")
        return RunEnds(Outcome.REFUSED, message.stop_detail or "The model refused to answer.")

    def _tell_retry(self, attempt: int, last: Complete | Incomplete) -> None:
        reason = last.reason if isinstance(last, Incomplete) else "the answer was empty"
        self.draft.attempt += 1
        if self.draft.shown:
            void = AttemptDiscarded(reason)
            self._watchers.tell(MessageUpdate, self.draft.id, void, self.draft.attempt)
            self.draft.shown = False
        self._watchers.tell(Retry, attempt, reason)

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
    return all(
        [
            block.text.isspace() if type(block) is TextBlock else type(block) is ThinkingBlock
            for block in message.content
        ]
    )


def _nudged(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=(*request.messages, UserMessage.of(NUDGE)))
