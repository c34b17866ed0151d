"""What a journal holds of the outside world: the model's answers and the outcomes of the tools.

Pure: nothing here knows an agent. `replaying.py` puts it in the place of the real model and tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from callboard.approvals import Approval
from callboard.closing import STOPPED
from callboard.errors import ErrorCategory, ModelError
from callboard.journaling.records import (
    Activated,
    ApprovalRequested,
    ApprovalResolved,
    Decided,
    DraftInterrupted,
    MessageAdded,
    ModelAttempted,
    Observed,
    Record,
    RunFinished,
    Spent,
    ToolFinished,
    ToolStarted,
)
from callboard.messages import AssistantMessage, Observation, StopReason
from callboard.model import Delta, Purpose, StopDelta, TextDelta, UsageDelta, WholeDelta
from callboard.replies import Outcome

_KEPT = frozenset({Purpose.ANSWER, Purpose.SUMMARY})  # whose answers become messages
_CLOSING = (ApprovalResolved, Decided, Observed, Spent, ToolFinished, ToolStarted)
_LOST = TextDelta("(not recorded)")  # of an answer that nothing came of


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """One model call: its record, and what is known of what the model said.

    `deltas` is None where it is not known: before version 0.1.0 was released, the answers to a
    layer's own questions (a summary of the past, a judgement, a plan) were in no record.
    """

    number: int
    attempt: ModelAttempted
    deltas: Sequence[Delta] | None
    failure: ModelError | None = None  # raised behind the deltas


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One execution of a call, and how it ended. `cut_off`: it did not.

    `number` is that of the record which tells; where a tool stopped the run, of the run's end.
    """

    ended: Literal["finished", "asked", "stopped", "cut_off", "not_run"]
    number: int | None = None
    observation: Observation | None = None
    asked: tuple[Approval, ...] = ()
    stop: RunFinished | None = None


