"""Journals that take their time, fail, and die with their process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio

from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import ApprovalRequested, ApprovalResolved, Record
from callboard.journaling.sqlite_file import entries
from callboard.journaling.sqlite_journal import SqliteJournal
from tests.framework.histories.history import Fault, History
from tests.framework.kit import SlowJournal


class FaultyJournal(SlowJournal):
    """Each append takes two moments; some fail, before or after they have written."""

    def __init__(self, records: Sequence[Record], *, moment_s: float) -> None:
        super().__init__(records, moment_s=moment_s)
        self.faults: dict[int, bool] = {}
        self.appends = 0
        self.failures = 0

    def expect(self, faults: Sequence[Fault]) -> None:
        self.faults = {fault.append: fault.written for fault in faults}

    async def append(self, records: Sequence[Record], expected: int) -> None:
        self.appends += 1
        written = self.faults.pop(self.appends, None)
        if written is None:
            await super().append(records, expected)
            return
        await anyio.sleep(self.moment_s)
        if written:
            self.inner.append_now(records, expected)
        self.failures += 1
        raise OSError("the disk is full")


class FileJournal(SqliteJournal):
    """The real thing, in a real file."""

    @property
    def records(self) -> Sequence[Record]:
        return [decode(entry.record) for entry in entries(self.path, self.address)]


AnyJournal = InMemoryJournal | FaultyJournal | FileJournal


def journal_of(
    history: History, file: Path | None, records: Sequence[Record], *, address: str = "agent/agent"
) -> AnyJournal:
    """The journal of the next life. In a file it finds the records by itself."""
    if file is not None:
        return FileJournal(file, address=address, synchronous="NORMAL")
    if history.moment_s is None:
        return InMemoryJournal(records)
    return FaultyJournal(records, moment_s=history.moment_s)


def from_disk(records: Sequence[Record]) -> list[Record]:
    """The records as another process reads them."""
    return [decode(encode(record)) for record in records]


def expired(records: Sequence[Record], ids: set[str]) -> list[Record]:
    """The records as they are long after every question has expired. `ids` gets who asked."""
    late: list[Record] = []
    for record in records:
        if isinstance(record, ApprovalRequested):
            ids.add(record.approval.id)
            record = replace(record, approval=replace(record.approval, expires_at=1.0))
        late.append(record)
    answered = [r.approval_id for r in records if isinstance(r, ApprovalResolved)]
    ids.difference_update(answered)
    return late
