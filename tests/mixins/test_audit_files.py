"""Audits in SQLite files: what is open stays locked against other processes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from callboard_mixins.audit.sqlite_trail import SqliteTrail
from callboard_mixins.audit.verifying import read_trail

LOCKED = """
import fcntl, struct, sys
with open(sys.argv[1], "r+b") as file:
    wanted = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0x40000002, 510, 0)  # SQLite's shared bytes
    found = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, wanted))
    print("free" if found[0] == fcntl.F_UNLCK else "locked")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads locks as Linux keeps them")
def test_reading_a_table_that_is_written_to_drops_no_locks(tmp_path: Path) -> None:
    """Without its locks another process takes the log for left behind, and the file breaks."""
    file = tmp_path / "audit.db"
    with closing(SqliteTrail(file)), closing(SqliteTrail(file)):
        read_trail(file)
        command = [sys.executable, "-c", LOCKED, str(file)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "locked\n"
