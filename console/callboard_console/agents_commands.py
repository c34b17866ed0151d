"""`callboard agents`: who is there in an engine, and how they stand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from typing import Annotated

import anyio
import typer

from callboard.actors.address import Address
from callboard.actors.engine import ActorEntry, Engine
from callboard_console.engine_files import engine_at

PAGE = 1_000  # addresses that are read at once
Spec = Annotated[
    str,
    typer.Argument(
        metavar="ENGINE", show_default=False, help="sqlite:FILE or its file, or nats://HOST:PORT."
    ),
]


def agents(
    engine: Spec,
    *,
    kind: Annotated[str | None, typer.Option(help="Those of this kind only.")] = None,
) -> None:
    """Print the agents of an engine, one a line: address, how it stands (idle, running, or
    waiting for a human or a timer), its records, the messages that wait, when it did something
    last, and the process that serves it.
    """
    anyio.run(partial(_print_agents, engine_at(engine), kind))


async def _print_agents(engine: Engine, kind: str | None) -> None:
    async with engine:
        async for entry in entries(engine, kind):
            print(line_of(entry))


async def entries(engine: Engine, kind: str | None) -> AsyncIterator[ActorEntry]:
    after: Address | None = None
    while page := await engine.actors(kind, after=after, limit=PAGE):
        for entry in page:
            yield entry
        after = page[-1].address


def line_of(entry: ActorEntry) -> str:
    """An agent as one line of text."""
    when = "never              "
    if entry.changed_at:
        when = datetime.fromtimestamp(entry.changed_at).strftime("%Y-%m-%d %H:%M:%S")
    counts = f"{entry.records:6} records  {entry.unread:4} unread"
    return f"{entry.address!s:24}  {entry.standing:7}  {counts}  {when}  {entry.owner or '-'}"
