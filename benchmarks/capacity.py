"""How much of NATS so many agents need, from rates that were measured: a table for docs/nats.md.

    python -m benchmarks.capacity [--runs-per-worker 350] [--publishes-per-server 3000]

A run with one tool is a letter, four commits and an answer. The rates are those of one process and
one server on two busy processors (benchmarks/nats.py); measure your own.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import ceil

PUBLISHES_PER_RUN = 6  # of a run with one tool that has an effect
JOURNAL_BYTES_PER_RUN = 5_600
SERVER_BYTES_PER_MAILBOX = 800  # memory, of a mailbox with a letter that waits
SHARDS = 16


@dataclass(frozen=True, slots=True)
class Load:
    """So many agents, each of which has so many runs a day."""

    agents: int
    runs_per_day: float

    @property
    def runs_per_s(self) -> float:
        return self.agents * self.runs_per_day / 86_400


@dataclass(frozen=True, slots=True)
class Need:
    publishes_per_s: float
    workers: int
    accounts: int
    memory_mb: float
    journal_gb_per_day: float


def need(load: Load, *, runs_per_worker: float, publishes_per_server: float) -> Need:
    """What a load needs. Streams of an account have one leader each, so that an account does not
    take more than one server's publishes; agents are spread over accounts beyond that.
    """
    publishes = load.runs_per_s * PUBLISHES_PER_RUN
    return Need(
        publishes,
        max(1, ceil(load.runs_per_s / runs_per_worker)),
        max(1, ceil(publishes / publishes_per_server)),
        load.agents * SERVER_BYTES_PER_MAILBOX / 1e6,
        load.runs_per_s * 86_400 * JOURNAL_BYTES_PER_RUN / 1e9,
    )


LOADS = [
    Load(1_000, 1_000),
    Load(10_000, 1_000),
    Load(100_000, 1_000),
    Load(1_000_000, 10),
    Load(1_000_000, 1_000),
]


def table(runs_per_worker: float, publishes_per_server: float) -> str:
    lines = [
        "| agents | runs a day, each | publishes/s | workers | accounts | memory | journal a day |",
        "|---|---|---|---|---|---|---|",
    ]
    for load in LOADS:
        found = need(
            load, runs_per_worker=runs_per_worker, publishes_per_server=publishes_per_server
        )
        lines.append(
            f"| {load.agents:,} | {load.runs_per_day:,.0f} | {found.publishes_per_s:,.0f}"
            f" | {found.workers:,} | {found.accounts:,} | {found.memory_mb:,.0f} MB"
            f" | {found.journal_gb_per_day:,.0f} GB |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs-per-worker", type=float, default=350)
    parser.add_argument("--publishes-per-server", type=float, default=3_000)
    given = parser.parse_args()
    print(table(given.runs_per_worker, given.publishes_per_server))


if __name__ == "__main__":
    main()
