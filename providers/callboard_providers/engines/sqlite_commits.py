"""One commit of an address, as the statements of a transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing, StoredAnswer
from callboard.actors.shards import shard_of
from callboard.errors import Fenced, JournalConflict
from callboard.journaling.record_codec import encode
from callboard_providers.engines.sqlite_letters import new_ones, packed, put, take_out, text_of


@dataclass(frozen=True, slots=True)
class Written:
    """What a transaction did, for those who wait in this process."""

    sent: Sequence[tuple[int, Letter]] = ()
    done: Sequence[str] = ()
    answers: Sequence[StoredAnswer] = ()
    address: Address | None = None
    standing: Standing | None = None


class Packed:
    """A commit with everything as text: what is no JSON is refused before it waits for others."""

    __slots__ = ("answers", "bound", "commit", "owner", "records", "sends")

    def __init__(self, commit: Commit, *, bound: int, owner: str | None) -> None:
        self.commit = commit
        self.bound = bound
        self.owner = owner
        self.records = [(record.kind, encode(record)) for record in commit.records]
        self.sends = [(letter, packed(letter)) for letter in commit.sends]
        self.answers = [(one, text_of(one.body, what="an answer")) for one in commit.answers]


def keep(connection: sqlite3.Connection, packed: Packed) -> Written:
    """All of a commit.

    Raises:
        Fenced: it is of a worker that does not own the address (any more).
        JournalConflict, MailboxFull: as `Engine.commit`. Nothing was written.
    """
    commit, address = packed.commit, str(packed.commit.address)
    if packed.owner is not None:
        _check_owner(connection, commit.address, packed.owner)
    if packed.records:
        _check_length(connection, address, commit.expected)
    sends = new_ones(connection, packed.sends, packed.bound) if packed.sends else ()
    now = time.time()
    if packed.records:
        connection.executemany(
            "INSERT INTO journal VALUES (?, ?, ?, ?, ?)",
            [
                (address, n, now, kind, record)
                for n, (kind, record) in enumerate(packed.records, commit.expected)
            ],
        )
    if commit.done:
        take_out(connection, commit.address, commit.done)
    if commit.standing is not None or (packed.records and not commit.expected):
        _stand(connection, commit.address, commit.standing, now)
    sent = put(connection, sends) if sends else ()
    for answer, body in packed.answers:
        connection.execute(
            "INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?)",
            (answer.letter_id, now, answer.final, body),
        )
    return Written(sent, commit.done, commit.answers, commit.address, commit.standing)


def _check_owner(connection: sqlite3.Connection, address: Address, owner: str) -> None:
    query = "SELECT owner FROM lease WHERE kind = ? AND shard = ?"
    row = connection.execute(query, (address.type, shard_of(address))).fetchone()
    if row is None or row[0] != owner:
        raise Fenced(f"{address} is not this worker's (any more)")


def _check_length(connection: sqlite3.Connection, address: str, expected: int) -> None:
    query = "SELECT coalesce(max(n) + 1, 0) FROM journal WHERE address = ?"
    (length,) = connection.execute(query, (address,)).fetchone()
    if length != expected:
        raise JournalConflict(
            f"the journal of {address} holds {length} records and not {expected}: another process"
            " has taken this address over"
        )


def _stand(
    connection: sqlite3.Connection, address: Address, standing: Standing | None, now: float
) -> None:
    connection.execute(
        "INSERT INTO actor (address, kind, shard, standing, changed_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (address) DO UPDATE SET changed_at = excluded.changed_at"
        + (", standing = excluded.standing" if standing is not None else ""),
        (str(address), address.type, shard_of(address), standing or Standing.IDLE, now),
    )
