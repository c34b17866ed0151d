"""`callboard worker`: serves some kinds of actors of an engine, among others that do."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import anyio
import typer

from callboard.actors.engine import Engine
from callboard.actors.rules import ActorRules
from callboard.actors.system import DEFAULT_RULES, STOP_S, ActorSystem, Seat
from callboard.errors import CallboardError, MissingExtra
from callboard_console.agents_commands import entries
from callboard_console.exits import CommandError, Exit
from callboard_console.logs import LogLevel, configure_logs
from callboard_console.run_commands import registering, serve

LOOK_S = 5.0  # how often the engine is looked at, or seldomer where that takes long
DEAD_MOST = 10_000
TOKEN = "CALLBOARD_METRICS_TOKEN"


def worker(
    system: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:SYSTEM",
            help="A function that registers kinds on the ActorSystem that it is given, or a "
            "mapping of kinds to their factories.",
            show_default=False,
        ),
    ],
    *,
    engine: Annotated[
        str, typer.Option(help="nats://TOKEN@HOST:PORT, or sqlite:FILE.", show_default=False)
    ],
    kinds: Annotated[
        str | None,
        typer.Option(help="Serve these of the kinds only: clerk,writer.", show_default=False),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="How many messages from outside are handled at once."),
    ] = None,
    drain_s: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds that what runs is given to end, after SIGTERM."),
    ] = STOP_S,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Serve /health and /metrics (Prometheus) on this port of the loopback; 0 takes a "
            f"free one. /metrics wants the token in {TOKEN}, or a new one that is printed.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(help="debug tells each step, to stderr.")
    ] = LogLevel.WARNING,
) -> None:
    """Serve actors until Ctrl-C or SIGTERM, together with all who serve the same engine: each gets
    its share, and what one leaves the others go on with. It is left in order by SIGTERM; if it
    is killed, the others take over once its lease has run out.
    """
    configure_logs(log_level)
    if engine == "memory":
        raise CommandError("the engine 'memory' has no other workers: use `callboard run`")
    wanted = None if kinds is None else frozenset(one.strip() for one in kinds.split(","))
    bounds = {"stop_s": drain_s, "concurrency": concurrency}
    raise typer.Exit(anyio.run(partial(_serve, system, engine, wanted, metrics_port, **bounds)))


async def _serve(
    target: str, engine: str, wanted: frozenset[str] | None, port: int | None, **bounds: Any
) -> Exit:
    system = Some(engine, wanted, **bounds)
    beside = None if port is None else partial(_measured, port=port)
    return await serve(system, system.checked(target), beside=beside)


class Some(ActorSystem):
    """A system that serves only some of the kinds that are registered on it."""

    def __init__(self, engine: str, wanted: frozenset[str] | None, **more: Any) -> None:
        super().__init__(engine, **more)
        self._wanted = wanted
        self._named: set[str] = set()

    def register(
        self, kind: str, factory: Callable[[Seat], Any], rules: ActorRules = DEFAULT_RULES
    ) -> None:
        self._named.add(kind)
        if self._wanted is None or kind in self._wanted:
            super().register(kind, factory, rules)

    def checked(self, target: str) -> Callable[[ActorSystem], Any]:
        """What registers kinds on it, and says which of those wanted are missing."""
        register = registering(target)

        async def registered(system: ActorSystem) -> None:
            found = register(system)
            if hasattr(found, "__await__"):
                await found
            missing = sorted((self._wanted or frozenset()) - self._named)
            if missing:
                known = ", ".join(sorted(self._named)) or "none"
                raise CommandError(f"{target} registers no {', '.join(missing)}; it has {known}")

        return registered


@asynccontextmanager
async def _measured(system: ActorSystem, *, port: int) -> AsyncGenerator[None]:
    """Serve metrics of a system while the block runs."""
    try:
        from callboard_console.metrics import Metrics, MetricsServer
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "prometheus_client", extra="metrics") from error
    engine = system.engine
    assert engine is not None  # "memory" was refused
    metrics, problems = Metrics(), list[str | None](["it begins"])
    given = os.environ.get(TOKEN)
    token = given or secrets.token_urlsafe(24)
    with (
        MetricsServer(metrics, port, token, lambda: problems[0]) as server,
        system.watch() as heard,
    ):
        shown = "" if given else f"; Authorization: Bearer {token}"
        print(f"metrics at http://127.0.0.1:{server.port}/metrics{shown}", flush=True)

        async def count() -> None:
            async for event in heard:
                metrics.note(event)

        async def look() -> None:
            while True:
                begun = anyio.current_time()
                problems[0] = await _looked(engine, metrics)
                await anyio.sleep(max(LOOK_S, 20 * (anyio.current_time() - begun)))

        async with anyio.create_task_group() as group:
            group.start_soon(count)
            group.start_soon(look)
            yield
            problems[0] = "it is leaving"
            group.cancel_scope.cancel()


async def _looked(engine: Engine, metrics: Any) -> str | None:
    """Show how the engine stands. Returns what is wrong with it."""
    try:
        actors = [entry async for entry in entries(engine, None)]
        metrics.show(actors, await engine.workers(), len(await engine.dead(limit=DEAD_MOST)))
    except CallboardError as error:
        return str(error)
    return None