class Cassette:
    """The recorded answers in order, and the recorded executions by call and attempt."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = tuple(records)
        attempts = [n for n, one in enumerate(self.records) if isinstance(one, ModelAttempted)]
        self.answers = tuple([self._answer(n) for n in attempts])

    @property
    def stops(self) -> frozenset[int]:
        """The numbers of the outcomes of tools that ended their run."""
        finished = [(n, one) for n, one in enumerate(self.records) if isinstance(one, ToolFinished)]
        return frozenset([n for n, one in finished if self._finished(n, one).stop is not None])

    # -- the model -------------------------------------------------------------------------------

    def _answer(self, n: int) -> RecordedAnswer:
        attempt = self.records[n]
        assert isinstance(attempt, ModelAttempted)
        said: list[Delta] = [UsageDelta(attempt.usage)]
        if attempt.ended == "complete":
            if attempt.answer is not None:
                return RecordedAnswer(n, attempt, [*said, *_whole(attempt.answer)])
            if attempt.purpose not in _KEPT:
                return RecordedAnswer(n, attempt, None)
            return RecordedAnswer(n, attempt, [*said, *self._whole(n, attempt)])
        partial = self._partial(n)
        if partial is not None:
            said.append(WholeDelta(partial.content))
        if attempt.error is None:
            return RecordedAnswer(n, attempt, said)
        if attempt.ended == "incomplete" and partial is None:
            said.append(_LOST)
        return RecordedAnswer(n, attempt, said, self._failure(n, attempt))

    def _whole(self, n: int, attempt: ModelAttempted) -> Sequence[Delta]:
        """The message that came of the call, or an empty one, or a refusal without a word."""
        for later in self._until_next_attempt(n):
            if isinstance(later, MessageAdded) and later.purpose is attempt.purpose:
                return _whole(later.message)
            if isinstance(later, RunFinished) and later.outcome is Outcome.REFUSED:
                return [StopDelta(StopReason.REFUSAL, later.text)]
            if isinstance(later, RunFinished):
                return [StopDelta(StopReason.END)]
        return [*((_LOST,) if self._is_cut_off(n) else ()), StopDelta(StopReason.END)]

    def _is_cut_off(self, n: int) -> bool:
        """Whether the process died before anything else was asked."""
        for record in self.records[n + 1 :]:
            if isinstance(record, (ModelAttempted, Activated)):
                return isinstance(record, Activated)
        return True

    def _partial(self, n: int) -> AssistantMessage | None:
        drafts = [r for r in self._until_next_attempt(n) if isinstance(r, DraftInterrupted)]
        before = self.records[n - 1] if n else None
        if isinstance(before, DraftInterrupted) and before.reason == "cancelled":
            return before.partial
        return drafts[0].partial if drafts and drafts[0].reason != "cancelled" else None

    def _failure(self, n: int, attempt: ModelAttempted) -> ModelError:
        """The failure; where its category is not recorded, of one that explains what followed."""
        if attempt.category is not None:
            return ModelError(attempt.error or "", category=attempt.category)
        category = ErrorCategory.BAD_REQUEST
        following = next((r for r in self.records[n + 1 :] if isinstance(r, ModelAttempted)), None)
        ended = any([isinstance(r, RunFinished) for r in self._until_next_attempt(n)])
        if attempt.ended == "incomplete":
            category = ErrorCategory.NETWORK
        elif following is not None and not ended:
            if following.purpose is Purpose.COMPACTION:
                category = ErrorCategory.CONTEXT_OVERFLOW
            elif following.model == attempt.model:
                category = ErrorCategory.OVERLOADED
            else:
                category = ErrorCategory.QUOTA
        return ModelError(attempt.error or "", category=category)

    def _until_next_attempt(self, n: int) -> Iterator[Record]:
        for record in self.records[n + 1 :]:
            if isinstance(record, (ModelAttempted, Activated)):
                return
            yield record

    # -- the tools -------------------------------------------------------------------------------

    def call(self, call_id: str, attempt: int) -> RecordedCall:
        """How this execution of the call ended; attempts count from 0."""
        started = -1
        for n, record in enumerate(self.records):
            if isinstance(record, ToolStarted) and record.call_id == call_id:
                started += 1
                if started == attempt:
                    return self._ended(n, call_id, attempt)
        return RecordedCall("not_run")

    def _ended(self, start: int, call_id: str, attempt: int) -> RecordedCall:
        asked: dict[int, Approval] = {}
        for n, record in enumerate(self.records[start + 1 :], start + 1):
            match record:
                case ToolFinished(call_id=id, attempt=number) if (id, number) == (call_id, attempt):
                    return self._finished(n, record)
                case ApprovalRequested(approval=approval) if approval.call_id == call_id:
                    asked[n] = approval
                case ToolStarted(call_id=id) if id == call_id:  # it was entered again
                    return _asked(asked)
                case Observed(call_id=id) if id == call_id:
                    break
                case Activated() if not asked:
                    break
                case _:
                    pass
        return _asked(asked) if asked else RecordedCall("cut_off")

    def _finished(self, n: int, finished: ToolFinished) -> RecordedCall:
        """A tool may end the run with its words; nothing but the closing of the run follows."""
        seen = finished.observation
        for end, record in enumerate(self.records[n + 1 :], n + 1):
            if isinstance(record, RunFinished):
                said = record.text or STOPPED
                if record.outcome is Outcome.STOPPED and seen.text == said:
                    return RecordedCall("stopped", end, seen, stop=record)
            if not isinstance(record, _CLOSING):
                break
        return RecordedCall("finished", n, seen)


def _whole(message: AssistantMessage) -> list[Delta]:
    return [WholeDelta(message.content), StopDelta(message.stop_reason, message.stop_detail)]


def _asked(asked: dict[int, Approval]) -> RecordedCall:
    return RecordedCall("asked", min(asked, default=None), asked=tuple(asked.values()))
