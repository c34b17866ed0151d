"""What is asked of an engine's file beside letters and commits."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from callboard.actors.address import Address
from callboard.actors.engine import (
    ActorEntry,
    DeadEntry,
    Letter,
    Standing,
    StoredAnswer,
    WorkerEntry,
)
from callboard.actors.shards import shard_of
from callboard.errors import CommitFailed, ConfigurationError, JournalDamaged
from callboard.journaling.record_codec import decode
from callboard.journaling.records import Record
from callboard.journaling.sqlite_file import DAMAGED, PRIVATE, code_of, fault_of, opened
from callboard_providers.engines.sqlite_commits import Written
from callboard_providers.engines.sqlite_letters import new_ones, put, unpacked

T = TypeVar("T")
SWEPT = 1_000  # rows that one sweep removes at most


class Reader:
    """A connection for reading, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = opened(path)
        self._limiter = anyio.CapacityLimiter(1)
        self._lock = Lock()

    async def read(self, query: Callable[..., T], *values: Any) -> T:
        """What a query finds.

        Raises:
            JournalDamaged: the file is. CommitFailed: it could not be read.
        """
        return await run_sync(self._read, query, values, limiter=self._limiter)

    def _read(self, query: Callable[..., T], values: tuple[Any, ...]) -> T:
        with self._lock:
            try:
                return query(self._connection, *values)
            except sqlite3.Error as error:
                kind = JournalDamaged if code_of(error) in DAMAGED else CommitFailed
                raise kind(f"{fault_of(error, self._path)}") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


# -- reading ---------------------------------------------------------------------------------------


def digest_key(connection: sqlite3.Connection) -> bytes:
    row = connection.execute("SELECT value FROM secret WHERE name = 'digest_key'").fetchone()
    if row is None:
        raise JournalDamaged("the file has lost its digest_key; bring a backup back")
    return bytes(row[0])


def answers(connection: sqlite3.Connection, letter_ids: Sequence[str]) -> list[StoredAnswer]:
    found: list[StoredAnswer] = []
    for letter_id in letter_ids:
        query = "SELECT body, final FROM answer WHERE letter_id = ?"
        row = connection.execute(query, (letter_id,)).fetchone()
        if row is not None:
            found.append(StoredAnswer(letter_id, json.loads(row[0]), bool(row[1])))
    return found


@dataclass(frozen=True, slots=True)
class News:
    """What other processes wrote. `members` changes when workers come, go or give back."""

    answers: Sequence[StoredAnswer]
    members: str


def news(connection: sqlite3.Connection, letter_ids: Sequence[str]) -> News:
    query = (
        "SELECT (SELECT count(*) FROM lease) || ' ' || (SELECT coalesce(group_concat(name), '')"
        " FROM (SELECT name FROM node ORDER BY name))"
    )
    (members,) = connection.execute(query).fetchone()
    return News(answers(connection, letter_ids), members)


def records(connection: sqlite3.Connection, address: Address, start: int) -> list[Record]:
    query = "SELECT n, CAST(record AS BLOB) FROM journal WHERE address = ? AND n >= ? ORDER BY n"
    found: list[Record] = []
    rows = connection.execute(query, (str(address), start)).fetchall()
    for expected, (n, record) in enumerate(rows, start):
        if n != expected:
            raise JournalDamaged(f"record {expected} of {address} is missing")
        try:
            found.append(decode(record))
        except JournalDamaged as error:
            raise JournalDamaged(f"record {n} of {address}: {error}") from error
    return found


def arguments(connection: sqlite3.Connection, address: Address) -> Mapping[str, Any] | None:
    query = "SELECT arguments FROM actor WHERE address = ?"
    row = connection.execute(query, (str(address),)).fetchone()
    return None if row is None or row[0] is None else json.loads(row[0])


def actors(
    connection: sqlite3.Connection, kind: str | None, after: Address | None, limit: int
) -> list[ActorEntry]:
    start = "" if after is None else str(after)
    query = """
        WITH known (address) AS (
            SELECT address FROM actor UNION SELECT address FROM inbox
            UNION SELECT address FROM journal
        )
        SELECT known.address, coalesce(actor.standing, 'idle'),
            (SELECT coalesce(max(n) + 1, 0) FROM journal WHERE address = known.address),
            (SELECT count(*) FROM inbox WHERE address = known.address),
            coalesce(actor.changed_at,
                (SELECT max(at) FROM journal WHERE address = known.address), 0.0)
        FROM known LEFT JOIN actor ON actor.address = known.address
        WHERE known.address > ? AND (? IS NULL OR known.address GLOB ? || '/*')
        ORDER BY known.address LIMIT ?"""
    text = None if kind is None else str(Address(kind, "x")).partition("/")[0]
    return [
        _entry(connection, row)
        for row in connection.execute(query, (start, text, text, limit)).fetchall()
    ]


def workers(connection: sqlite3.Connection) -> list[WorkerEntry]:
    found: list[WorkerEntry] = []
    query = "SELECT name, kinds FROM node WHERE until > ? ORDER BY name"
    for name, kinds in connection.execute(query, (time.time(),)).fetchall():
        shards: dict[str, list[int]] = {kind: [] for kind in json.loads(kinds)}
        owned = "SELECT kind, shard FROM lease WHERE owner = ? ORDER BY kind, shard"
        for kind, shard in connection.execute(owned, (name,)).fetchall():
            shards.setdefault(kind, []).append(shard)
        found.append(WorkerEntry(name, shards))
    return found


