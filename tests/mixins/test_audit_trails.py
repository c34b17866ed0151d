"""Trails go on after a restart and a crash, are shared, and refuse what does not fit."""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from callboard import CommitFailed, ConfigurationError
from callboard_mixins import JsonLinesTrail, SqliteTrail
from callboard_mixins.audit.json_lines_trail import HEAD
from tests.mixins.audit_kit import SIGNING, Make, checked, one_run, two_agents

BOTH = pytest.mark.parametrize("make", [JsonLinesTrail, SqliteTrail])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit"


def tear(path: Path, size: int) -> None:
    """Leave the last line without its end, as a crash does."""
    os.truncate(path, path.stat().st_size - size)
    lines = path.read_bytes().count(b"\n")
    last = json.loads(path.read_bytes().split(b"\n")[lines - 1])
    Path(f"{path}{HEAD}").write_text(json.dumps({"entry": last["entry"], "hash": last["hash"]}))


@BOTH
def test_a_restart_continues_the_chain_of_each_agent(path: Path, make: Make) -> None:
    two_agents(path, make)
    two_agents(path, make)
    found = checked(path)
    assert (found.fault, found.notes) == (None, ())
    assert found.agents == {"agent/shop": 28, "agent/clerk": 14}


@BOTH
def test_two_writers_share_a_file(path: Path, make: Make) -> None:
    """As two processes do: each looks again at what the other has written."""
    one, other = make(path), make(path)
    for trail, name in ((one, "a"), (other, "b"), (one, "a"), (other, "a")):
        one_run(trail, name)
    assert checked(path).fault is None
    assert checked(path).agents == {"agent/a": 21, "agent/b": 7}


@BOTH
def test_the_file_is_for_its_owner_only(path: Path, make: Make) -> None:
    make(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@BOTH
def test_a_closed_trail_fails_the_commit(path: Path, make: Make) -> None:
    trail = make(path)
    trail.close()
    with pytest.raises(CommitFailed, match="could not be written"):
        one_run(trail)


@BOTH
def test_a_folder_that_is_not_there_is_a_clear_error(path: Path, make: Make) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        make(path / "deeper")


def test_an_unknown_sync_is_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'sometimes': give 'never'"):
        JsonLinesTrail(path, sync="sometimes")  # type: ignore[arg-type]  # the mistake


def test_a_torn_line_stays_and_is_told_of(path: Path) -> None:
    two_agents(path, JsonLinesTrail)
    tear(path, 40)
    assert "was torn by a crash" in checked(path).notes[0]
    one_run(JsonLinesTrail(path), "shop")
    found = checked(path)
    assert (found.fault, found.notes) == (None, ())
    assert [entry["kind"] for entry in found.entries if entry["agent"] == "audit"] == ["torn"]


def test_a_line_that_lost_only_its_end_is_kept(path: Path) -> None:
    two_agents(path, JsonLinesTrail)
    tear(path, 1)
    one_run(JsonLinesTrail(path), "shop")
    found = checked(path)
    assert (found.fault, found.agents) == (None, {"agent/shop": 21, "agent/clerk": 7})


def test_a_file_that_was_cut_is_not_continued(path: Path) -> None:
    two_agents(path, JsonLinesTrail)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    with pytest.raises(ConfigurationError, match="ends with entry 18, and its head says 21"):
        JsonLinesTrail(path)


def test_a_lost_head_is_written_into_the_audit(path: Path) -> None:
    two_agents(path, JsonLinesTrail)
    Path(f"{path}{HEAD}").unlink()
    JsonLinesTrail(path).close()
    assert checked(path).entries[-1]["kind"] == "head_lost"


def test_a_file_that_is_no_audit_is_refused(path: Path) -> None:
    path.write_text("Dear diary\n")
    with pytest.raises(ConfigurationError, match="no entry of an audit"):
        JsonLinesTrail(path)


def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (one)")
    with pytest.raises(ConfigurationError, match="another program"):
        SqliteTrail(path)


@pytest.mark.parametrize("statement", ["UPDATE audit SET text = ''", "DELETE FROM audit"])
def test_the_table_refuses_changes(path: Path, statement: str) -> None:
    two_agents(path, SqliteTrail)
    with closing(sqlite3.connect(path)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


def test_a_key_is_not_shown() -> None:
    assert "PRIVATE" not in repr(SIGNING)


@pytest.mark.real_clock
def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """What the disk took of a line is taken back, and the commit fails."""
    path = tmp_path / "audit"
    trail = JsonLinesTrail(path)
    one_run(trail)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
    try:
        with pytest.raises(CommitFailed):
            one_run(trail)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (checked(path).fault, checked(path).notes) == (None, ())
