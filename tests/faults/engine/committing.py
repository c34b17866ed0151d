"""Commits records with what they send, one after the other, until it is killed.

python -m tests.faults.engine.committing FILE LEDGER LEASE_S
"""

from __future__ import annotations

import sys

import anyio

from callboard.actors.engine import Commit
from callboard.testing.engine_kit import A, B, fact, letter
from callboard_providers.engines.sqlite import SqliteEngine


async def main(file: str) -> None:
    async with SqliteEngine(file, synchronous="NORMAL", mailbox_bound=10**6) as engine:
        number = len(await engine.records(A))
        print("ready", flush=True)
        while True:
            await engine.commit(Commit(A, (fact(number),), number, sends=(letter(f"{number}", B),)))
            number += 1


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
