"""The state of an agent whose journal is a tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callboard.journaling.records import ModelAttempted, Record, ToolFinished
from callboard.journaling.transcript import State
from callboard.testing.tape import Tape


class TapedState(State):
    """The state of an agent on a tape: measured as it was recorded, and told of each commit."""

    __slots__ = ("_tape",)

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape
        super().apply(self._as_recorded(tape.records))

    def apply(self, records: Sequence[Record]) -> None:
        super().apply(self._as_recorded(records))
        self._tape.moved()

    def _as_recorded(self, records: Sequence[Record]) -> list[Record]:
        """With the seconds and the cost of then, which budgets look at."""
        return [self._timed(place, record) for place, record in enumerate(records, self.seq)]

    def _timed(self, place: int, record: Record) -> Record:
        match record, self._tape.measured.get(place):
            case ModelAttempted(), ModelAttempted(active_s=seconds, cost=cost):
                return replace(record, active_s=seconds, cost=cost)
            case ToolFinished(), ToolFinished(active_s=seconds):
                return replace(record, active_s=seconds)
            case _:
                return record
