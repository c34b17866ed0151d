"""`callboard cluster`: who serves an engine, and what waits there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import anyio
import typer

from callboard.actors.engine import Engine, WorkerEntry
from callboard.actors.shards import SHARDS
from callboard_console.agents_commands import Spec, entries
from callboard_console.engine_files import engine_at

cluster = typer.Typer(
    help="Those who serve an engine.", no_args_is_help=True, rich_markup_mode=None
)


@dataclass(frozen=True, slots=True)
class Status:
    """`unread` and `running` count letters and agents of each kind; `dead` stops at DEAD_MOST."""

    workers: Sequence[WorkerEntry]
    unread: Mapping[str, int]
    running: Mapping[str, int]
    agents: Mapping[str, int]
    dead: int


DEAD_MOST = 1_000


@cluster.callback()
def _cluster() -> None:
    """Those who serve an engine."""


@cluster.command()
def status(
    engine: Spec, *, as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False
) -> None:
    """Print the processes that serve it and how many shards of each kind they own, then for each
    kind its agents, those that run, the messages that wait, and the shards that nobody owns.
    """
    found = anyio.run(partial(_status, engine_at(engine)))
    if as_json:
        print(json.dumps(asdict(found)))
        return
    for line in lines_of(found):
        print(line)


async def _status(engine: Engine) -> Status:
    agents, unread, running = Counter[str](), Counter[str](), Counter[str]()
    async with engine:
        async for entry in entries(engine, None):
            kind = entry.address.type
            agents[kind] += 1
            unread[kind] += entry.unread
            running[kind] += entry.standing == "running"
        dead = len(await engine.dead(limit=DEAD_MOST))
        return Status(await engine.workers(), unread, running, agents, dead)


def lines_of(status: Status) -> list[str]:
    """The status as lines of text."""
    lines: list[str] = []
    owned = Counter[str]()
    for worker in status.workers:
        shares = {kind: len(shards) for kind, shards in worker.shards.items()}
        owned.update(shares)
        told = "  ".join([f"{kind}: {count} of {SHARDS}" for kind, count in shares.items()])
        lines.append(f"worker {worker.name}  {told}")
    if not status.workers:
        lines.append("nobody serves it")
    for kind in sorted({*owned, *status.agents}):
        counts = (
            f"{status.agents.get(kind, 0)} agents  {status.running.get(kind, 0)} running"
            f"  {status.unread.get(kind, 0)} unread"
        )
        free = SHARDS - owned[kind]
        lines.append(f"{kind}  {counts}" + (f"  {free} shards without an owner" if free else ""))
    if status.dead:
        more = "or more " if status.dead == DEAD_MOST else ""
        lines.append(f"{status.dead} {more}dead letters: callboard deadletters list")
    return lines
