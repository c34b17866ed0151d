"""Who owns which addresses of an engine's file: nodes, leases, and taking over."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from callboard.actors.address import Address
from callboard.actors.engine import Letter
from callboard.actors.shards import SHARDS, owner_of, shard_of
from callboard_providers.engines.sqlite_letters import COLUMNS, unpacked
from callboard_providers.engines.sqlite_nodes import Nodes

Shard = tuple[str, int]
OnLost = Callable[[Callable[[Address], bool]], None]


@dataclass(frozen=True, slots=True)
class Change:
    """What a renewal found and did. `unwanted` shards should go to somebody else.

    Of the shards that were taken: who is `running`, whose letters wait (`behind`), and letters
    that are not due yet. `last` is the number of the newest letter, `until` the end of the lease.
    """

    owned: frozenset[Shard]
    unwanted: frozenset[Shard]
    taken: frozenset[Shard]
    running: Sequence[Address]
    behind: Sequence[Address]
    timers: Sequence[tuple[int, Letter]]
    last: int
    until: float


def renew(
    connection: sqlite3.Connection,
    *,
    name: str,
    kinds: Sequence[str],
    until: float,
    keep: frozenset[Shard],
    leaving: Collection[Shard],
    in_hand: Collection[Address],
    locks: Nodes,
) -> Change:
    """Renew a node, give shards back where nobody is at work, and take those of its share that
    nobody owns. `keep` are those that it holds, `in_hand` the addresses whose letters it has.

    Raises:
        CommitFailed: it could not show that it lives.
    """
    locks.hold(name)
    given_back = {one for one in leaving if not _is_at_work(connection, one, in_hand)}
    keep -= given_back
    nodes = _live(connection, locks)
    nodes[name] = frozenset(kinds)
    connection.execute(
        "INSERT OR REPLACE INTO node VALUES (?, ?, ?)", (name, until, json.dumps(list(kinds)))
    )
    connection.executemany(
        "DELETE FROM lease WHERE kind = ? AND shard = ? AND owner = ?",
        [(kind, shard, name) for kind, shard in given_back],
    )
    leases = _leases(connection)
    owned, unwanted, taken, orphans = set[Shard](), set[Shard](), set[Shard](), set[Shard]()
    for kind in kinds:
        candidates = [one for one, served in nodes.items() if kind in served]
        for number in range(SHARDS):
            shard, holder = (kind, number), leases.get((kind, number))
            wanted = owner_of(kind, number, candidates) == name
            if holder == name and shard in keep:
                owned.add(shard)
                if not wanted:
                    unwanted.add(shard)
            elif wanted and (holder is None or holder == name or holder not in nodes):
                taken.add(shard)
                if holder is not None:
                    orphans.add(shard)
    _take(connection, name, taken, orphans)
    return Change(
        frozenset(owned | taken),
        frozenset(unwanted),
        frozenset(taken),
        _running(connection, taken),
        *_waiting(connection, taken),
        _last(connection),
        until,
    )


def _is_at_work(connection: sqlite3.Connection, shard: Shard, in_hand: Collection[Address]) -> bool:
    """Whether somebody of a shard runs, or has a letter and does not wait for a human.

    Letters that are held back behind a question may wait for days; the next owner holds them too.
    """
    if _running(connection, [shard]):
        return True
    query = "SELECT 1 FROM actor WHERE address = ? AND standing = 'waiting'"
    return any(
        connection.execute(query, (str(one),)).fetchone() is None
        for one in set(in_hand)
        if (one.type, shard_of(one)) == shard
    )


def _live(connection: sqlite3.Connection, locks: Nodes) -> dict[str, frozenset[str]]:
    """The workers whose lease has not run out and whose process has not ended."""
    connection.execute("DELETE FROM node WHERE until <= ?", (time.time(),))
    dead = [
        row
        for row in connection.execute("SELECT name FROM node").fetchall()
        if locks.is_dead(row[0])
    ]
    connection.executemany("DELETE FROM node WHERE name = ?", dead)
    rows = connection.execute("SELECT name, kinds FROM node").fetchall()
    return {name: frozenset(json.loads(kinds)) for name, kinds in rows}


def _leases(connection: sqlite3.Connection) -> dict[Shard, str]:
    rows = connection.execute("SELECT kind, shard, owner FROM lease").fetchall()
    return {(kind, shard): owner for kind, shard, owner in rows}


def _take(
    connection: sqlite3.Connection,
    name: str,
    taken: Collection[Shard],
    orphans: Collection[Shard],
) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", [(*shard, name) for shard in taken]
    )
    connection.executemany(
        "UPDATE inbox SET suspect = 1 WHERE n IN (SELECT min(n) FROM inbox"
        " WHERE kind = ? AND shard = ? AND control = 0 AND due IS NULL GROUP BY address)",
        sorted(orphans),
    )


def _running(connection: sqlite3.Connection, shards: Collection[Shard]) -> list[Address]:
    query = "SELECT address FROM actor WHERE kind = ? AND shard = ? AND standing = 'running'"
    return [
        Address.parse(row[0])
        for shard in shards
        for row in connection.execute(query, shard).fetchall()
    ]


def _waiting(
    connection: sqlite3.Connection, shards: Collection[Shard]
) -> tuple[list[Address], list[tuple[int, Letter]]]:
    """Whose letters wait, and the letters that are not due yet."""
    if not shards:
        return [], []
    query = "SELECT DISTINCT kind, shard, address FROM inbox"
    rows = connection.execute(query).fetchall()
    behind = [Address.parse(address) for *shard, address in rows if tuple(shard) in shards]
    query = f"SELECT {COLUMNS}, kind, shard FROM inbox WHERE due > ?"
    rows = connection.execute(query, (time.time(),)).fetchall()
    return behind, [unpacked(row[:8]) for row in rows if tuple(row[8:]) in shards]


def _last(connection: sqlite3.Connection) -> int:
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'inbox'").fetchone()
    return 0 if row is None else int(row[0])


def leave(connection: sqlite3.Connection, name: str) -> None:
    """Give everything back."""
    connection.execute("DELETE FROM lease WHERE owner = ?", (name,))
    connection.execute("DELETE FROM node WHERE name = ?", (name,))


def count(connection: sqlite3.Connection, letter_id: str) -> None:
    connection.execute("UPDATE inbox SET attempts = attempts + 1 WHERE id = ?", (letter_id,))


def letters_after(connection: sqlite3.Connection, n: int, limit: int) -> list[tuple[int, Letter]]:
    query = f"SELECT {COLUMNS} FROM inbox WHERE n > ? ORDER BY n LIMIT ?"
    return [unpacked(row) for row in connection.execute(query, (n, limit)).fetchall()]


def letters_of(
    connection: sqlite3.Connection, addresses: Sequence[Address], limit: int
) -> list[list[tuple[int, Letter]]]:
    """For each address its oldest letters that are due, also those that are in hand."""
    query = (
        f"SELECT {COLUMNS} FROM inbox WHERE address = ? AND (due IS NULL OR due <= ?)"
        " ORDER BY n LIMIT ?"
    )
    now = time.time()
    return [
        [unpacked(row) for row in connection.execute(query, (str(one), now, limit)).fetchall()]
        for one in addresses
    ]
