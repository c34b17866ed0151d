"""Letters as rows of an engine's file: written and read inside of somebody's transaction.

What raises here does so before it has written anything, so that others may share the transaction.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any

from callboard.actors.address import Address
from callboard.actors.engine import Letter
from callboard.actors.shards import shard_of
from callboard.errors import ConfigurationError, MailboxFull

Row = tuple[Any, ...]
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
COLUMNS = "n, id, address, control, due, attempts, suspect, letter"


def text_of(value: Any, *, what: str) -> str:
    """A value as JSON text.

    Raises:
        ConfigurationError: it is no JSON.
    """
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{what} {value!r:.100} is no JSON: {error}") from None


def _is_text(value: str) -> bool:
    """Whether it can be written: half a surrogate pair cannot."""
    return value.encode("utf-8", "replace").decode() == value


def packed(letter: Letter) -> str:
    """What has no column of its own, as JSON.

    Raises:
        ConfigurationError: the body is no JSON, or the id no text.
    """
    if not _is_text(letter.id):
        raise ConfigurationError(f"the id {letter.id!r:.100} of a letter is no Unicode text")
    document: dict[str, Any] = {"body": letter.body}
    if letter.sender is not None:
        document["sender"] = str(letter.sender)
    if letter.asked:
        document["asked"] = True
    if letter.chain:
        document["chain"] = [str(one) for one in letter.chain]
    if letter.deadline is not None:
        document["deadline"] = letter.deadline
    if letter.topic is not None:
        document["topic"] = letter.topic
    return text_of(document, what="the body of a letter")


def unpacked(row: Row) -> tuple[int, Letter]:
    """A letter and its number, from the COLUMNS of a row. What is damaged becomes its body."""
    n, *columns, text = row
    try:
        return n, _letter(columns, json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):  # whoever gets it buries it
        id, address, *_ = columns
        return n, Letter(id, Address.parse(address), {"unreadable": str(text)})


def _letter(columns: Sequence[Any], document: Any) -> Letter:
    id, address, control, due, attempts, suspect = columns
    sender = document.get("sender")
    return Letter(
        id,
        Address.parse(address),
        {**document["body"]},
        None if sender is None else Address.parse(sender),
        document.get("asked", False),
        tuple([Address.parse(one) for one in document.get("chain", ())]),
        document.get("deadline"),
        due,
        document.get("topic"),
        bool(control),
        attempts,
        bool(suspect),
    )


def takes_room(letter: Letter) -> bool:
    return not letter.control and letter.due is None


def new_ones(
    connection: sqlite3.Connection, letters: Sequence[tuple[Letter, str]], bound: int
) -> list[tuple[Letter, str]]:
    """Those that were not taken in before, and for which there is room. Only looks.

    Raises:
        MailboxFull: one of them finds no room.
    """
    found: dict[str, tuple[Letter, str]] = {}
    beside: dict[Address, int] = {}
    for letter, text in letters:
        if letter.id in found or _is_known(connection, letter.id):
            continue
        if takes_room(letter):
            beside[letter.to] = beside.get(letter.to, 0) + 1
        found[letter.id] = letter, text
    for address, count in beside.items():
        waiting = _waiting(connection, address)
        if waiting + count > bound:
            raise MailboxFull(f"the mailbox of {address} is full: {waiting} letters")
    return list(found.values())


def _is_known(connection: sqlite3.Connection, letter_id: str) -> bool:
    """Whether it was taken in before: ids are forgotten sooner than answers."""
    query = (
        "SELECT 1 FROM seen WHERE id = ? UNION ALL"
        " SELECT 1 FROM answer WHERE letter_id = ? AND final"
    )
    return connection.execute(query, (letter_id, letter_id)).fetchone() is not None


def _waiting(connection: sqlite3.Connection, address: Address) -> int:
    query = "SELECT count(*) FROM inbox WHERE address = ? AND control = 0 AND due IS NULL"
    (count,) = connection.execute(query, (str(address),)).fetchone()
    return int(count)


def put(
    connection: sqlite3.Connection, letters: Sequence[tuple[Letter, str]]
) -> list[tuple[int, Letter]]:
    """Put letters that are new into their mailboxes; their numbers rise with each commit."""
    now, placed = time.time(), list[tuple[int, Letter]]()
    for letter, text in letters:
        connection.execute("INSERT INTO seen VALUES (?, ?)", (letter.id, now))
        row = connection.execute(
            "INSERT INTO inbox (id, address, kind, shard, control, due, attempts, suspect, letter)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                letter.id,
                str(letter.to),
                letter.to.type,
                shard_of(letter.to),
                letter.control,
                letter.due,
                letter.attempts,
                letter.suspect,
                text,
            ),
        )
        placed.append((row.lastrowid or 0, letter))
    return placed


def take_out(connection: sqlite3.Connection, address: Address, ids: Iterable[str]) -> None:
    """Letters that are done leave the mailbox of this address."""
    connection.executemany(
        "DELETE FROM inbox WHERE id = ? AND address = ?", [(one, str(address)) for one in ids]
    )
