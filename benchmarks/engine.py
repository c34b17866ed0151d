"""What durable asks cost over the file's own commits: ratios, measured in one run, interleaved.

    python -m benchmarks.engine [--rounds 3] [--folder DIR]

All at synchronous=FULL, in a folder on a real disk (by default the current one). An ask is two
commits: the letter, and its answer with the letter's end. Each number is the best of all rounds.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.system import ActorSystem
from callboard_providers.engines.sqlite import SqliteEngine

CALLERS = 64
SINGLE = 200
GROUPED = 4_000
BODY = "x" * 512


class Echo(Actor):
    """Answers with what it gets."""

    async def receive(self, letter: Envelope) -> Any:
        return letter.payload


def raw(folder: Path, commits: int, *, grouped: int) -> float:
    """Rows a second of a plain table, so many in one transaction."""
    connection = sqlite3.connect(folder / f"raw{grouped}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS row (n INTEGER PRIMARY KEY, body TEXT)")
    begun = time.perf_counter()
    for _ in range(commits // grouped):
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(grouped):
            connection.execute("INSERT INTO row (body) VALUES (?)", (BODY,))
        connection.execute("COMMIT")
    took_s = time.perf_counter() - begun
    connection.close()
    return commits / took_s


async def asks(folder: Path, count: int, *, callers: int, actors: int) -> float:
    """Durable asks a second, from so many callers at once."""
    async with ActorSystem(SqliteEngine(folder / f"asks{callers}.db")) as system:
        system.register("echo", lambda seat: Echo())
        refs = [system.ref(f"echo/{n}") for n in range(actors)]
        for ref in refs:
            await ref.ask("warm")

        async def caller(number: int) -> None:
            ref = refs[number % actors]
            for _ in range(count // callers):
                await ref.ask(BODY)

        begun = time.perf_counter()
        async with anyio.create_task_group() as group:
            for number in range(callers):
                group.start_soon(caller, number)
        return count / (time.perf_counter() - begun)


def measured(rounds: int, folder: Path) -> dict[str, float]:
    """The best of all rounds, by name."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            place = Path(name)
            found = {
                "raw single": raw(place, SINGLE, grouped=1),
                "ask, 1 caller": anyio.run(
                    lambda place=place: asks(place, SINGLE, callers=1, actors=1)
                ),
                "raw grouped": raw(place, GROUPED * 4, grouped=CALLERS),
                "ask, 64 callers": anyio.run(
                    lambda place=place: asks(place, GROUPED, callers=CALLERS, actors=CALLERS)
                ),
            }
        best = {key: max(value, best.get(key, 0.0)) for key, value in found.items()}
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path.cwd())
    given = parser.parse_args()
    best = measured(given.rounds, given.folder)
    for name, rate in best.items():
        print(f"{name:18} {rate:10,.0f}/s")
    single = best["ask, 1 caller"] / best["raw single"]
    grouped = best["ask, 64 callers"] / best["raw grouped"]
    print(f"1 caller:    {single:.0%} of the raw single commits (aim 25%)")
    print(f"64 callers:  {grouped:.0%} of the raw grouped commits (aim 15%, and 2,000/s)")


if __name__ == "__main__":
    main()
