"""The file behind `SqliteJournal`: its tables, opening it with clear errors, looking into it."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from callboard.errors import CallboardError, CommitFailed, ConfigurationError, JournalDamaged

SCHEMA = 1  # PRAGMA user_version
APPLICATION = 0x43426A6C  # PRAGMA application_id: no other program's file is written to
BUSY_S = 30.0  # how long another program may hold the file

PRIVATE = 0o600
opening = Lock()  # nobody connects to a file while another thread makes it

BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

_JOURNAL = """
CREATE TABLE journal (
    address TEXT NOT NULL, n INTEGER NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL,
    record BLOB NOT NULL, PRIMARY KEY (address, n)
)"""
_SECRET = "CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL)"


@dataclass(frozen=True, slots=True)
class Entry:
    """One record as it stands in the file. `at` is in seconds since the epoch."""

    n: int
    at: float
    kind: str
    record: bytes


def opened(path: str | Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to a journal file, which is made (for its owner only) unless it is there.

    The connection commits by itself and may be used from any thread, by one at a time.

    Raises:
        ConfigurationError: nothing can be opened there, or it is another program's database.
        JournalDamaged: it is no database, is damaged, or a newer callboard wrote it.
    """
    file = Path(path)
    try:
        with opening:
            _check_place(file, read_only=read_only)
            return _prepared(file, read_only=read_only)
    except sqlite3.Error as error:
        if code_of(error) in DAMAGED:
            raise JournalDamaged(fault_of(error, file)) from error
        raise ConfigurationError(fault_of(error, file)) from error


def _check_place(file: Path, *, read_only: bool) -> None:
    """Make an empty private file, or say why that cannot be."""
    if str(file) == ":memory:":
        raise ConfigurationError("':memory:' outlives nothing; use InMemoryJournal()")
    if os.path.isdir(file):
        raise ConfigurationError(f"{file} is a folder; name a file in it: {file / 'agent.db'}")
    if read_only and not os.path.exists(file):
        raise ConfigurationError(f"there is no file {file}")
    if not os.path.isdir(file.parent):
        raise ConfigurationError(f"there is no folder {file.parent}; make it: mkdir -p")
    if not read_only:
        make_private(file)


def make_private(file: Path) -> None:
    """An empty file for its owner only, where there is none.

    One that exists is never opened here: closing any handle on a file drops all locks that the
    process holds on it, those of SQLite too, and another process would take the log for its own.
    Called with `opening` held.

    Raises:
        ConfigurationError: it cannot be made, or written to.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        if not os.access(file, os.R_OK | os.W_OK):
            raise ConfigurationError(f"{file} cannot be written: Permission denied") from None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error


def _prepared(file: Path, *, read_only: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(file.absolute()))}?{_mode(file, read_only=read_only)}",
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )
    try:
        if not _is_ours(connection, file):
            if read_only:
                raise ConfigurationError(f"{file} holds no journal")
            _make_tables(connection, file)
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(file: Path, *, read_only: bool) -> str:
    if not read_only:
        return "mode=rw"
    in_use = os.path.exists(f"{file}-wal")
    return "mode=ro" if in_use else "immutable=1"  # which leaves no files beside it


def _is_ours(connection: sqlite3.Connection, file: Path) -> bool:
    """Whether the tables are there. False: the file is empty."""
    application, version = (
        _number(connection, "application_id"),
        _number(connection, "user_version"),
    )
    if application != APPLICATION:
        if application or version or _count(connection, "sqlite_master"):
            raise ConfigurationError(f"{file} is the database of another program; name a new file")
        return False
    if version > SCHEMA:
        raise JournalDamaged(
            f"{file} has schema version {version}, and this callboard reads up to version"
            f" {SCHEMA}: install the newer callboard that wrote it"
        )
    return True


def _make_tables(connection: sqlite3.Connection, file: Path) -> None:
    _use_wal(connection, file)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ours(connection, file):  # another process may have been quicker
            connection.execute(_JOURNAL)
            connection.execute(_SECRET)
            key = secrets.token_bytes(32)
            connection.execute("INSERT INTO secret VALUES ('digest_key', ?)", (key,))
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
    finally:
        connection.execute("COMMIT")


def _use_wal(connection: sqlite3.Connection, file: Path) -> None:
    """Changing the mode does not wait for others by itself."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if code_of(error) not in BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
            continue
        if mode != "wal":
            raise ConfigurationError(f"{file}: this file system has no shared memory (WAL)")
        return


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(value)


def _count(connection: sqlite3.Connection, table: str) -> int:
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


def code_of(error: sqlite3.Error) -> int:
    """The primary result code of SQLite; 0 where the module itself refused."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def fault_of(error: sqlite3.Error, file: Path) -> str:
    """What went wrong with the file, and the remedy."""
    match code_of(error):
        case sqlite3.SQLITE_NOTADB:
            return f"{file} is no SQLite database; name a journal, or bring a backup back"
        case sqlite3.SQLITE_CORRUPT:
            return (
                f"{file} is damaged ({error}); bring a backup back, or try: sqlite3 FILE .recover"
            )
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{file} was locked by another program for {BUSY_S:.0f} s"
        case sqlite3.SQLITE_FULL:
            return f"{file} could not grow: the disk is full"
        case sqlite3.SQLITE_READONLY:
            return f"{file} cannot be written; to look into it: callboard journal show"
        case _:
            return f"{file}: {error}"


def unwritten(error: sqlite3.Error, file: Path) -> CallboardError:
    """What an append that failed raises."""
    return CommitFailed(f"the journal could not be written: {fault_of(error, file)}")


# -- looking into a file ---------------------------------------------------------------------------


def addresses(path: str | Path) -> dict[str, int]:
    """The agents of a file, and how many records each one has. Opens it for reading only.

    Raises:
        ConfigurationError, JournalDamaged: as `opened`.
    """
    found = _looked(path, "SELECT address, count(*) FROM journal GROUP BY address")
    return dict(found)


def entries(path: str | Path, address: str) -> Iterator[Entry]:
    """The records of one agent, undecoded. Opens the file for reading only.

    Raises:
        ConfigurationError, JournalDamaged: as `opened`.
    """
    query = "SELECT n, at, kind, CAST(record AS BLOB) FROM journal WHERE address = ? ORDER BY n"
    for row in _looked(path, query, address):
        yield Entry(*row)


def _looked(path: str | Path, query: str, *values: str) -> list[Any]:
    with closing(opened(path, read_only=True)) as connection:
        try:
            return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise JournalDamaged(fault_of(error, Path(path))) from error
