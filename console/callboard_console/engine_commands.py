"""`callboard engine`: NATS servers on this machine, for those who outgrow one process."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from callboard_console.exits import CommandError, Exit
from callboard_console.session import state_folder
from callboard_providers.engines.nats_server import NatsServers

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK_S = 0.5  # how often is looked whether the servers live
READY_S = 30.0
PORT = 4222
ENDS = "Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 a server ended by itself, 2 wrong usage."

engine = typer.Typer(
    help="Engines that run as servers of their own.", no_args_is_help=True, rich_markup_mode=None
)


@engine.callback()
def _engine() -> None:
    """Engines that run as servers of their own."""


@engine.command(epilog=ENDS)
def up(
    *,
    cluster: Annotated[
        int, typer.Option(help="How many servers: 1, or 3 to see what the loss of one does.")
    ] = 1,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="Where they keep what is theirs; callboard's own without it."),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_000, help="Of the first server; others have the next.")
    ] = PORT,
) -> None:
    """Start NATS with JetStream on this machine, for this machine only; Ctrl-C ends it.

    What it acknowledges survives a power loss (sync_interval: always). The URL that it prints holds
    a token: whoever has it may do everything. The same folder goes on where it stood. For more
    than one machine see docs/nats.md.
    """
    where = folder or state_folder() / "engine"
    with NatsServers(where, servers=cluster, ports=range(port, port + cluster)) as servers:
        raise typer.Exit(anyio.run(partial(_serve, servers)))


async def _serve(servers: NatsServers) -> Exit:
    """Until a signal comes."""
    await _ready(servers.url)
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        print(f"{servers.url}\nkept in {servers.folder}; Ctrl-C stops", flush=True)
        async with anyio.create_task_group() as group:
            group.start_soon(_watch, servers)
            await anext(signals)
            group.cancel_scope.cancel()
    return Exit.ANSWERED


async def _ready(url: str) -> None:
    try:
        from callboard_providers.engines.nats_access import ready
    except ModuleNotFoundError as error:
        raise CommandError(f"{error.name} is missing: pip install 'callboard[nats]'") from error
    await ready(url, within_s=READY_S)


async def _watch(servers: NatsServers) -> None:
    while not (ended := servers.ended()):  # noqa: ASYNC110  # nobody tells
        await anyio.sleep(LOOK_S)
    log = servers.folder / f"server{ended[0]}" / "log"
    raise CommandError(f"a NATS server ended by itself; see {log}", code=Exit.FAILED)
