"""Journal files that cannot be opened or read say why, and what to do."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import InMemoryJournal, SqliteJournal
from callboard.errors import (
    CallboardError,
    CommitFailed,
    ConfigurationError,
    JournalConflict,
    JournalDamaged,
)
from callboard.journaling.record_codec import decode
from callboard.journaling.records import Record, Withdrawn
from callboard.journaling.sqlite_file import addresses, entries
from callboard.journaling.transcript import fold
from tests.framework.kit import agent_of, shape

JOURNALS = Path(__file__).parents[1] / "data" / "journals"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A journal of three records."""
    path = tmp_path / "agent.db"
    with SqliteJournal(path) as journal:
        anyio.run(journal.append, [Withdrawn("a"), Withdrawn("b"), Withdrawn("secret")], 0)
    return path


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def read(file: Path, start: int = 0) -> Sequence[Record]:
    with SqliteJournal(file) as journal:
        return anyio.run(journal.read, start)


def test_a_file_of_version_1_is_read_and_gone_on_with(tmp_path: Path) -> None:
    """The file was written by version 1 and is never written again."""
    shutil.copy(JOURNALS / "v1.db", tmp_path)
    lines = (JOURNALS / "v1.jsonl").read_bytes().splitlines()
    with SqliteJournal(tmp_path / "v1.db") as journal:
        agent, _ = agent_of([], then="on we go", journal=journal)
        agent.run_sync("And now?")
        before = shape(fold([decode(line) for line in lines]).messages)
        assert shape(agent.messages)[: len(before)] == before
        assert shape(agent.messages)[-1] == "assistant: on we go"
        assert journal.digest_key.hex().startswith("6ca165a97510")


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("what I wrote " * 100)
    with pytest.raises(JournalDamaged, match=r"notes\.txt is no SQLite database; name a journal"):
        SqliteJournal(file)
    assert file.read_text() == "what I wrote " * 100


def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    change(file, "CREATE TABLE orders (id)")
    before = file.read_bytes()
    with pytest.raises(ConfigurationError, match="the database of another program"):
        SqliteJournal(file)
    assert file.read_bytes() == before


