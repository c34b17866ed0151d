"""Checks an audit: nothing in it was changed, dropped, reordered, doubled or cut off.

Pure but for `read_trail`. The console's `callboard audit verify` tells what comes of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from callboard.errors import ConfigurationError
from callboard.json_text import canonical
from callboard_mixins.audit.chain import (
    NOTHING,
    TRAIL,
    VERSION,
    Checks,
    Link,
    hash_of,
    head_data,
    line_data,
    read_entry,
    read_head,
)
from callboard_mixins.audit.json_lines_trail import HEAD

SEAL = ("hash", "signature")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and with which line of the file (from 1; 0 for the head)."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Trail:
    """A trail as it was read: its lines, and its head as text where there is one."""

    lines: tuple[str, ...]
    head: str | None
    is_torn: bool = False  # the last line has no end


@dataclass(frozen=True, slots=True)
class Verification:
    """What a check found. `fault` is the first bad line; notes are no faults."""

    entries: tuple[Mapping[str, Any], ...]
    head: Link
    fault: Fault | None = None
    notes: tuple[str, ...] = ()

    @property
    def agents(self) -> Mapping[str, int]:
        """How many entries each agent has."""
        return Counter([str(entry["agent"]) for entry in self.entries])


def read_trail(path: str | os.PathLike[str]) -> Trail:
    """The lines and the head of a file of either kind. Opened for reading only.

    Raises:
        ConfigurationError: it cannot be read, or is no audit.
    """
    file = Path(path)
    try:
        if _is_database(file):
            return _read_table(file)
        data = file.read_bytes()
        if data.startswith(b"SQLite format 3\0"):
            raise ConfigurationError(f"{file} is no audit: a database that SQLite cannot read")
        head = Path(f"{file}{HEAD}")
        text = head.read_text(errors="replace").split("\n")[0] if head.exists() else ""
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except sqlite3.Error as error:
        raise ConfigurationError(f"{file} is no audit: {error}") from None
    lines = data.decode(errors="surrogateescape").split("\n")
    torn = lines.pop() if lines else ""
    return Trail((*lines, torn) if torn else tuple(lines), text or None, is_torn=bool(torn))


def _is_database(file: Path) -> bool:
    """Asks SQLite, as reading the file here would drop the locks of a trail that this process has
    open (see journaling/sqlite_file.py).
    """
    try:
        with closing(_reading(file)) as connection:
            return bool(connection.execute("PRAGMA schema_version").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            return False
        raise


def _reading(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)


def _read_table(file: Path) -> Trail:
    with closing(_reading(file)) as connection:
        rows = connection.execute("SELECT entry, text FROM audit ORDER BY entry").fetchall()
        head = connection.execute("SELECT text FROM head").fetchone()
    lines = [text if isinstance(text, str) else "" for _, text in rows]
    return Trail(tuple(lines), None if head is None else head[0])


@dataclass(slots=True)
class _Walk:
    """One way down a trail, from the first line to the last."""

    key: Checks | None
    above: Link = NOTHING
    agents: dict[str, Link] = field(default_factory=dict[str, Link])
    entries: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    hashes: dict[int, str] = field(default_factory=dict[int, str])

    def problem_of(self, text: str) -> str | None:
        """What is wrong with the next line; None: it belongs there."""
        entry = read_entry(text)
        if entry is None:
            return "this is no whole entry"
        bare = {name: value for name, value in entry.items() if name not in SEAL}
        if entry.get("v") != VERSION:
            return f"version {entry.get('v')!r} is not {VERSION}"
        if entry.get("hash") != hash_of(canonical(bare)):
            return "it was changed: its hash is another one"
        if entry.get("entry") != self.above.number + 1:
            return (
                f"entry {entry.get('entry')!r} stands where entry {self.above.number + 1} belongs"
            )
        if entry.get("above") != self.above.hash:
            return "it does not follow the line above: one of them was changed"
        previous = self.agents.get(entry["agent"], NOTHING)
        if (entry.get("n"), entry.get("previous")) != (previous.number + 1, previous.hash):
            return f"it does not follow the entry before it of {entry['agent']}"
        signature = entry.get("signature")
        if self.key is not None and not (
            isinstance(signature, str) and self.key.fits(signature, line_data(entry["hash"]))
        ):
            return "its signature is missing or not by this key"
        self._take(entry)
        return None

    def _take(self, entry: Mapping[str, Any]) -> None:
        self.above = Link(entry["entry"], entry["hash"])
        self.agents[entry["agent"]] = Link(entry["n"], entry["hash"])
        self.hashes[entry["entry"]] = entry["hash"]
        self.entries.append(entry)

    def notes_torn(self, text: str) -> bool:
        """Whether the next line, the last one taken, tells of this torn one above it."""
        last = self.entries[-1]
        digest = sha256(text.encode(errors="surrogateescape")).hexdigest()
        own = last["agent"] == TRAIL and last["kind"] == "torn"
        return bool(own and last["facts"].get("sha256") == digest)


def verify(trail: Trail, *, key: Checks | None = None, anchor: Link | None = None) -> Verification:
    """Check a trail. `anchor` is a head that was noted elsewhere, earlier.

    Without a key this finds whatever does not make the whole chain anew. With it, nobody without
    the private key can make a chain that passes. What is cut off at the end is found by the head,
    by an anchor, or against the journal.
    """
    walk = _Walk(key)
    notes: list[str] = []
    fault = _walked(trail, walk, notes)
    if key is None and any("signature" in entry for entry in walk.entries):
        notes.append("it is signed, and nobody checked by whom: give the public key")
    if fault is None:
        fault = _head_fault(trail, walk, notes)
    if fault is None and anchor is not None:
        fault = _anchor_fault(walk, anchor)
    return Verification(tuple(walk.entries), walk.above, fault, tuple(notes))


def _walked(trail: Trail, walk: _Walk, notes: list[str]) -> Fault | None:
    torn: tuple[int, str] | None = None
    for number, text in enumerate(trail.lines, 1):
        problem = walk.problem_of(text)
        if problem is None and torn is not None and not walk.notes_torn(torn[1]):
            return Fault(torn[0], "this is no whole entry, and the next one says nothing of it")
        if problem is None:
            torn = None
        elif torn is None and read_entry(text) is None and number < len(trail.lines):
            torn = number, text
        elif number == len(trail.lines) and trail.is_torn and torn is None:
            notes.append(f"line {number} has no end: it was torn by a crash, or cut")
        else:
            return Fault(number, problem) if torn is None else Fault(torn[0], "no whole entry")
    return None


def _head_fault(trail: Trail, walk: _Walk, notes: list[str]) -> Fault | None:
    if trail.head is None:
        if walk.entries:
            notes.append("there is no head: what was cut off at the end cannot be seen")
        return None
    try:
        head, signature = read_head(trail.head)
    except ConfigurationError as error:
        return Fault(0, str(error))
    if walk.key is not None and not (signature and walk.key.fits(signature, head_data(head))):
        return Fault(0, "the signature of the head is missing or not by this key")
    beyond = walk.above.number - head.number
    if beyond < 0:
        last = walk.above.number
        return Fault(
            len(trail.lines), f"this is entry {last}, the head says {head.number}: cut off"
        )
    if head.number and walk.hashes.get(head.number) != head.hash:
        return Fault(0, f"the head is not of entry {head.number}, which has another hash")
    if beyond > 1:
        return Fault(0, f"the head says {head.number} entries, and there are {walk.above.number}")
    if beyond:
        notes.append("the last entry is not under the head: the process ended between the two")
    return None


def _anchor_fault(walk: _Walk, anchor: Link) -> Fault | None:
    if anchor.number and walk.hashes.get(anchor.number) != anchor.hash:
        return Fault(
            min(anchor.number, walk.above.number),
            f"the anchor is entry {anchor.number}, hash {anchor.hash:.16}..., which is not here",
        )
    return None


@dataclass(frozen=True, slots=True)
class Twin:
    """A record of the journal as an audit sees it: its keyed digest, or None if it is not audited.

    `is_answer` says that it answers an approval or is the result of a refused call: such records
    may be written while the agent does not run (`callboard approvals`), past its layers.
    """

    digest: str | None
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of holding an audit against a journal. Notes are no faults."""

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compare(entries: Sequence[Mapping[str, Any]], twins: Sequence[Twin]) -> Comparison:
    """Hold one agent's entries against the records of its journal.

    An entry may be ahead of the journal: the process ended between the two. What a later entry
    with the same place replaced was never stored.
    """
    live: dict[int, Mapping[str, Any]] = {}
    for entry in entries:
        for place in [at for at in live if at >= entry["journal"]]:
            del live[place]
        live[entry["journal"]] = entry
    faults = [
        f"entry {entry['entry']} is not what the journal holds as record {place}"
        for place, entry in sorted(live.items())
        if place < len(twins) and twins[place].digest != entry["twin"]
    ]
    notes: list[str] = []
    first = min(live, default=0)
    for place, twin in enumerate(twins):
        if twin.digest is None or place < first or place in live:
            continue
        if twin.is_answer:
            notes.append(f"record {place} of the journal was written past the agent: an answer")
        else:
            faults.append(f"record {place} of the journal is not in the audit")
    return Comparison(tuple(faults), tuple(notes))
