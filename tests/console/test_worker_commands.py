"""`callboard engine up`, `worker` and `cluster status`, with real servers and processes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import pytest

from callboard.actors.system import ActorSystem
from callboard_providers.engines.nats_server import NatsServers
from tests.console.command import COMMAND, callboard
from tests.console.serving import PROGRAM
from tests.run_script import plain_environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


class Started:
    """A command in the background; ended when the block is left."""

    def __init__(self, folder: Path, *words: str, lines: int = 1) -> None:
        (folder / "team.py").write_text(PROGRAM)
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=folder,
            env=plain_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.first = [self.process.stdout.readline().rstrip() for _ in range(lines)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and what it wrote since its first lines."""
        self.process.send_signal(number)
        text, _ = self.process.communicate(timeout=45)
        return self.process.returncode, text


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with NatsServers(tmp_path / "nats") as servers:
        yield servers.url


def until(holds: Callable[[], bool], *, patience_s: float = 45.0) -> None:
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.1)


def shown(folder: Path, *arguments: str) -> str:
    done = callboard(*arguments, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def told(url: str, address: str, text: str) -> None:
    async def tell() -> None:
        async with ActorSystem(url) as system:
            await system.ref(address).tell(text)

    anyio.run(tell)


def test_an_engine_is_started_used_and_goes_on_where_it_stood(tmp_path: Path) -> None:
    port = str(NatsServers(tmp_path / "x").ports[0])
    command = ("engine", "up", "--dir", "engine", "--port", port)
    agents = ""
    for _ in range(2):
        with Started(tmp_path, *command, lines=2) as engine:
            url, kept = engine.first
            assert kept == "kept in engine; Ctrl-C stops"
            agents = shown(tmp_path, "agents", url)
            told(url, "clerk/ann", "pay")
            assert engine.end(signal.SIGINT) == (0, "")
    assert agents.split()[:4] == ["clerk/ann", "idle", "0", "records"]


def test_who_does_not_know_the_token_does_not_get_in(tmp_path: Path, url: str) -> None:
    open_to_all = f"nats://{url.rpartition('@')[2]}"
    done = callboard("agents", open_to_all, cwd=tmp_path)
    assert done.returncode == 2
    assert "Authorization" in done.stderr
    assert open_to_all in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path, url: str) -> None:
    port = url.rpartition(":")[2]
    done = callboard("engine", "up", "--dir", "engine", "--port", port, cwd=tmp_path)
    assert (done.returncode, f"port {port} is taken" in done.stderr) == (2, True)


def test_workers_share_an_engine_and_what_one_leaves_the_others_do(
    tmp_path: Path, url: str
) -> None:
    command = ("worker", "team:register", "--engine", url, "--kinds", "clerk")
    with Started(tmp_path, *command) as one, Started(tmp_path, *command):
        assert one.first == [f"serving nats://{url.rpartition('@')[2]}; Ctrl-C stops"]

        def shares() -> list[int]:
            found = json.loads(shown(tmp_path, "cluster", "status", url, "--json"))
            return [len(worker["shards"]["clerk"]) for worker in found["workers"]]

        until(lambda: len(shares()) == 2 and sum(shares()) == 16)
        assert one.end() == (0, "stopping; again to stop at once\n")
        until(lambda: shares() == [16])
        told(url, "clerk/ann", "pay")
        until(lambda: "waiting" in shown(tmp_path, "agents", url))
        waiting = shown(tmp_path, "approvals", "list", url).split()
        shown(tmp_path, "approvals", "approve", url, waiting[0])
        until(lambda: (tmp_path / "paid.txt").exists())
        until(lambda: shown(tmp_path, "agents", url).split()[1] == "idle")
    tail = shown(tmp_path, "journal", "tail", url, "clerk/ann")
    assert tail.splitlines()[-1].endswith("finished: done: paid 5")
    assert tail.splitlines()[-1] in shown(tmp_path, "journal", "show", url)
    shown(tmp_path, "journal", "fork", url, "clerk/ann", "clerk/bob", "--at", "2")
    assert "clerk/bob" in shown(tmp_path, "agents", url)
    assert "clerk  2 agents  0 running  0 unread" in shown(tmp_path, "cluster", "status", url)


def test_a_worker_tells_how_it_is_and_what_it_did(tmp_path: Path) -> None:
    command = ("worker", "team:register", "--engine", "sqlite:team.db", "--metrics-port", "0")
    with Started(tmp_path, *command, lines=2) as worker:
        where, _, secret = worker.first[0].removeprefix("metrics at ").partition("; ")
        token = secret.removeprefix("Authorization: ")
        health = where.replace("/metrics", "/health")
        until(lambda: _is_well(health))
        told(f"sqlite:{tmp_path / 'team.db'}", "clerk/ann", "pay")

        def metrics() -> str:
            with urlopen(Request(where, headers={"Authorization": token})) as answer:
                return str(answer.read().decode())

        until(lambda: 'callboard_turns_total{kind="clerk"} 1.0' in metrics())
        until(lambda: 'callboard_actors{kind="clerk",standing="waiting"} 1.0' in metrics())
        with pytest.raises(HTTPError, match="401"):
            urlopen(where)


def _is_well(url: str) -> bool:
    try:
        with urlopen(url) as answer:
            return bool(answer.read() == b"ok\n")
    except HTTPError:
        return False


def test_a_kind_that_nobody_registers_is_named(tmp_path: Path) -> None:
    (tmp_path / "team.py").write_text(PROGRAM)
    command = ("worker", "team:register", "--engine", "sqlite:team.db", "--kinds", "clerk,cook")
    done = callboard(*command, cwd=tmp_path)
    assert done.returncode == 2
    assert "registers no cook; it has broken, clerk, sleeper" in done.stderr
