"""Which records of a journal came from outside of the agent: from people, from a crash, a fork.

A replay gives these to the agent at the same points; the others the agent has to make itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callboard.journaling.forking import FORKED
from callboard.journaling.records import (
    Activated,
    ApprovalRequested,
    ApprovalResolved,
    Decided,
    DraftInterrupted,
    LayerFact,
    ModelAttempted,
    Observed,
    Prompted,
    Queued,
    Record,
    Repaired,
    RunFinished,
    RunStarted,
    Snapshot,
    Spent,
    ToolStarted,
    Withdrawn,
)
from callboard.resolving import WITHDRAWN
from callboard.tooling.tools import Effect

CANCELLED = "cancelled"  # the error of a run whose task was cancelled
_ALWAYS = (Queued, Withdrawn, Spent, Snapshot, Repaired)
_CLOSING = frozenset(
    {
        "approval_resolved",
        "draft_interrupted",
        "model_attempt",
        "observed",
        "spent",
        "tool_finished",
    }
)


class Given:
    """The records that are given: `groups` by the first of the records that belong together,
    `breaks` by where the agent was cut off (by a crash, a cancel, a fork), with where it or its
    heir went on.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        asked = [one.approval for one in records if isinstance(one, ApprovalRequested)]
        self._asked = {approval.id: approval for approval in asked}
        self.breaks = dict(_breaks(records))
        broken = {n for start, end in self.breaks.items() for n in range(start, end)}
        self.groups: dict[int, tuple[int, ...]] = {}
        self.numbers: set[int] = set()
        for n in range(len(records)):
            group = () if n in broken or n in self.numbers else self._group(n)
            if group:
                self.groups[n] = group
                self.numbers.update(group)

    def _group(self, n: int) -> tuple[int, ...]:
        """The given records that belong together from here on; none if the agent makes it."""
        record = self._records[n]
        if isinstance(record, _ALWAYS):
            return (n,)
        if not isinstance(record, ApprovalResolved):
            return ()
        closing = self._closing_of(n, record)
        if record.status == "withdrawn" and self._is_made(n, record):
            return ()
        return (n,) if closing is None else (n, closing)

    def _is_made(self, n: int, withdrawn: ApprovalResolved) -> bool:
        """Whether the agent closes a call that waits, and so withdraws what it asked."""
        call_id, at = self._asked[withdrawn.approval_id].call_id, n + 1
        while self._is_withdrawal(at):
            at += 1
        seen = self._records[at] if at < len(self._records) else None
        if not isinstance(seen, Observed) or seen.call_id != call_id:
            return False
        return seen.observation.text != (withdrawn.answer or WITHDRAWN)

    def _closing_of(self, n: int, answer: ApprovalResolved) -> int | None:
        """The record that closes the call together with this answer."""
        asked = self._asked[answer.approval_id]
        if answer.status in ("approved", "answered", "revoked") or asked.path:
            return None
        at = n + 1
        while answer.status == "withdrawn" and self._is_withdrawal(at):
            at += 1
        closing = self._records[at] if at < len(self._records) else None
        is_it = isinstance(closing, Observed) and closing.call_id == asked.call_id
        return at if is_it else None

    def _is_withdrawal(self, n: int) -> bool:
        record = self._records[n] if n < len(self._records) else None
        return isinstance(record, ApprovalResolved) and record.status == "withdrawn"

    def comes_meanwhile(self, n: int) -> bool:
        """Whether a given record came while a model was asked or a call decided: what is written
        behind that is next.
        """
        following = self.next_made(n)
        if isinstance(self._records[n], Spent):
            return False
        return following is not None and isinstance(
            self._records[following], (ModelAttempted, Decided, DraftInterrupted)
        )

    def comes_at_end(self, n: int) -> bool:
        """Whether a message came while the end of a run was written, so that it goes on."""
        following = self.next_made(n)
        record = None if following is None else self._records[following]
        return isinstance(record, Prompted) and "/more/" in record.prompt_id

    def comes_when_parked(self, n: int) -> bool:
        """Whether it is an interrupt of a run that was parked: the end says so."""
        record = self._records[n]
        if not isinstance(record, Queued) or record.lane != "control":
            return False
        end = self._end_of_run(n)
        return end is not None and end.error is not None and "parked" in end.error

    def next_made(self, n: int) -> int | None:
        """The next record that the agent makes, if the process lives so long."""
        for at in range(n, len(self._records)):
            if at in self.breaks:
                return None
            if at not in self.numbers:
                return at
        return None

    def _end_of_run(self, n: int) -> RunFinished | None:
        for record in self._records[n:]:
            if isinstance(record, (RunFinished, RunStarted)):
                return record if isinstance(record, RunFinished) else None
        return None


def _breaks(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    for n, record in enumerate(records):
        if isinstance(record, Activated):
            yield n, n + 1
        elif isinstance(record, LayerFact) and record.name == FORKED:
            yield int(record.payload["at"]) + 1, n + 1
        elif isinstance(record, RunFinished) and record.error == CANCELLED:
            yield _closing(records, n), n + 1


def _closing(records: Sequence[Record], end: int) -> int:
    """Where the closing of a cancelled run begins: a cancel leaves no other trace."""
    start = end
    while start and (records[start - 1].kind in _CLOSING or may_ride(records[start - 1])):
        start -= 1
    return start


def may_ride(record: Record) -> bool:
    """Whether the record is one that may be written with a later one, and no sooner."""
    is_pure = isinstance(record, ToolStarted) and record.effect is Effect.PURE
    return is_pure or isinstance(record, Decided)
