"""A journal in an SQLite file: an agent that is killed and started again goes on.

Several agents may share a file, each under its address, and several processes of one machine.
Not for network file systems.
"""

from __future__ import annotations

import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Literal, Self

import anyio
from anyio.to_thread import run_sync

from callboard.errors import CommitFailed, ConfigurationError, JournalConflict, JournalDamaged
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import Record
from callboard.journaling.sqlite_file import (
    BUSY,
    BUSY_S,
    DAMAGED,
    code_of,
    fault_of,
    opened,
    unwritten,
)

INLINE_S = 0.005  # where commits take longer, they are not made in the event loop's thread
SLICE_MS = 100  # how long a waiting commit is deaf to being withdrawn
CHECKPOINT_BYTES = 8_000_000  # written since the last checkpoint, which takes some 10 ms
ROWS = 1_000  # in one statement, which takes up to 32,766 values
PAGES_BYTES = 12_000  # what a small commit adds to the write-ahead log

Synchronous = Literal["FULL", "NORMAL"]


class _Append:
    """One append as one statement. `withdrawn` stops it if it has not begun."""

    __slots__ = ("expected", "length", "size_bytes", "values", "withdrawn")

    def __init__(self, address: str, records: Sequence[Record], expected: int) -> None:
        values: list[object] = []
        now, size_bytes = time.time(), PAGES_BYTES
        for n, record in enumerate(records, expected):
            text = encode(record)
            size_bytes += len(text)
            values += (address, n, now, record.kind, text)
        values += (address, expected)
        self.values = values
        self.size_bytes = size_bytes
        self.length = len(records)
        self.expected = expected
        self.withdrawn = False

    def parts(self, rows: int) -> Iterator[tuple[list[object], object, int]]:
        """The values of so many records each, with the address and the length before them."""
        *values, address, _ = self.values
        for start in range(0, self.length, rows):
            yield values[start * 5 : (start + rows) * 5], address, self.expected + start


