"""An audited process that is killed at random points: its audit is whole at every one of them.

CALLBOARD_KILLS says at how many points for each kind of trail (8 by default), CALLBOARD_SEED which.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import SqliteJournal
from callboard.journaling.record_codec import encode
from callboard.journaling.records import ApprovalResolved, Observed, Record, ToolStarted
from callboard_mixins.audit.chain import TRAIL, twin_of
from callboard_mixins.audit.entries import facts_of
from callboard_mixins.audit.verifying import Twin, Verification, compare, read_trail, verify
from tests.faults.killing import SEED
from tests.faults.sigkill_audit import TURNS
from tests.run_script import plain_environment

pytestmark = [pytest.mark.faults, pytest.mark.real_clock, pytest.mark.timeout(600)]
KILLS = int(os.environ.get("CALLBOARD_KILLS", "8"))
MOST = 4  # kills of one agent, which then comes to its end
LONGEST_S = 0.1  # less than a whole run takes here


def start(folder: Path, trail: Path) -> subprocess.Popen[str]:
    files = (str(folder / "agent.db"), str(trail))
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.sigkill_audit", *files],
        stdout=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def ran(folder: Path, trail: Path, patience_s: float | None) -> bool:
    """Whether the process came to its end in this time; it is killed where it did not."""
    with start(folder, trail) as process:
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            return False
        assert process.stdout is not None
        assert (process.returncode, process.stdout.read()) == (0, "done\n")
        return True


def twin(record: Record, key: bytes) -> Twin:
    digest = twin_of(encode(record), key) if facts_of(record) is not None else None
    return Twin(digest, isinstance(record, (ApprovalResolved, Observed)))


def checked(folder: Path, trail: Path) -> Verification:
    """What is left of the process: a whole audit that tells of all that the journal holds."""
    found = verify(read_trail(trail))
    assert found.fault is None, found.fault
    assert len(found.notes) <= 1, found.notes
    for note in found.notes:
        assert "the last entry" in note or "torn by a crash" in note
    with closing(SqliteJournal(folder / "agent.db")) as journal:
        key = journal.digest_key
        twins = [twin(record, key) for record in anyio.run(journal.read)]
    mine = [entry for entry in found.entries if entry["agent"] != TRAIL]
    compared = compare(mine, twins)
    assert compared.faults == (), compared.faults
    assert compared.notes == (), compared.notes
    return found


@pytest.mark.parametrize("name", ["audit.jsonl", "audit.db"])
def test_a_killed_process_leaves_a_whole_audit(tmp_path: Path, name: str) -> None:
    """At most the last entry is named, and nothing that was done is missing.

    An intent may stand in it twice: the process ended before the journal held it, and so before
    the effect.
    """
    print(f"seed {SEED}")  # pytest shows it where the test fails
    chance, kills = random.Random(f"{SEED} {name}"), 0
    for life in count():
        if kills >= KILLS:
            return
        folder = tmp_path / str(life)
        folder.mkdir()
        trail = folder / name
        most = kills + MOST
        while not ran(folder, trail, None if kills == most else chance.uniform(0, LONGEST_S)):
            kills += 1
            checked(folder, trail)
        begun = [e["facts"]["call"] for e in checked(folder, trail).entries if is_intent(e)]
        assert len(set(begun)) == TURNS
        assert begun_in_journal(folder) == sorted(set(begun))


def is_intent(entry: Mapping[str, Any]) -> bool:
    return bool(entry["kind"] == "tool_started")


def begun_in_journal(folder: Path) -> list[str]:
    """The calls that were begun, each of them once."""
    with closing(SqliteJournal(folder / "agent.db")) as journal:
        records = anyio.run(journal.read)
    return sorted([record.call_id for record in records if isinstance(record, ToolStarted)])
