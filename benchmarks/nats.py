"""What durable asks over NATS cost beside a raw script that does the same: ratios, one run.

    python -m benchmarks.nats [--turns 20]

A real server on loopback, sync_interval: always. The raw script sends a letter, pulls it, appends
what came of it to a journal by compare-and-set, publishes the answer and acknowledges: as many
messages as an ask of the engine. Raw and engine take turns of some asks each. Then: how long it
takes until another worker answers for one that was killed, and for one that has left in order; and
the memory of a server that keeps 100,000 mailboxes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from nats.js.client import JetStreamContext

from benchmarks.engine import Echo, Tally, ask_often
from callboard.actors.address import Address
from callboard.actors.engine import Letter
from callboard.actors.ref import Ref
from callboard.actors.system import ActorSystem
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.nats_access import connected
from callboard_providers.engines.nats_line import JetStream
from callboard_providers.engines.nats_server import NatsServers

CALLERS = 64
ASKS = 4  # of each caller in a turn
LEASE_S = 2.0
MAILBOXES = 100_000
BODY = "x" * 512


class Raw:
    """What an ask takes, by hand: letter, journal, answer, acknowledgement."""

    def __init__(self, context: JetStreamContext) -> None:
        self._context = context
        self._last: dict[int, int] = {}
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._number = 0

    async def open(self) -> None:
        async def heard(message: Any) -> None:
            self._waiting.pop(message.subject.rpartition(".")[2]).set_result(None)

        await self._context.add_stream(name="RAW", subjects=["raw.in.*"], retention="workqueue")  # type: ignore[arg-type]
        await self._context.add_stream(name="RAWJ", subjects=["raw.j.*"], max_msgs_per_subject=1)
        await self._context.add_stream(name="RAWA", subjects=["raw.a.*"], max_msgs_per_subject=1)
        await self._context._nc.subscribe("raw.a.*", cb=heard)

    async def work(self) -> None:
        """Pull and handle, each letter in a task, until cancelled."""
        pulling = await self._context.pull_subscribe("raw.in.*", "raw", stream="RAW")
        async with anyio.create_task_group() as group:
            while True:
                try:
                    for message in await pulling.fetch(CALLERS, timeout=5):
                        group.start_soon(self._handle, message)
                except TimeoutError:
                    continue

    async def _handle(self, message: Any) -> None:
        caller, id = json.loads(message.data)["caller"], json.loads(message.data)["id"]
        headers = {"Nats-Expected-Last-Subject-Sequence": str(self._last.get(caller, 0))}
        kept = json.dumps({"done": [id], "answer": BODY}).encode()
        stored = await self._context.publish(f"raw.j.{caller}", kept, headers=headers)
        self._last[caller] = stored.seq
        await self._context.publish(f"raw.a.{id}", json.dumps({"body": BODY}).encode())
        await message.ack_sync()

    async def ask_often(self, caller: int, times: int) -> None:
        for _ in range(times):
            self._number += 1
            id = str(self._number)
            answer = self._waiting[id] = asyncio.get_running_loop().create_future()
            letter = json.dumps({"caller": caller, "id": id, "body": BODY}).encode()
            await self._context.publish(f"raw.in.{caller}", letter, headers={"Nats-Msg-Id": id})
            await answer


async def take_turns(tally: Tally, raw: Raw, refs: Sequence[Ref]) -> None:
    with tally.turn("raw, 1 caller", ASKS):
        await raw.ask_often(0, ASKS)
    with tally.turn("ask, 1 caller", ASKS):
        await ask_often(refs[0], ASKS)
    with tally.turn("raw, 64 callers", ASKS * CALLERS):
        async with anyio.create_task_group() as group:
            for caller in range(CALLERS):
                group.start_soon(raw.ask_often, caller, ASKS)
    with tally.turn("ask, 64 callers", ASKS * CALLERS):
        async with anyio.create_task_group() as group:
            for ref in refs:
                group.start_soon(ask_often, ref, ASKS)


async def rates(url: str, turns: int) -> dict[str, float]:
    tally = Tally()
    raw = Raw(JetStream(await connected(url, {})).context)
    await raw.open()
    async with ActorSystem(NatsEngine(url)) as system, anyio.create_task_group() as group:
        group.start_soon(raw.work)
        system.register("echo", lambda seat: Echo())
        refs = [system.ref(f"echo/{n}") for n in range(CALLERS)]
        await take_turns(Tally(), raw, refs)  # actors and consumers are made
        for _ in range(turns):
            await take_turns(tally, raw, refs)
        group.cancel_scope.cancel()
    return tally.rates()


# -- taking over -----------------------------------------------------------------------------------


async def serve(url: str) -> None:
    async with ActorSystem(NatsEngine(url, lease_s=LEASE_S)) as system:
        system.register("echo", lambda seat: Echo())
        await system.ref("echo/0").ask("?")
        print("ready", flush=True)
        with anyio.open_signal_receiver(signal.SIGTERM) as signals:
            await anext(signals)


async def took_over_s(url: str, number: int) -> float:
    """Until all addresses answer again, from the end of the worker that had them."""
    worker = await anyio.to_thread.run_sync(started, url)
    async with ActorSystem(NatsEngine(url, lease_s=LEASE_S)) as system:
        system.register("echo", lambda seat: Echo())
        begun = time.perf_counter()
        worker.send_signal(number)
        if number == signal.SIGTERM:
            await anyio.to_thread.run_sync(worker.wait)
            begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for key in range(CALLERS):
                group.start_soon(system.ref(f"echo/{key}").ask, "?")
        took = time.perf_counter() - begun
    worker.communicate()
    return took


def started(url: str) -> subprocess.Popen[bytes]:
    """A worker of its own process, once it serves."""
    command = [sys.executable, "-m", "benchmarks.nats", "--serve", url]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    worker.stdout.readline()
    return worker


async def fill(url: str) -> None:
    async with NatsEngine(url) as engine, anyio.create_task_group() as group:
        for start in range(0, MAILBOXES, MAILBOXES // 50):
            letters = [
                Letter(f"l{n}", Address("idle", str(n)), {"value": BODY})
                for n in range(start, start + MAILBOXES // 50)
            ]
            group.start_soon(engine.send, *letters)


def resident_mb(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise LookupError("the kernel does not tell")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    parser.add_argument("--serve")
    given = parser.parse_args()
    if given.serve:
        anyio.run(serve, given.serve)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        with NatsServers(Path(name) / "one") as servers:
            found = anyio.run(rates, servers.url, given.turns)
            for what, rate in found.items():
                print(f"{what:18} {rate:10,.0f}/s")
            latency = found["raw, 1 caller"] / found["ask, 1 caller"]
            share = found["ask, 64 callers"] / found["raw, 64 callers"]
            print(f"1 caller:   {latency:.2f}x the latency of the raw script (aim 2x)")
            print(f"64 callers: {share:.0%} of the raw script (aim 60%)")
            killed = anyio.run(took_over_s, servers.url, signal.SIGKILL)
            print(f"SIGKILL: answered again after {killed:.1f} s (aim {LEASE_S + 2:.0f} s)")
            left = anyio.run(took_over_s, servers.url, signal.SIGTERM)
            print(f"drained: answered again after {left:.2f} s (aim 1 s)")
        with NatsServers(Path(name) / "two") as servers:
            anyio.run(fill, servers.url)
            memory = resident_mb(servers.process(0).pid)
            print(f"{MAILBOXES:,} mailboxes: the server takes {memory:.0f} MB (aim 150 MB)")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", os.pathsep.join(sys.path))
    main()
