"""An audit as a table of an SQLite file that refuses changes, with its head in the same file."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from callboard.errors import CommitFailed, ConfigurationError
from callboard.journaling.sqlite_file import make_private, opening
from callboard.json_text import Json
from callboard_mixins.audit.chain import (
    NOTHING,
    Link,
    Signs,
    head_text,
    read_head,
)
from callboard_mixins.audit.trail import Chained, Clock, Sync, utc_now

APPLICATION = 0x43426175  # PRAGMA application_id: no other program's file is written to
BUSY_S = 5.0  # how long another writer may hold the file

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'an audit is only appended to'); END"
_TABLES = (
    "CREATE TABLE audit (entry INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE INDEX audit_by_agent ON audit (json_extract(text, '$.agent'), entry)",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL)",
    f"CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit {_REFUSE}",
    f"CREATE TRIGGER audit_stays BEFORE DELETE ON audit {_REFUSE}",
    f"PRAGMA application_id = {APPLICATION}",
)


class SqliteTrail(Chained):
    """Appends entries to a table. Entry and head are one transaction, so a crash tears nothing.

    Processes may share the file; one that finds it locked for 5 s gives up.

    Raises:
        ConfigurationError: the file cannot be opened, or is another program's.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: Signs | None = None,
        sync: Sync = "effects",
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(key=key, sync=sync, clock=clock)
        self._path = Path(path)
        try:
            with opening:
                make_private(self._path)
                self._connection = sqlite3.connect(
                    self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
                )
            weakref.finalize(self, self._connection.close)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"{self._path} is no audit to write to: {error}") from error

    def close(self) -> None:
        """Close the file. Nothing can be written after it."""
        with self._turn:
            self._connection.close()

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != APPLICATION and (application or tables):
                raise ConfigurationError(f"{self._path} is the database of another program")
            if not tables:
                for statement in _TABLES:
                    connection.execute(statement)
        finally:
            connection.execute("COMMIT")

    def _append(self, agent: str, body: Mapping[str, Json], *, durable: bool) -> str:
        try:
            return self._added(agent, body, durable=durable)
        except sqlite3.Error as error:
            raise CommitFailed(f"the audit could not be written: {self._path}: {error}") from error

    def _added(self, agent: str, body: Mapping[str, Json], *, durable: bool) -> str:
        connection = self._connection
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            text, head, _ = self._entry(agent, body, self._head(), self._last_of(agent))
            connection.execute("INSERT INTO audit VALUES (?, ?)", (head.number, text))
            told = head_text(head, self._key)
            connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?)", (told,))
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        return text

    def _head(self) -> Link:
        found = self._connection.execute("SELECT text FROM head").fetchone()
        return NOTHING if found is None else read_head(found[0])[0]

    def _last_of(self, agent: str) -> Link | None:
        query = (
            "SELECT json_extract(text, '$.n'), json_extract(text, '$.hash') FROM audit"
            " WHERE json_extract(text, '$.agent') = ? ORDER BY entry DESC LIMIT 1"
        )
        found = self._connection.execute(query, (agent,)).fetchone()
        return None if found is None else Link(*found)
