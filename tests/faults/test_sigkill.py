"""A process that is killed at random points, and started again until it ends.

CALLBOARD_KILLS says at how many points (100 were passed; 25 by default), CALLBOARD_SEED which.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.testing import pairing_faults
from tests.faults.killing import SEED, stories
from tests.faults.sigkill_agent import KINDS, TURNS

pytestmark = [pytest.mark.faults, pytest.mark.real_clock, pytest.mark.timeout(600)]


@pytest.mark.parametrize("synchronous", ["FULL", "NORMAL"])
def test_a_killed_agent_goes_on_and_does_nothing_twice(tmp_path: Path, synchronous: str) -> None:
    """An effect stands in the ledger once, or its call is of unknown outcome. The others may
    stand there again, under the same key.
    """
    print(f"seed {SEED}")  # pytest shows it where the test fails
    for story in stories(tmp_path, "tests.faults.sigkill_agent", synchronous, kills=25):
        state = fold(story.records())
        print(f"killed {story.kills} times, noted {story.noted.total()} of {TURNS * len(KINDS)}")
        results = [m for m in state.messages if isinstance(m, ToolResultMessage)]
        print(Counter([result.status for result in results]))
        assert pairing_faults(state.messages) == []
        assert len(results) == TURNS * len(KINDS)
        for result in results:
            story.check(result)
