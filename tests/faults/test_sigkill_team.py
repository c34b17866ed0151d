"""An agent that is killed while another one works for it as a tool, and started again.

CALLBOARD_KILLS says at how many points (20 by default), CALLBOARD_SEED which.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from callboard.journaling.records import RunFinished, RunStarted
from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.testing import pairing_faults
from tests.faults.killing import SEED, Story, stories
from tests.faults.sigkill_team import STEPS, TASKS

pytestmark = [pytest.mark.faults, pytest.mark.real_clock, pytest.mark.timeout(600)]


def results_of(story: Story, address: str) -> list[ToolResultMessage]:
    """The results in the conversation of one of the two, which is whole."""
    messages = fold(story.records(address)).messages
    assert pairing_faults(messages) == []
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def test_both_go_on_after_a_kill_and_do_nothing_twice(tmp_path: Path) -> None:
    """Each task is one run below, whatever was killed; its effects stand in the ledger once."""
    print(f"seed {SEED}")  # pytest shows it where the test fails
    for story in stories(tmp_path, "tests.faults.sigkill_team", kills=20, longest_s=0.15):
        outer, inner = (results_of(story, f"agent/{name}") for name in ("agent", "below"))
        print(f"killed {story.kills} times", Counter([result.status for result in inner]))
        assert (len(outer), len(inner)) == (2 * TASKS, 2 * STEPS * TASKS)
        for result in inner:
            story.check(result)
        for result in outer:
            if result.tool_name != "below":
                story.check(result)
        told = [(r.status, r.text) for r in outer if r.tool_name == "below"]
        assert told == [("ok", f"noted {n}") for n in range(TASKS)]
        below = story.records("agent/below")
        assert sum([isinstance(record, RunStarted) for record in below]) == TASKS
        assert sum([isinstance(record, RunFinished) for record in below]) == TASKS
