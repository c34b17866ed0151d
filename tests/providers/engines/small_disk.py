"""Sends letters until the disk is full, and goes on when there is room.

    python -m tests.providers.engines.small_disk FILE

Prints the ids that were acknowledged, and what was raised. The limit on file sizes stands in for
a full disk: the operating system refuses to write in the middle of a transaction.
"""

from __future__ import annotations

import json
import resource
import sys

import anyio

from callboard.errors import CommitFailed
from callboard.testing.engine_kit import letter
from callboard_providers.engines.sqlite import SqliteEngine


async def main(path: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept: list[str] = []
    errors: list[str] = []
    async with SqliteEngine(path) as engine:

        async def send(name: str) -> None:
            try:
                await engine.send(letter(name, body={"value": "x" * 20_000}))
                kept.append(name)
            except CommitFailed as error:
                errors.append(str(error))

        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
        for number in range(20):
            async with anyio.create_task_group() as group:
                for name in "abc":
                    group.start_soon(send, f"{number}{name}")
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        full = len(errors)
        for number in range(20, 40):
            await send(f"{number}")
    print(json.dumps({"kept": kept, "refused": full, "errors": errors}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
