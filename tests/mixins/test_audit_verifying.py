"""Verifying finds whatever was done to an audit, and names the first bad line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard_mixins import JsonLinesTrail, SqliteTrail
from callboard_mixins.audit.chain import Link, entry_text, head_text, read_entry
from callboard_mixins.audit.verifying import Trail, read_trail, verify
from tests.mixins.audit_kit import OTHER, PUBLIC, SIGNING, one_run, two_agents


@cache
def trail(*, signed: bool = False) -> Trail:
    """An audit of two agents, 21 entries."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "audit"
        two_agents(path, lambda path: JsonLinesTrail(path, key=SIGNING if signed else None))
        return read_trail(path)


COUNT = 21
places = st.integers(0, COUNT - 1)


def changed(lines: tuple[str, ...], at: int, *new: str) -> Trail:
    return replace(trail(), lines=(*lines[:at], *new, *lines[at + 1 :]))


def first_bad(given: Trail) -> int:
    found = verify(given)
    assert found.fault is not None
    return found.fault.line


def test_an_audit_that_nobody_touched_is_whole() -> None:
    found = verify(trail())
    assert (found.fault, found.notes, len(found.entries)) == (None, (), COUNT)


@settings(max_examples=300, deadline=None)
@given(places, st.data())
def test_a_changed_character_is_found_in_its_line(at: int, data: st.DataObject) -> None:
    line = trail().lines[at]
    place = data.draw(st.integers(0, len(line) - 1))
    letter = data.draw(st.characters(exclude_characters=line[place], max_codepoint=0x2FF))
    bad = line[:place] + letter + line[place + 1 :]
    assert first_bad(changed(trail().lines, at, bad)) == at + 1


@settings(max_examples=60, deadline=None)
@given(places)
def test_a_dropped_line_is_found(at: int) -> None:
    """The line that came to stand in its place is named; at the end, the head tells."""
    assert first_bad(changed(trail().lines, at)) == min(at + 1, COUNT - 1)


@settings(max_examples=60, deadline=None)
@given(places, places)
def test_a_copied_line_is_found(at: int, to: int) -> None:
    lines = trail().lines
    given = changed(lines, to, lines[to], lines[at])
    assert first_bad(given) == (to + 2 if at != to + 1 else to + 3)  # the second of the two


@settings(max_examples=100, deadline=None)
@given(st.lists(places, min_size=2, max_size=2, unique=True))
def test_swapped_lines_are_found(pair: list[int]) -> None:
    """Also those of different agents, whose own chains stay whole."""
    one, other = sorted(pair)
    lines = list(trail().lines)
    lines[one], lines[other] = lines[other], lines[one]
    assert first_bad(replace(trail(), lines=tuple(lines))) == one + 1


@settings(max_examples=60, deadline=None)
@given(places, st.data())
def test_an_audit_that_was_cut_off_is_found(size: int, data: st.DataObject) -> None:
    """In the middle of a line, too."""
    torn = trail().lines[size][: data.draw(st.integers(0, 30))]
    given = Trail((*trail().lines[:size], *([torn] if torn else [])), trail().head, bool(torn))
    fault = verify(given).fault
    assert fault is not None
    assert "cut off" in fault.text


@settings(max_examples=60, deadline=None)
@given(places, st.text("abcdef", min_size=1, max_size=5))
def test_a_fact_that_was_changed_with_its_hash_is_found(at: int, word: str) -> None:
    """Who makes one line anew breaks the next one, or the head."""
    entry = read_entry(trail().lines[at])
    assert entry is not None
    body = {key: entry[key] for key in ("kind", "run", "journal", "twin", "at")}
    above = Link(entry["entry"] - 1, entry["above"])
    previous = Link(entry["n"] - 1, entry["previous"])
    forged, _ = entry_text(
        {**body, "facts": {"call": word}},
        agent=entry["agent"],
        above=above,
        previous=previous,
        key=None,
    )
    assert verify(changed(trail().lines, at, forged)).fault is not None


def forged() -> Trail:
    """The whole chain made anew without two entries, and its head too."""
    above, previous = Link(0, "0" * 64), dict[str, Link]()
    lines: list[str] = []
    for text in (*trail().lines[:4], *trail().lines[6:]):
        entry = read_entry(text)
        assert entry is not None
        body = {key: entry[key] for key in ("kind", "run", "journal", "twin", "at", "facts")}
        last = previous.get(entry["agent"], Link(0, "0" * 64))
        line, hash = entry_text(body, agent=entry["agent"], above=above, previous=last, key=None)
        above, previous[entry["agent"]] = Link(above.number + 1, hash), Link(last.number + 1, hash)
        lines.append(line)
    return Trail(tuple(lines), head_text(above, None))


def test_a_whole_forgery_needs_a_key_or_an_anchor_to_be_found() -> None:
    """Said in the documentation: without either, nothing can tell."""
    assert verify(forged()).fault is None
    assert verify(forged(), key=PUBLIC).fault is not None
    assert verify(forged(), anchor=verify(trail()).head).fault is not None


def test_a_signed_audit_passes_with_its_key_only() -> None:
    assert verify(trail(signed=True), key=PUBLIC).fault is None
    fault = verify(trail(signed=True), key=OTHER).fault
    assert fault is not None
    assert (fault.line, fault.text) == (1, "its signature is missing or not by this key")


def test_a_signed_audit_that_was_cut_cannot_be_given_another_head() -> None:
    signed = trail(signed=True)
    last = read_entry(signed.lines[-4])
    assert last is not None
    head = head_text(Link(last["entry"], last["hash"]), None)
    own = head[:-1] + f',"signature":"{last["signature"]}"' + "}"
    for cut in (head, own):  # without a signature, or with the entry's own
        assert verify(replace(signed, lines=signed.lines[:-3], head=cut), key=PUBLIC).fault


def test_an_earlier_head_is_found_as_what_comes_after_it() -> None:
    last = read_entry(trail().lines[9])
    assert last is not None
    early = replace(trail(), head=head_text(Link(last["entry"], last["hash"]), None))
    fault = verify(early).fault
    assert fault is not None
    assert fault.text == "the head says 10 entries, and there are 21"


def test_one_entry_beyond_the_head_is_a_crash() -> None:
    last = read_entry(trail().lines[-2])
    assert last is not None
    late = replace(trail(), head=head_text(Link(last["entry"], last["hash"]), None))
    assert verify(late).fault is None
    assert "the process ended between the two" in verify(late).notes[0]


def test_without_a_head_it_says_what_cannot_be_seen() -> None:
    found = verify(replace(trail(), head=None, lines=trail().lines[:-2]))
    assert found.fault is None
    assert "cannot be seen" in found.notes[0]


@pytest.mark.parametrize("head", ["", "nonsense", '{"entry":1}', '{"entry":"x","hash":""}'])
def test_a_damaged_head_is_found(head: str) -> None:
    assert verify(replace(trail(), head=head)).fault is not None


def test_lines_removed_from_a_table_are_found(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    trail = SqliteTrail(path)
    one_run(trail)
    trail.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER audit_stays")
        connection.execute("DELETE FROM audit WHERE entry = 3")
    found = verify(read_trail(path))
    assert found.fault is not None
    assert found.fault.text == "entry 4 stands where entry 3 belongs"