def test_a_file_of_a_newer_version_is_refused_with_the_remedy(file: Path) -> None:
    change(file, "PRAGMA user_version = 7")
    with pytest.raises(JournalDamaged, match=r"version 7.*up to version 1: install the newer"):
        SqliteJournal(file)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (".", "is a folder; name a file in it"),
        ("no/such/agent.db", "no folder .*no/such; make it"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        SqliteJournal(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"path": ":memory:"}, r"use InMemoryJournal\(\)"),
        ({"synchronous": "OFF"}, "synchronous='OFF': give 'FULL' or 'NORMAL'"),
        ({"address": ""}, "address=''"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    file: Path, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        SqliteJournal(options.pop("path", file), **options)


def test_names_with_signs_of_uris_are_plain_names(tmp_path: Path) -> None:
    names = ["a?mode=memory", "50%20 é.db", "#1"]
    for name in names:
        SqliteJournal(tmp_path / name).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_torn_page_is_damage(file: Path) -> None:
    pages = bytearray(file.read_bytes())
    pages[4096 * 1 : 4096 * 4] = b"\xff" * 4096 * 3
    file.write_bytes(pages)
    with pytest.raises(JournalDamaged, match="is damaged .*bring a backup back"):
        read(file)


def test_a_missing_record_is_named(file: Path) -> None:
    change(file, "DELETE FROM journal WHERE n = 1")
    with pytest.raises(JournalDamaged, match="record 1 of agent/agent is missing"):
        read(file)


def test_a_missing_record_at_the_end_is_a_conflict_of_the_next_append(file: Path) -> None:
    with SqliteJournal(file) as journal:
        change(file, "DELETE FROM journal WHERE n = 2")
        with pytest.raises(JournalConflict, match="holds 2 records of agent/agent and not 3"):
            anyio.run(journal.append, [Withdrawn("d")], 3)


def test_a_damaged_record_is_named_and_not_quoted(file: Path) -> None:
    change(file, "UPDATE journal SET record = substr(record, 1, 40) WHERE n = 2")
    with pytest.raises(JournalDamaged, match="record 2 of agent/agent: .*not JSON") as damaged:
        read(file)
    assert "secret" not in str(damaged.value)
    assert [entry.n for entry in entries(file, "agent/agent")] == [0, 1, 2]


def test_a_lost_key_is_damage(file: Path) -> None:
    change(file, "DELETE FROM secret")
    with pytest.raises(JournalDamaged, match="lost its digest_key"):
        SqliteJournal(file)


def test_a_closed_journal_says_so(file: Path) -> None:
    journal = SqliteJournal(file)
    journal.close()
    journal.close()
    with pytest.raises(CommitFailed, match=r"agent\.db: .*closed"):
        anyio.run(journal.append, [Withdrawn("d")], 3)
    with pytest.raises(CommitFailed, match="closed"):
        anyio.run(journal.read)


@pytest.mark.parametrize(
    ("pragma", "told"),
    [
        ("query_only = 1", "cannot be written; to look into it: callboard journal show"),
        ("max_page_count = 1", "could not grow: the disk is full"),
    ],
)
def test_an_append_that_cannot_be_written_says_why(file: Path, pragma: str, told: str) -> None:
    with SqliteJournal(file) as journal:
        journal._connection.execute(f"PRAGMA {pragma}")
        with pytest.raises(CommitFailed, match=told):
            anyio.run(journal.append, [Withdrawn("x" * 100_000)], 3)
        assert len(anyio.run(journal.read)) == 3


def test_looking_into_a_file_changes_nothing(file: Path) -> None:
    before = file.read_bytes()
    assert addresses(file) == {"agent/agent": 3}
    assert [(e.n, e.kind) for e in entries(file, "agent/agent")] == [
        (n, "withdrawn") for n in range(3)
    ]
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_looking_into_a_file_in_use_sees_what_is_committed(file: Path) -> None:
    with SqliteJournal(file) as journal:
        anyio.run(journal.append, [Withdrawn("d")], 3)
        assert addresses(file) == {"agent/agent": 4}
        anyio.run(journal.append, [Withdrawn("e")], 4)
        assert addresses(file) == {"agent/agent": 5}


@pytest.mark.parametrize("content", [None, b"", b"no database"])
def test_looking_into_what_is_no_journal_makes_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "agent.db"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CallboardError, match=r"no file|holds no journal|no SQLite database"):
        addresses(file)
    assert file.exists() == (content is not None)


def test_a_key_that_is_given_goes_before_the_journals(file: Path) -> None:
    with SqliteJournal(file) as journal:
        given, _ = agent_of([], journal=journal, digest_key=b"k" * 32)
        kept, _ = agent_of([], journal=journal)
        none, _ = agent_of([], journal=InMemoryJournal())
        keys = [agent._calls.decider.digest_key for agent in (given, kept, none)]
        assert keys[:2] == [b"k" * 32, journal.digest_key]
        assert keys[2] not in keys[:2]


LOCKED = """
import fcntl, struct, sys
with open(sys.argv[1], "r+b") as file:
    wanted = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0x40000002, 510, 0)  # SQLite's shared bytes
    found = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, wanted))
    print("free" if found[0] == fcntl.F_UNLCK else "locked")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads locks as Linux keeps them")
def test_opening_a_file_again_drops_no_locks(tmp_path: Path) -> None:
    """Without its locks another process takes the log for left behind, and the file breaks."""
    file = tmp_path / "team.db"
    with SqliteJournal(file, address="agent/one"), SqliteJournal(file, address="agent/two"):
        command = [sys.executable, "-c", LOCKED, str(file)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "locked\n"
