"""Kills a process at random points and starts it again until it ends; then reads its ledger.

CALLBOARD_KILLS says at how many points, CALLBOARD_SEED which.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from callboard import SqliteJournal
from callboard.journaling.records import Record
from callboard.messages import ToolResultMessage
from tests.run_script import plain_environment

SEED = os.environ.get("CALLBOARD_SEED") or str(random.randrange(10**6))


@dataclass
class Story:
    """One process from its first start to its end, and the times it was killed between.

    `arguments` follow the paths of its journal and its ledger.
    """

    folder: Path
    module: str
    arguments: Sequence[str] = ()
    longest_s: float = 0.12  # what a whole run takes, about
    kills: int = 0
    keys: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    noted: Counter[str] = field(default_factory=Counter[str])

    def start(self) -> subprocess.Popen[str]:
        files = (str(self.folder / "agent.db"), str(self.folder / "ledger"))
        command = [sys.executable, "-m", self.module, *files, *self.arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=plain_environment()
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def tell(self, chance: random.Random, *, most: int) -> None:
        """Start, kill, and start again, until a process comes to its end; so often at most."""
        while True:
            with self.start() as process:
                try:
                    is_last = self.kills >= most
                    process.wait(None if is_last else chance.uniform(0, self.longest_s))
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

    def check(self, result: ToolResultMessage) -> None:
        """An effect stands in the ledger once, or its call is of unknown outcome; what may run
        again has run, under one key.
        """
        noted = self.noted[result.call_id]
        if result.call_id.startswith("effect"):
            assert (result.status, noted) in [
                ("ok", 1),
                ("unknown_outcome", 0),
                ("unknown_outcome", 1),
            ]
        else:
            assert result.status == "ok", result.text
            assert noted >= 1
        assert len(self.keys[result.call_id]) <= 1

    def records(self, address: str = "agent/agent") -> Sequence[Record]:
        with SqliteJournal(self.folder / "agent.db", address=address) as journal:
            return anyio.run(journal.read)


def stories(
    folder: Path, module: str, *arguments: str, kills: int, longest_s: float = 0.12
) -> Iterator[Story]:
    """As many processes as it takes to have killed often enough."""
    most = int(os.environ.get("CALLBOARD_KILLS", kills))
    chance, done = random.Random(" ".join([SEED, module, *arguments])), 0
    while done < most:
        story = Story(folder / str(done), module, arguments, longest_s)
        story.folder.mkdir()
        story.tell(chance, most=most - done)
        done += story.kills
        yield story
