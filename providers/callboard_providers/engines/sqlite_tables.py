"""The tables that an engine adds to a file of `SqliteJournal`, and looking at a file's health."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from callboard.errors import JournalDamaged
from callboard.journaling.sqlite_file import DAMAGED, code_of, fault_of, opened

VERSION = 1  # of these tables
CHECKED_BYTES = 256_000_000  # larger files are not read through when they are opened

_TABLES = """
CREATE TABLE IF NOT EXISTS engine (version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS inbox (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, address TEXT NOT NULL,
    kind TEXT NOT NULL, shard INTEGER NOT NULL, control INTEGER NOT NULL, due REAL,
    attempts INTEGER NOT NULL, suspect INTEGER NOT NULL, letter TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS inbox_address ON inbox (address, n);
CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS seen_at ON seen (at);
CREATE TABLE IF NOT EXISTS answer (
    letter_id TEXT PRIMARY KEY, at REAL NOT NULL, final INTEGER NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answer_at ON answer (at);
CREATE TABLE IF NOT EXISTS actor (
    address TEXT PRIMARY KEY, kind TEXT NOT NULL, shard INTEGER NOT NULL, standing TEXT NOT NULL,
    arguments TEXT, changed_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS actor_running ON actor (kind, shard) WHERE standing = 'running';
CREATE TABLE IF NOT EXISTS node (
    name TEXT PRIMARY KEY, until REAL NOT NULL, kinds TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (
    kind TEXT NOT NULL, shard INTEGER NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (kind, shard)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS topic (
    n INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, address TEXT NOT NULL,
    UNIQUE (topic, address)
);
CREATE TABLE IF NOT EXISTS dead (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, address TEXT NOT NULL,
    reason TEXT NOT NULL, error TEXT, at REAL NOT NULL, letter TEXT NOT NULL
);
"""


def engine_file(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection for writing, with the engine's tables made where they are missing.

    Raises:
        ConfigurationError: nothing can be opened there, or it is another program's database.
        JournalDamaged: it is damaged, or a newer callboard wrote it.
    """
    connection = opened(path)
    try:
        _check_health(connection, path)
        _make_tables(connection, path)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    except sqlite3.Error as error:
        connection.close()
        raise JournalDamaged(fault_of(error, path)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_health(connection: sqlite3.Connection, path: Path) -> None:
    """Read the whole of a file that is not too large, before anything is written to it."""
    if path.stat().st_size > CHECKED_BYTES:
        return
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        if code_of(error) in DAMAGED:
            found = str(error)
        else:
            raise
    if found != "ok":
        told = " ".join(found.split())
        raise JournalDamaged(
            f"{path} is damaged ({told}); bring a backup back, or try: sqlite3 FILE .recover"
        )


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in _TABLES.split(";\n"):
            connection.execute(statement)
        row = connection.execute("SELECT version FROM engine").fetchone()
        if row is None:
            connection.execute("INSERT INTO engine VALUES (?)", (VERSION,))
        elif row[0] > VERSION:
            raise JournalDamaged(
                f"{path} has engine version {row[0]}, and this callboard reads up to version"
                f" {VERSION}: install the newer callboard that wrote it"
            )
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