def _entry(connection: sqlite3.Connection, row: tuple[Any, ...]) -> ActorEntry:
    address = Address.parse(row[0])
    query = (
        "SELECT owner FROM lease JOIN node ON node.name = lease.owner"
        " WHERE kind = ? AND shard = ? AND until > ?"
    )
    owner = connection.execute(query, (address.type, shard_of(address), time.time())).fetchone()
    return ActorEntry(
        address, Standing(row[1]), row[2], row[3], row[4], None if owner is None else owner[0]
    )


def subscribers(connection: sqlite3.Connection, topic: str) -> list[Address]:
    query = "SELECT address FROM topic WHERE topic = ? ORDER BY n"
    return [Address.parse(row[0]) for row in connection.execute(query, (topic,)).fetchall()]


def dead(connection: sqlite3.Connection, after: int, limit: int) -> list[DeadEntry]:
    query = (
        "SELECT n, id, address, 0, NULL, 0, 0, letter, reason, error, at FROM dead"
        " WHERE n > ? ORDER BY n LIMIT ?"
    )
    rows = connection.execute(query, (after, limit)).fetchall()
    return [DeadEntry(*unpacked(row[:8]), *row[8:]) for row in rows]


# -- writing ---------------------------------------------------------------------------------------


def is_owned_elsewhere(connection: sqlite3.Connection, letter_id: str, own: Sequence[str]) -> bool:
    """Whether another process may have handed this letter out."""
    query = (
        "SELECT lease.owner FROM inbox JOIN lease USING (kind, shard) JOIN node"
        " ON node.name = lease.owner WHERE inbox.id = ? AND until > ?"
    )
    row = connection.execute(query, (letter_id, time.time())).fetchone()
    return row is not None and row[0] not in own


def spawn(connection: sqlite3.Connection, address: Address, text: str) -> bool:
    query = "SELECT arguments FROM actor WHERE address = ?"
    row = connection.execute(query, (str(address),)).fetchone()
    if row is not None and row[0] is not None:
        return False
    connection.execute(
        "INSERT INTO actor VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (address) DO UPDATE SET arguments = excluded.arguments",
        (str(address), address.type, shard_of(address), Standing.IDLE, text, time.time()),
    )
    return True


def subscribe(connection: sqlite3.Connection, topic: str, address: Address) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO topic (topic, address) VALUES (?, ?)", (topic, str(address))
    )


def unsubscribe(connection: sqlite3.Connection, topic: str, address: Address) -> None:
    connection.execute("DELETE FROM topic WHERE topic = ? AND address = ?", (topic, str(address)))


def bury(
    connection: sqlite3.Connection, letter: Letter, text: str, reason: str, error: str | None
) -> None:
    connection.execute("DELETE FROM inbox WHERE id = ?", (letter.id,))
    error = None if error is None else error.encode("utf-8", "backslashreplace").decode()
    connection.execute(
        "INSERT OR IGNORE INTO dead (id, address, reason, error, at, letter)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (letter.id, str(letter.to), reason, error, time.time(), text),
    )
    connection.execute("INSERT OR IGNORE INTO seen VALUES (?, ?)", (letter.id, time.time()))


def revive(connection: sqlite3.Connection, number: int, bound: int) -> Written | None:
    row = connection.execute(
        "SELECT n, id, address, 0, NULL, 0, 0, letter FROM dead WHERE n = ?", (number,)
    ).fetchone()
    if row is None:
        return None
    document = json.loads(row[7])
    document.pop("asked", None)
    document.pop("deadline", None)
    text = json.dumps(document, separators=(",", ":"))
    _, letter = unpacked((*row[:1], f"{row[1]}:revived:{number}", *row[2:7], text))
    sent = put(connection, new_ones(connection, [(letter, text)], bound))
    connection.execute("DELETE FROM dead WHERE n = ?", (number,))
    return Written(sent)


def drop(connection: sqlite3.Connection, number: int) -> bool:
    return connection.execute("DELETE FROM dead WHERE n = ?", (number,)).rowcount > 0


def sweep(connection: sqlite3.Connection, *, seen_s: float, answers_s: float) -> None:
    """Forget ids of letters that are done, and answers, that are so old; some at a time."""
    now = time.time()
    connection.execute(
        "DELETE FROM seen WHERE id IN (SELECT id FROM seen WHERE at < ? AND NOT EXISTS"
        " (SELECT 1 FROM inbox WHERE inbox.id = seen.id) LIMIT ?)",
        (now - seen_s, SWEPT),
    )
    connection.execute(
        "DELETE FROM answer WHERE letter_id IN (SELECT letter_id FROM answer WHERE at < ? LIMIT ?)",
        (now - answers_s, SWEPT),
    )


def backup(path: Path, target: Path) -> None:
    """Copy a file as it is now, for its owner only, while others write to it.

    Raises:
        ConfigurationError: there is something at `target`, or it cannot be written.
    """
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        raise ConfigurationError(f"{target} is there already; name a new file") from None
    except OSError as error:
        raise ConfigurationError(f"no backup at {target}: {error.strerror}") from error
    try:
        with closing(opened(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.execute("BEGIN")  # else each commit of others would begin the copy again
            source.execute("SELECT version FROM engine").fetchone()
            source.backup(copy)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise ConfigurationError(f"no backup of {path} at {target}: {error}") from error