class SqliteJournal:
    """The journal of one agent in an SQLite file. Opens it at once, which takes some 5 ms.

    `synchronous="FULL"` (the default): what is committed survives a power loss. With "NORMAL" it
    survives the death of the process, and a power loss can take the last commits, though never
    one without those after it: a tool with an effect may then run twice. It is several times
    faster on a real disk.

    `digest_key` is a random key that the file keeps, for approvals that outlive the process; the
    file is made for its owner only. Belongs to no event loop: use it from several `asyncio.run`
    calls, one after the other, and under trio. Close it, or use it as a context manager.

    Raises:
        ConfigurationError: nothing can be opened there, or it is another program's database.
        JournalDamaged: it is no database, is damaged, or a newer callboard wrote it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        address: str = "agent/agent",
        synchronous: Synchronous = "FULL",
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"synchronous={synchronous!r}: give 'FULL' or 'NORMAL'")
        if not address:
            raise ConfigurationError("address='' is no address; write it as 'type/key'")
        self.path = Path(path)
        self.address = address
        self._connection = opened(self.path)
        self._finalizer = weakref.finalize(self, self._connection.close)
        self._lock = Lock()  # of the connection; never waited for in the event loop's thread
        self._commit_s = 0.0  # what a commit takes, of late
        self._unfolded_bytes = _size_bytes(self.path.with_name(f"{self.path.name}-wal"))
        self._connection.execute(f"PRAGMA synchronous = {synchronous}")
        self._connection.execute("PRAGMA wal_autocheckpoint = 0")
        self.digest_key = self._read_key()

    def __repr__(self) -> str:
        return f"SqliteJournal({str(self.path)!r}, address={self.address!r})"

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
        """Close the file. Waits for an append that is being written."""
        with self._lock:
            self._finalizer()

    # -- append ----------------------------------------------------------------------------------

    async def append(self, records: Sequence[Record], expected: int) -> None:
        """As `Journal.append`.

        Commits at once where that is quick; in a thread where the file is busy, where
        commits are slow, and where a checkpoint is due. A cancelled append is whole or absent,
        and a `read` after it tells which.

        Raises:
            JournalConflict: somebody else wrote.
            CommitFailed: nothing was written; the text says why.
        """
        if self.append_at_once(records, expected):
            return
        append = _Append(self.address, records, expected)
        try:
            # a limiter of its own: other threads of the program never hold a commit up
            await run_sync(self._commit_in_thread, append, limiter=anyio.CapacityLimiter(1))
        except BaseException:
            append.withdrawn = True  # a native cancel left the thread alone
            raise

    def append_at_once(self, records: Sequence[Record], expected: int) -> bool:
        """As `append`, without a coroutine. False: nothing was written, as it takes waiting."""
        if not records:
            return True
        if self._commit_s > INLINE_S or self._unfolded_bytes > CHECKPOINT_BYTES:
            return False
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._commit(_Append(self.address, records, expected))
        finally:
            self._lock.release()

    def _commit_in_thread(self, append: _Append) -> None:
        with self._lock:
            until = time.monotonic() + BUSY_S
            self._patience(SLICE_MS)
            try:
                while not append.withdrawn and not self._commit(append):
                    if time.monotonic() > until:
                        raise CommitFailed(
                            f"the journal could not be written: {self.path} was locked by another"
                            f" program for {BUSY_S:.0f} s"
                        )
                self._checkpoint()
            finally:
                self._patience(0)

    def _commit(self, append: _Append) -> bool:
        """Write an append, all or nothing, in one statement. False: another program is writing."""
        begun = time.perf_counter()
        try:
            written = self._written(append)
        except sqlite3.Error as error:
            if code_of(error) in BUSY:
                return False
            raise unwritten(error, self.path) from error
        if written != append.length:
            raise JournalConflict(
                f"{self.path} holds {self._length()} records of {self.address} and not"
                f" {append.expected}: another process has taken this agent over, or another agent"
                " has the same address"
            )
        took_s = min(time.perf_counter() - begun, 3 * INLINE_S)
        self._commit_s = 0.75 * self._commit_s + 0.25 * took_s  # one slow commit is chance
        self._unfolded_bytes += append.size_bytes
        return True

    def _written(self, append: _Append) -> int:
        """How many records were written: all of the append, or none."""
        if append.length <= ROWS:
            return self._connection.execute(_insert(append.length), append.values).rowcount
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            written = sum(
                self._connection.execute(_insert(len(values) // 5), (*values, address, n)).rowcount
                for values, address, n in append.parts(ROWS)
            )
            self._connection.execute("COMMIT" if written == append.length else "ROLLBACK")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return written

    def _length(self) -> int:
        query = "SELECT coalesce(max(n) + 1, 0) FROM journal WHERE address = ?"
        (length,) = self._connection.execute(query, (self.address,)).fetchone()
        return int(length)

    def _patience(self, wait_ms: int) -> None:
        """How long statements wait for other programs; never in the event loop's thread."""
        self._connection.execute(f"PRAGMA busy_timeout = {wait_ms}")

    def _checkpoint(self) -> None:
        """Move the write-ahead log into the file where it has grown. Waits for nobody."""
        if self._unfolded_bytes > CHECKPOINT_BYTES:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._unfolded_bytes = 0

    # -- read ------------------------------------------------------------------------------------

    async def read(self, start: int = 0) -> Sequence[Record]:
        """As `Journal.read`, in a thread.

        Raises:
            JournalDamaged: names the record that cannot be read, or that is missing.
        """
        return await run_sync(self._records, start, limiter=anyio.CapacityLimiter(1))

    def _records(self, start: int) -> list[Record]:
        query = (
            "SELECT n, CAST(record AS BLOB) FROM journal WHERE address = ? AND n >= ? ORDER BY n"
        )
        with self._lock:
            found = self._select(query, (self.address, start))
        records: list[Record] = []
        for expected, (n, record) in enumerate(found, start):
            if n != expected:
                raise JournalDamaged(f"{self.path}: record {expected} of {self.address} is missing")
            records.append(self._decoded(n, record))
        return records

    def _decoded(self, n: int, record: bytes) -> Record:
        try:
            return decode(record)
        except JournalDamaged as error:
            raise JournalDamaged(f"{self.path}: record {n} of {self.address}: {error}") from error

    def _select(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        try:
            self._patience(round(BUSY_S * 1_000))
            found = self._connection.execute(query, values).fetchall()
            self._patience(0)
            return found
        except sqlite3.Error as error:
            kind = JournalDamaged if code_of(error) in DAMAGED else CommitFailed
            raise kind(f"the journal could not be read: {fault_of(error, self.path)}") from error

    def _read_key(self) -> bytes:
        found = self._select("SELECT value FROM secret WHERE name = 'digest_key'", ())
        if not found:
            raise JournalDamaged(f"{self.path} has lost its digest_key; bring a backup back")
        return bytes(found[0][0])


@cache
def _insert(rows: int) -> str:
    """Rows, if the address holds exactly the expected number: compare and append in one."""
    places = ", ".join(["(?, ?, ?, ?, ?)"] * rows)
    return (
        f"INSERT INTO journal SELECT * FROM (VALUES {places})"
        " WHERE (SELECT coalesce(max(n) + 1, 0) FROM journal WHERE address = ?) = ?"
    )


def _size_bytes(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
