"""The journal of one address: an append-only log with an expected length, and one in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from callboard.errors import JournalConflict
from callboard.journaling.records import Record


class Journal(Protocol):
    """Where one agent's records are kept. The journal is the truth; state is a fold of it."""

    async def append(self, records: Sequence[Record], expected: int) -> None:
        """Add the records, all or none, if the journal holds exactly `expected` records.

        Raises:
            JournalConflict: if it holds another number: somebody else wrote.

        An exception or a cancellation leaves it open whether the records were written; the
        writer then reads back before it goes on.
        """
        ...

    async def read(self, start: int = 0) -> Sequence[Record]:
        """The records from number `start` on."""
        ...


class InMemoryJournal:
    """A journal that lives as long as the process. Appends at once, without a lock or a wait."""

    __slots__ = ("_records",)

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self._records: list[Record] = list(records)

    @property
    def records(self) -> Sequence[Record]:
        """All records, oldest first. The list is the journal's own: do not change it."""
        return self._records

    def append_now(self, records: Sequence[Record], expected: int) -> None:
        """As `append`, without a coroutine (a shield and a lock would cost 6 us a commit)."""
        kept = self._records
        if len(kept) != expected:
            raise JournalConflict(
                f"the journal holds {len(kept)} records and not {expected}: another "
                "agent writes to it; give each agent a journal of its own"
            )
        kept.extend(records)

    async def append(self, records: Sequence[Record], expected: int) -> None:
        self.append_now(records, expected)

    async def read(self, start: int = 0) -> Sequence[Record]:
        return self._records[start:]

    def __len__(self) -> int:
        return len(self._records)
