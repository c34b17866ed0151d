"""What durable asks cost over the file's own commits: ratios, measured in one run, interleaved.

    python -m benchmarks.engine [--turns 40] [--folder DIR]

All at synchronous=FULL, in a folder on a real disk (by default the current one). An ask is two
commits: the letter, and its answer with the letter's end. How long a disk takes for a commit
changes from one second to the next, by a factor of ten on some, so raw commits and asks take
turns of some milliseconds each, and what is compared is how long all turns took.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import anyio

from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.ref import Ref
from callboard.actors.system import ActorSystem
from callboard_providers.engines.sqlite import SqliteEngine

CALLERS = 64
COMMITS = 8  # raw ones in a turn, and about as many for the asks of a turn
BODY = "x" * 512


class Echo(Actor):
    """Answers with what it gets."""

    async def receive(self, letter: Envelope) -> Any:
        return letter.payload


class Tally:
    """How much was done, and in how long, by name."""

    def __init__(self) -> None:
        self._counts = defaultdict[str, int](int)
        self._took_s = defaultdict[str, float](float)

    @contextmanager
    def turn(self, name: str, count: int) -> Generator[None]:
        begun = time.perf_counter()
        yield
        self._took_s[name] += time.perf_counter() - begun
        self._counts[name] += count

    def rates(self) -> dict[str, float]:
        """How many a second."""
        return {name: count / self._took_s[name] for name, count in self._counts.items()}


def raw_file(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE row (n INTEGER PRIMARY KEY, body TEXT)")
    return connection


def commit_raw(connection: sqlite3.Connection, rows: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for _ in range(rows):
        connection.execute("INSERT INTO row (body) VALUES (?)", (BODY,))
    connection.execute("COMMIT")


async def ask_often(ref: Ref, times: int) -> None:
    for _ in range(times):
        await ref.ask(BODY)


async def take_turns(tally: Tally, raw: sqlite3.Connection, refs: list[Ref]) -> None:
    """One turn of each: single raw commits and one caller, groups of 64 and 64 callers."""
    with tally.turn("raw single", COMMITS):
        for _ in range(COMMITS):
            commit_raw(raw, 1)
    with tally.turn("ask, 1 caller", COMMITS // 2):
        await ask_often(refs[0], COMMITS // 2)
    with tally.turn("raw grouped", COMMITS * CALLERS):
        for _ in range(COMMITS):
            commit_raw(raw, CALLERS)
    with tally.turn("ask, 64 callers", COMMITS // 2 * CALLERS):
        async with anyio.create_task_group() as group:
            for ref in refs:
                group.start_soon(ask_often, ref, COMMITS // 2)


async def measured(folder: Path, turns: int) -> dict[str, float]:
    tally = Tally()
    with closing(raw_file(folder / "raw.db")) as raw:
        async with ActorSystem(SqliteEngine(folder / "asks.db")) as system:
            system.register("echo", lambda seat: Echo())
            refs = [system.ref(f"echo/{n}") for n in range(CALLERS)]
            await take_turns(Tally(), raw, refs)  # actors and files are made
            for _ in range(turns):
                await take_turns(tally, raw, refs)
    return tally.rates()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        rates = anyio.run(measured, Path(name), given.turns)
    for name, rate in rates.items():
        print(f"{name:18} {rate:10,.0f}/s")
    single = rates["ask, 1 caller"] / rates["raw single"]
    grouped = rates["ask, 64 callers"] / rates["raw grouped"]
    print(f"1 caller:    {single:.0%} of the raw single commits (aim 25%)")
    print(f"64 callers:  {grouped:.0%} of the raw grouped commits (aim 15%, and 2,000/s)")


if __name__ == "__main__":
    main()
