"""`callboard run`: serves the actors of a program, until it is told to stop."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Annotated, Any, cast

import anyio
import typer

from callboard.actors.system import STOP_S, ActorSystem
from callboard.errors import CallboardError
from callboard.hooks import settled
from callboard_console.exits import CommandError, Exit
from callboard_console.logs import LogLevel, configure_logs
from callboard_console.objects import load_object

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDS = """Exit codes: 0 stopped by Ctrl-C or SIGTERM when all was put away, 1 an actor failed, 2
wrong usage, 130 stopped at once by a second Ctrl-C or SIGTERM."""


def run(
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
        str,
        typer.Option(help="Where messages and journals are kept: sqlite:FILE, or memory."),
    ] = "memory",
    stop_s: Annotated[
        float, typer.Option(min=0.0, help="Seconds that what runs is given to end.")
    ] = STOP_S,
    log_level: Annotated[
        LogLevel, typer.Option(help="debug tells each step, to stderr.")
    ] = LogLevel.WARNING,
) -> None:
    """Serve actors until Ctrl-C or SIGTERM: then nothing new is begun, what runs is ended or, after
    a while, cut off, and the rest waits in the engine for the next who serves it.
    """
    configure_logs(log_level)
    register = registering(system)
    raise typer.Exit(anyio.run(partial(_run, engine, register, stop_s=stop_s)))


def registering(target: str) -> Callable[[ActorSystem], Any]:
    """What registers kinds on a system.

    Raises:
        CommandError: it is neither a function nor a mapping of kinds to factories.
    """
    found = load_object(target, option="MODULE:SYSTEM")
    if callable(found):
        return cast("Callable[[ActorSystem], Any]", found)
    if not isinstance(found, Mapping):
        raise CommandError(
            f"{target!r} is {found!r:.80}: name a function that takes the system and registers"
            " kinds, or a mapping of kinds to factories"
        )
    kinds = cast("Mapping[str, Callable[[Any], Any]]", found)

    def register(system: ActorSystem) -> None:
        for kind, factory in kinds.items():
            system.register(kind, factory)

    return register


async def _run(engine: str, register: Callable[[ActorSystem], Any], *, stop_s: float) -> Exit:
    return await serve(ActorSystem(engine, stop_s=stop_s), register)


async def serve(
    system: ActorSystem,
    register: Callable[[ActorSystem], Any],
    *,
    beside: Callable[[ActorSystem], AbstractAsyncContextManager[None]] | None = None,
) -> Exit:
    """Serve until a signal comes, then put all away; a second signal cuts that short. `beside` is
    a block to be in until then.
    """
    name = "memory" if system.engine is None else system.engine.name
    failure: CallboardError | None = None  # raised below: the group would wrap it
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async with anyio.create_task_group() as group:
            try:
                async with system:
                    await _registered(system, register)
                    async with nullcontext() if beside is None else beside(system):
                        print(f"serving {name}; Ctrl-C stops", flush=True)
                        await anext(signals)
                    print("stopping; again to stop at once", flush=True)
                    group.start_soon(_die_on, signals)
            except CallboardError as error:
                failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    for address in system.late:
        print(f"{address} was cut off; it goes on when it is served again")
    return Exit.ANSWERED


async def _registered(system: ActorSystem, register: Callable[[ActorSystem], Any]) -> None:
    try:
        await settled(register(system))
    except CallboardError:
        raise
    except Exception as error:  # whatever a user's function does
        raise CommandError(f"registering raised {error!r}", code=Exit.FAILED) from error


async def _die_on(signals: AsyncIterator[signal.Signals]) -> None:
    """End as a crash would, which loses nothing: whoever serves next goes on."""
    await anext(signals)
    os._exit(Exit.INTERRUPTED)
