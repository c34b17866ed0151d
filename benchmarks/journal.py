"""What a durable journal costs: a turn in raw commits, reading back, and folding.

    python -m benchmarks.journal [--rounds 7]

CPU time of all threads, and wall time at FULL, which waits for the disk. Each number is the
smallest of all rounds, measured in turn. A raw commit is what SQLite alone takes for what one
commit of the loop holds: two rows of 250 bytes, encoded already. A turn with an effect commits
twice: the model's answer with the start of the tool, its result. One with this pure tool, which
never waits, commits once.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.overhead import Model, named
from benchmarks.workload import Script, add
from callboard import InMemoryJournal, Journal, ReActAgent, SqliteJournal, tool
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import Record
from callboard.journaling.sqlite_file import opened
from callboard.journaling.sqlite_journal import Synchronous
from callboard.journaling.transcript import fold

TURNS = 200
Measure = Callable[[Path], float]
CLOCKS: dict[Synchronous, Callable[[], float]] = {
    "NORMAL": time.process_time,
    "FULL": time.perf_counter,
}


def raw_commit_us(synchronous: Synchronous) -> Measure:
    clock = CLOCKS[synchronous]

    def go(folder: Path) -> float:
        record = b"x" * 250
        with closing(opened(folder / "raw.db")) as connection:
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            begun = clock()
            for n in range(0, 6 * TURNS, 2):
                rows = [("agent/agent", at, 1.0, "kind", record) for at in (n, n + 1)]
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?)", rows)
                connection.execute("COMMIT")
            return (clock() - begun) / (3 * TURNS) * 1e6

    return go


def turn_us(make: Callable[[Path], Journal], effect: str, synchronous: Synchronous) -> Measure:
    def go(folder: Path) -> float:
        journal = make(folder)
        agent = ReActAgent(
            model=Model(Script(turns=TURNS)),
            tools=[tool(effect=effect)(named(add))],
            max_iters=TURNS + 2,
            journal=journal,
        )
        spent = asyncio.run(timed(agent, CLOCKS[synchronous]))
        if isinstance(journal, SqliteJournal):
            journal.close()
        return spent / TURNS * 1e6

    return go


async def timed(agent: ReActAgent, clock: Callable[[], float]) -> float:
    begun = clock()
    reply = await agent.run("Start.")
    assert reply.text == "done", reply.text
    return clock() - begun


def in_memory(_: Path) -> Journal:
    return InMemoryJournal()


def in_file(synchronous: Synchronous) -> Callable[[Path], Journal]:
    return lambda folder: SqliteJournal(folder / "agent.db", synchronous=synchronous)


def thousand_records() -> list[Record]:
    agent = ReActAgent(model=Model(Script(turns=TURNS)), tools=[named(add)], max_iters=TURNS + 2)
    agent.run_sync("Start.")
    assert isinstance(agent.journal, InMemoryJournal)
    return list(agent.journal.records)[:1_000]


def resume_ms(folder: Path) -> float:
    """From opening the file to an agent that may go on."""
    asyncio.run(written(folder, thousand_records()))
    begun = time.process_time()
    with SqliteJournal(folder / "agent.db") as journal:
        agent = ReActAgent(model=Model(Script()), tools=[named(add)], journal=journal)
        asyncio.run(agent.withdraw("nothing"))
        spent = time.process_time() - begun
        assert len(agent.messages) > 300
    return spent * 1e3


async def written(folder: Path, records: list[Record]) -> None:
    with SqliteJournal(folder / "agent.db") as journal:
        await journal.append(records, 0)


def folding_us(_: Path) -> float:
    """A record's decoding and folding."""
    texts = [encode(record) for record in thousand_records()]
    begun = time.process_time()
    state = fold([decode(text) for text in texts])
    assert state.seq == len(texts)
    return (time.process_time() - begun) / len(texts) * 1e6


def smallest(rounds: int, *measures: Measure) -> list[float]:
    found: list[list[float]] = []
    for _ in range(rounds):
        found.append([])
        for measure in measures:
            with tempfile.TemporaryDirectory() as folder:
                found[-1].append(measure(Path(folder)))
    return [min(values) for values in zip(*found, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"SQLite {sqlite3.sqlite_version}")
    modes: tuple[Synchronous, ...] = ("NORMAL", "FULL")
    for synchronous in modes:
        for effect in ("pure", "effect"):
            raw, memory, durable = smallest(
                rounds,
                raw_commit_us(synchronous),
                turn_us(in_memory, effect, synchronous),
                turn_us(in_file(synchronous), effect, synchronous),
            )
            name = f"turn with a tool ({effect}) at {synchronous}, us"
            print(f"{name:48} {durable:8.1f}  in memory {memory:6.1f}  raw commit {raw:6.1f}")
            more = (durable - memory) / raw
            print(f"{'':48} {more:8.2f} raw commits more than in memory  (budget 3)")
    (resume,) = smallest(rounds, resume_ms)
    print(f"{'resume of a journal of 1,000 records, ms':48} {resume:8.2f}  (budget 20)")
    (folding,) = smallest(rounds, folding_us)
    print(f"{'records decoded and folded a second':48} {1e6 / folding:8.0f}  (budget 50,000)")


if __name__ == "__main__":
    main()
