"""A journal that knows what will be written: it compares, and stops the run at a difference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import (
    ApprovalRequested,
    Decided,
    LayerFact,
    ModelAttempted,
    Observed,
    Record,
    ToolFinished,
    ToolStarted,
)
from callboard.journaling.transcript import fold
from callboard.testing.difference import Difference, Halted
from callboard.testing.given import Given, may_ride
from callboard.testing.likeness import Likeness

_RIDERS = frozenset({"model_attempt", "draft_interrupted", "decided", "tool_started", "spent"})
_MEASURED = (ModelAttempted, ToolFinished)


class Tape(InMemoryJournal):
    """The journal of a replay. Its agent writes; each record must be the next recorded one.

    What overlapping calls write may come in any order, as long as it is in order for each call.
    `stops` are the outcomes of tools that ended their run, which come when those of others have.
    `at` is the first recorded record that did not come yet.
    """

    __slots__ = (
        "_came",
        "_giving",
        "at",
        "difference",
        "given",
        "likeness",
        "measured",
        "moved",
        "recorded",
        "stops",
        "unrecorded",
    )

    def __init__(self, recorded: Sequence[Record], *, stops: Collection[int] = ()) -> None:
        super().__init__()
        self.stops = stops
        self.recorded = tuple(recorded)
        self.given = Given(self.recorded)
        self.likeness = Likeness()
        self.difference: Difference | None = None
        self.unrecorded: int | None = None  # the number of a model call without its answer
        self.measured: dict[int, Record] = {}  # by its place here, as it was recorded
        self.at = 0
        self.moved: Callable[[], None] = _nothing
        self._came: set[int] = set()
        self._giving: tuple[int, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing (more) to compare."""
        ended = self.difference is not None or self.unrecorded is not None
        return ended or self.at == len(self.recorded)

    @property
    def is_broken_off(self) -> bool:
        """Whether the recorded process ended here, or the recording did."""
        return self.is_over or self.at in self.given.breaks

    # -- what the agent writes -------------------------------------------------------------------

    def append_now(self, records: Sequence[Record], expected: int) -> None:
        giving, self._giving = self._giving, ()
        made = records[: len(records) - len(giving)]
        for place, record in enumerate(made, len(self)):
            self._match(record, place)
        for n in giving:
            self._pass(n)
        super().append_now(records, expected)

    def _match(self, record: Record, place: int) -> None:
        self.check_goes_on()
        n = self._counterpart(record)
        if n is None:
            self.differ(record, "the recorded agent did nothing more")
        elif n in self.given.breaks:
            raise Halted("the recorded process ended here")
        else:
            detail = self.likeness.difference(self.recorded[n], record)
            if detail is not None:
                self.differ(record, detail, number=n)
            if isinstance(record, _MEASURED):
                self.measured[place] = self.recorded[n]
            self._pass(n)

    def _counterpart(self, record: Record) -> int | None:
        """The number of the record that this one must be."""
        lane = lane_of(record)
        for n in range(self.at, len(self.recorded)):
            if n in self._came or n in self.given.numbers:
                continue
            other = None if n in self.given.breaks else lane_of(self.recorded[n])
            if n in self.given.breaks or other == lane or lane is None or other is None:
                return n
        return None

    def _pass(self, n: int) -> None:
        self._came.add(n)
        while self.at in self._came:
            self._came.discard(self.at)
            self.at += 1

    # -- what it is given ------------------------------------------------------------------------

    def due(self, *, before: int | None = None) -> tuple[int, ...]:
        """The next records to be given; with `before`, of those in front of that number."""
        if before is not None:
            waiting = [n for n in self.given.groups if self.at <= n < before]
            first = next((n for n in waiting if n not in self._came), None)
            return () if first is None else self.given.groups[first]
        group = self.given.groups.get(self.at, ())
        given = self.given
        later = group and (
            given.comes_meanwhile(self.at)
            or given.comes_at_end(self.at)
            or given.comes_when_parked(self.at)
        )
        return () if later else group

    def due_at_end(self) -> tuple[int, ...]:
        """What came while the end of the run was written."""
        is_due = self.at in self.given.groups and self.given.comes_at_end(self.at)
        return self.given.groups[self.at] if is_due else ()

    def due_behind_riders(self, *, before: int | None = None) -> tuple[int, ...]:
        """What was written together with records that the agent still holds back."""
        for n in range(self.at, len(self.recorded) if before is None else before):
            if n in self.given.groups and n not in self._came:
                return self.given.groups[n]
            if n not in self._came and self.recorded[n].kind not in _RIDERS:
                return ()
        return ()

    def giving(self, numbers: tuple[int, ...]) -> list[Record]:
        """These records in the ids of this run; the next append ends with them."""
        self._giving = numbers
        return [self.likeness.translated(self.recorded[n]) for n in numbers]

    def take_up(self) -> None:
        """Go on behind a break, as the next process did."""
        end = self.given.breaks[self.at]
        numbers = range(self.at, end)
        records = [self.likeness.translated(self.recorded[n]) for n in numbers]
        super().append_now(records, len(self))
        for n in numbers:
            self._pass(n)

    # -- where it ends ---------------------------------------------------------------------------

    def check_asks_now(self, number: int) -> None:
        """The model is asked, and this is the record of the answer."""
        self.check_goes_on()
        for n in range(self.at, number):
            if n in self.given.breaks:
                raise Halted("the recorded process ended here")
            is_made = n not in self._came and n not in self.given.numbers
            if is_made and self.recorded[n].kind not in _RIDERS:
                self.differ("the model is asked", "it was not asked before this", number=n)

    def place_of_decision(self, call_id: str) -> int:
        """The number of the record that tells what was decided of this call, if one does."""
        for n in range(self.at, len(self.recorded)):
            if n in self.given.breaks:
                break
            if n not in self._came and lane_of(self.recorded[n]) == call_id:
                return n if isinstance(self.recorded[n], Decided) else self.at
        return self.at

    def halt_unrecorded(self, number: int) -> NoReturn:
        """The answer of this call is in no record, so nothing behind it can be compared."""
        self.unrecorded = number
        raise Halted("the replay has ended")

    def is_decided_otherwise(self, call_id: str) -> bool:
        """Whether the recorded call went another way than into its tool."""
        for n in range(self.at, len(self.recorded)):
            if n in self.given.breaks:
                return False
            if n not in self._came and lane_of(self.recorded[n]) == call_id:
                return True
        return False

    def holds_back(self, number: int, call_id: str, *, stops: bool) -> bool:
        """Whether a call must not end yet, as others wrote before it did.

        A tool that stopped the run waits for what its siblings still began and ended.
        """
        for n in range(self.at, min(number, len(self.recorded))):
            if n in self.given.breaks:
                return False
            record = self.recorded[n]
            if n in self._came or n in self.given.numbers or lane_of(record) == call_id:
                continue
            if may_ride(record) or n in self.stops:
                continue
            if not stops or isinstance(record, (ToolStarted, ToolFinished)):
                return True
        return False

    def check_goes_on(self) -> None:
        if self.difference is not None or self.unrecorded is not None:
            raise Halted("the replay has ended")

    def differ(self, happened: Record | str, detail: str, *, number: int | None = None) -> NoReturn:
        """Note the first difference, and stop the agent."""
        self.note(happened, detail, number=number)
        raise Halted("the replay has ended")

    def note(self, happened: Record | str, detail: str, *, number: int | None = None) -> None:
        """Note the first difference. Behind a recording that was cut off there is none."""
        n = self.at if number is None else number
        recorded = self.recorded[n] if n < len(self.recorded) else None
        if recorded is not None or self._is_closed:
            self.difference = self.difference or Difference(n, recorded, happened, detail)

    @property
    def _is_closed(self) -> bool:
        """Whether the recorded agent was done, and not cut off with the recording."""
        return fold(self.recorded).run is None


def lane_of(record: Record) -> str | None:
    """Whose order the record keeps: that of a call or of a layer; None for that of the run."""
    match record:
        case (
            ToolStarted(call_id=id)
            | ToolFinished(call_id=id)
            | Observed(call_id=id)
            | Decided(call_id=id)
        ):
            return id
        case ApprovalRequested(approval=approval):
            return approval.call_id
        case LayerFact(name=name):
            return f"layer {name}"
        case _:
            return None


def _nothing() -> None:
    """Nobody looks on."""
