"""Following a journal file while agents write it, for people who watch. Used by the console."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from callboard.errors import JournalDamaged
from callboard.journaling.sqlite_file import Entry, fault_of, opened

_COLUMNS = "SELECT rowid, address, n, at, kind, CAST(record AS BLOB) FROM journal"


@dataclass(frozen=True, slots=True)
class Followed:
    """One record as it stands in the file, and whose it is."""

    address: str
    entry: Entry


class Follower:
    """Reads what is new in a journal file, of one agent or of all, in the order of writing.

    Opens the file for reading only. Close it, or use it as a context manager.

    Raises:
        ConfigurationError, JournalDamaged: as `sqlite_file.opened`; so do its methods.
    """

    def __init__(self, path: str | Path, address: str | None = None) -> None:
        self._file = Path(path)
        self._address = address
        self._seen = 0  # a rowid: nothing is ever deleted, so they grow and have no gaps
        self._version = -1  # of what other connections have written
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def newest(self, count: int) -> list[Followed]:
        """The last `count` records, oldest first. What comes after them is news."""
        (self._seen,) = self._rows("SELECT coalesce(max(rowid), 0) FROM journal")[0]
        if self._address is None:
            found = self._rows(f"{_COLUMNS} WHERE rowid > ? ORDER BY rowid", self._seen - count)
            return self._taken(found)
        query = f"{_COLUMNS} WHERE address = ? AND rowid <= ? ORDER BY n DESC LIMIT ?"
        return self._taken(self._rows(query, self._address, self._seen, count)[::-1])

    def news(self) -> list[Followed]:
        """What was written since the last look, oldest first. Does not wait."""
        if not self._has_changed():
            return []
        query = f"{_COLUMNS} WHERE rowid > ?"
        if self._address is None:
            return self._taken(self._rows(f"{query} ORDER BY rowid", self._seen))
        # The sign keeps SQLite from going through all records of the address.
        query += " AND +address = ? ORDER BY rowid"
        return self._taken(self._rows(query, self._seen, self._address))

    def _open(self) -> None:
        """Nobody has the file open if it has no log; it is then read as it is, without a trace."""
        self._is_in_use = os.path.exists(f"{self._file}-wal")
        self._connection = opened(self._file, read_only=True)

    def _has_changed(self) -> bool:
        if not self._is_in_use:
            self.close()
            self._open()
            return True
        ((version,),) = self._rows("PRAGMA data_version")
        if version == self._version:
            return False
        self._version = version
        return True

    def _taken(self, rows: list[Any]) -> list[Followed]:
        if rows:
            self._seen = max(self._seen, rows[-1][0])
        return [Followed(address, Entry(*entry)) for _, address, *entry in rows]

    def _rows(self, query: str, *values: object) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise JournalDamaged(fault_of(error, self._file)) from error
