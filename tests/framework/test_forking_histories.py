"""Forks of random histories: every point of every journal will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from callboard import InMemoryJournal, SqliteJournal
from callboard.journaling.forking import forked
from callboard.journaling.records import Observed, Record
from callboard.journaling.sqlite_file import addresses
from callboard.journaling.transcript import fold
from callboard.testing import pairing_faults
from tests.framework.histories.generate import history_of
from tests.framework.histories.play import played

pytestmark = pytest.mark.real_clock


@pytest.mark.parametrize("seed", range(25))
def test_every_point_of_every_history_can_be_forked(seed: int, tmp_path: Path) -> None:
    """The prefix is as it was, what can be sent is valid, and nothing is open or waits."""
    file = tmp_path / "a.db"
    played(replace(history_of(seed), faults=(), moment_s=0.001), file)
    for address in addresses(file):
        with SqliteJournal(file, address=address) as opened:
            records = anyio.run(opened.read)
        for at in range(len(records)):
            fork = anyio.run(_forked_at, records, at)
            assert fork[: at + 1] == list(records[: at + 1])
            state = fold(fork)
            assert pairing_faults(state.messages) == []
            assert (state.run, state.open_calls, state.pending, state.wide) == (None, (), (), ())
            assert sum(isinstance(record, Observed) for record in fork) == len(state.call_ids)


async def _forked_at(records: Sequence[Record], at: int) -> list[Record]:
    return list((await forked(InMemoryJournal(records), at=at)).records)
