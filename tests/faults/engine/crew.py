"""Real worker processes over one file, which are killed, stopped and started again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from callboard.actors.engine import Engine
from tests.faults.engine.engines import engine_of
from tests.run_script import plain_environment

SEED = os.environ.get("CALLBOARD_SEED") or str(random.randrange(10**6))
LEASE_S = 1.0


@dataclass
class Crew:
    """The workers of one file. `did` counts what was done to them."""

    folder: Path
    module: str = "tests.faults.engine.worker"
    lease_s: float = LEASE_S
    always_starts: bool = True
    orders: int = int(os.environ.get("CALLBOARD_ORDERS", "300"))
    pause_s: float = 0.8  # the longest one between two deeds
    workers: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])
    did: Counter[str] = field(default_factory=Counter[str])

    @property
    def file(self) -> Path:
        return self.folder / "team.db"

    @property
    def spec(self) -> str:
        """The engine, as `engine_of` takes it."""
        return str(self.file)

    def spec_of_worker(self) -> str:
        """The same, as the next worker gets it."""
        return self.spec

    def engine(self) -> Engine:
        """One more handle on the engine, for the test itself."""
        return engine_of(self.spec, self.lease_s)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    def start(self, *, lives: bool = True) -> subprocess.Popen[str]:
        """One more worker; returns when it takes part, or has ended if it may."""
        command = [sys.executable, "-m", self.module]
        command += [self.spec_of_worker(), str(self.ledger), str(self.lease_s)]
        worker = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=plain_environment()
        )
        self.workers.append(worker)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n" or not lives
        return worker

    def kill(self, worker: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
        worker.send_signal(number)
        worker.wait(30)
        self._forget(worker)
        self.did[signal.Signals(number).name] += 1

    def _forget(self, worker: subprocess.Popen[str]) -> None:
        self.workers.remove(worker)
        assert worker.stdout is not None
        worker.stdout.close()

    async def stop_for(self, worker: subprocess.Popen[str], seconds: float) -> None:
        """Stop a worker, past its lease for instance, and let it go on."""
        worker.send_signal(signal.SIGSTOP)
        self.did["SIGSTOP"] += 1
        await anyio.sleep(seconds)
        worker.send_signal(signal.SIGCONT)

    async def harass(self, chance: random.Random, *, workers: int, pause_s: float) -> None:
        """Kill and stop at random, and start again what is missing, until cancelled."""
        while True:
            await anyio.sleep(chance.uniform(0.2, pause_s))
            for worker in [one for one in self.workers if one.poll() is not None]:
                self._forget(worker)
                self.did["ended"] += 1
            if len(self.workers) < workers:
                await anyio.to_thread.run_sync(partial(self.start, lives=self.always_starts))
                continue
            worker = chance.choice(self.workers)
            what = chance.choice(("kill", "kill", "stop", "term"))
            if what == "stop":
                await self.stop_for(worker, chance.uniform(1.0, 1.8) * self.lease_s)
            else:
                number = signal.SIGKILL if what == "kill" else signal.SIGTERM
                await anyio.to_thread.run_sync(self.kill, worker, number)

    def close(self) -> None:
        for worker in tuple(self.workers):
            worker.send_signal(signal.SIGCONT)
            self.kill(worker)

    def noted(self) -> Sequence[tuple[str, str, str]]:
        """The ledger: tool, order, and idempotency key."""
        if not self.ledger.exists():
            return []
        lines: list[Any] = [json.loads(line) for line in self.ledger.read_text().splitlines()]
        return [(name, order, key) for name, order, key in lines]
