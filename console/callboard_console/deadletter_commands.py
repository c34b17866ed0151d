"""`callboard deadletters`: messages that could not be delivered, or failed too often."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

import anyio
import typer

from callboard.actors.engine import DeadEntry, Engine
from callboard_console.agents_commands import Spec
from callboard_console.engine_files import engine_at
from callboard_console.exits import CommandError, Exit
from callboard_console.record_lines import one_line

PAGE = 100  # dead letters that are read at once

deadletters = typer.Typer(
    help="Messages of an engine that could not be delivered, or failed too often.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="NUMBER...", show_default=False, help="As `list` prints them."),
]
Every = Annotated[bool, typer.Option("--all", help="All that there are now.")]


@deadletters.command("list")
def list_dead(engine: Spec) -> None:
    """Print them, oldest first: number, time, to whom, why, and what was said."""
    anyio.run(partial(_list, engine_at(engine)))


@deadletters.command("replay")
def replay_dead(engine: Spec, numbers: Numbers = None, *, every: Every = False) -> None:
    """Send them again, as new messages."""
    anyio.run(partial(_each, engine_at(engine), numbers or (), "sent again", every=every))


@deadletters.command("drop")
def drop_dead(engine: Spec, numbers: Numbers = None, *, every: Every = False) -> None:
    """Forget them for good."""
    anyio.run(partial(_each, engine_at(engine), numbers or (), "dropped", every=every))


async def _list(engine: Engine) -> None:
    async with engine:
        async for entry in _entries(engine):
            print(line_of(entry))


async def _each(engine: Engine, numbers: Sequence[int], done: str, *, every: bool) -> None:
    if every == bool(numbers):
        raise CommandError("name the numbers that are meant, or say --all")
    missing: list[int] = []
    async with engine:
        act: Callable[[int], Awaitable[bool]] = engine.drop if done == "dropped" else engine.revive
        meant = [entry.number async for entry in _entries(engine)] if every else numbers
        for number in meant:
            if await act(number):
                print(f"{number}: {done}")
            else:
                missing.append(number)
    if missing:
        numbers_text = ", ".join(map(str, missing))
        raise CommandError(f"there is no dead letter {numbers_text}", code=Exit.FAILED)


async def _entries(engine: Engine) -> AsyncIterator[DeadEntry]:
    after = 0
    while page := await engine.dead(after=after, limit=PAGE):
        for entry in page:
            yield entry
        after = page[-1].number


def line_of(entry: DeadEntry) -> str:
    """A dead letter as one line of text."""
    when = datetime.fromtimestamp(entry.at).strftime("%Y-%m-%d %H:%M:%S")
    why = entry.reason if entry.error is None else f"{entry.reason}: {entry.error}"
    said = json.dumps(entry.letter.body, ensure_ascii=False)
    return f"{entry.number:5}  {when}  {entry.letter.to!s:24}  {one_line(why)}  {one_line(said)}"
