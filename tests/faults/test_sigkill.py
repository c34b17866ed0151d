"""A process that is killed at random points, and started again until it ends.

CALLBOARD_KILLS says at how many points (100 were passed; 25 by default), CALLBOARD_SEED which.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from callboard import SqliteJournal
from callboard.journaling.transcript import State, fold
from callboard.messages import ToolResultMessage
from callboard.testing import pairing_faults
from tests.faults.sigkill_agent import KINDS, TURNS
from tests.run_script import plain_environment

pytestmark = [pytest.mark.faults, pytest.mark.real_clock, pytest.mark.timeout(600)]
KILLS = int(os.environ.get("CALLBOARD_KILLS", "25"))
SEED = os.environ.get("CALLBOARD_SEED") or str(random.randrange(10**6))
LONGEST_S = 0.12  # what a whole run takes here, about


@dataclass
class Story:
    """One agent from its first start to its end, and the times it was killed between."""

    folder: Path
    synchronous: str
    kills: int = 0
    keys: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    noted: Counter[str] = field(default_factory=Counter[str])

    def start(self) -> subprocess.Popen[str]:
        files = (str(self.folder / "agent.db"), str(self.folder / "ledger"))
        command = [sys.executable, "-m", "tests.faults.sigkill_agent", *files, self.synchronous]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=plain_environment()
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def tell(self, chance: random.Random) -> None:
        """Start, kill, and start again, until a process comes to its end."""
        while True:
            with self.start() as process:
                try:
                    process.wait(chance.uniform(0, LONGEST_S))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    self.kills += 1
                    continue
                assert process.stdout is not None
                assert (process.returncode, process.stdout.read()) == (0, "done\n")
                break
        for line in (self.folder / "ledger").read_text().splitlines():
            call_id, key = json.loads(line)
            self.noted[call_id] += 1
            self.keys[call_id].add(key)

    def state(self) -> State:
        with SqliteJournal(self.folder / "agent.db") as journal:
            return fold(anyio.run(journal.read))


def stories(folder: Path, synchronous: str) -> Iterator[Story]:
    """As many agents as it takes to have killed often enough."""
    chance, kills = random.Random(f"{SEED} {synchronous}"), 0
    while kills < KILLS:
        story = Story(folder / str(kills), synchronous)
        story.folder.mkdir()
        story.tell(chance)
        kills += story.kills
        yield story


@pytest.mark.parametrize("synchronous", ["FULL", "NORMAL"])
def test_a_killed_agent_goes_on_and_does_nothing_twice(tmp_path: Path, synchronous: str) -> None:
    """An effect stands in the ledger once, or its call is of unknown outcome. The others may
    stand there again, under the same key.
    """
    print(f"seed {SEED}")  # pytest shows it where the test fails
    for story in stories(tmp_path, synchronous):
        state = story.state()
        print(f"killed {story.kills} times, noted {story.noted.total()} of {TURNS * len(KINDS)}")
        results = [m for m in state.messages if isinstance(m, ToolResultMessage)]
        print(Counter([result.status for result in results]))
        assert pairing_faults(state.messages) == []
        assert len(results) == TURNS * len(KINDS)
        for result in results:
            noted = story.noted[result.call_id]
            if result.call_id.startswith("effect"):
                assert (result.status, noted) in [
                    ("ok", 1),
                    ("unknown_outcome", 0),
                    ("unknown_outcome", 1),
                ]
            else:
                assert result.status == "ok", result.text
                assert noted >= 1
            assert len(story.keys[result.call_id]) <= 1
