"""`callboard replay`: a journal is run again against the code, and the first difference is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import typer

from callboard.actors.address import Address
from callboard.agent import ReActAgent
from callboard.journaling.journal import Journal
from callboard.journaling.records import Record
from callboard.model import Model
from callboard.testing import Difference, replayed
from callboard_console.ask import named_agent
from callboard_console.exits import Exit
from callboard_console.journal_commands import File, chosen, decoded
from callboard_console.objects import load_object, names
from callboard_console.places import Place
from callboard_console.ready_model import ready_model
from callboard_console.record_lines import line_of_record, one_line

ENDS = """Exit codes: 0 the code does what is recorded, 1 it does something else (the first
difference is printed), 2 wrong usage, 5 the journal does not hold all of the model's answers."""


def replay(
    file: File,
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", help="Whose journal, as `type/key`; the only one."),
    ] = None,
    *,
    agent: Annotated[
        str,
        typer.Option(
            metavar="MODULE:FACTORY",
            help="The agent: a class, or a function that takes journal= (or seat=) and may take "
            "model=.",
            show_default=False,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="KIND:NAME, for what it can do and its name. It is asked nothing."),
    ] = None,
) -> None:
    """Run a journal again against your code, with the recorded answers of the model and the
    recorded results of the tools, which are not run.
    """
    whose, found_entries = chosen(file, address)
    records = [decoded(entry) for entry in found_entries]

    own = None if model is None else ready_model(model)
    arguments = anyio.run(_arguments, file, whose)
    is_of_kind = names(load_object(agent, option="agent"), "seat")

    def make(*, model: Model, journal: Journal) -> ReActAgent:
        offered: dict[str, Callable[[], Any]] = {
            "model": lambda: own or model,
            "journal": lambda: journal,
        }
        if is_of_kind:
            offered["seat"] = lambda: ReplaySeat(Address.parse(whose), arguments, journal)
        return named_agent(agent, offered, wanted={}, is_logged=False)

    found = replayed(records, make)
    for note in found.notes:
        print(f"note: {one_line(note)}")
    if found.difference is not None:
        for line in told(found.difference):
            print(line)
        raise typer.Exit(Exit.FAILED)
    if found.unrecorded is not None:
        print(
            f"record {found.unrecorded}: what the model answered a layer here is not in the"
            f" journal; {found.matched} of {found.recorded} records are the same"
        )
        raise typer.Exit(Exit.UNANSWERED)
    print(f"the same: {found.matched} records")


@dataclass(frozen=True, slots=True)
class ReplaySeat:
    """What the factory of a kind gets in a replay. There is no system around the agent."""

    address: Address
    arguments: Mapping[str, Any]
    journal: Journal
    blobs: None = None

    @property
    def key(self) -> str:
        return self.address.key


async def _arguments(file: Place, address: str) -> Mapping[str, Any]:
    """Those with which the agent was spawned, where an engine keeps them."""
    if not file.has_engine:
        return {}
    async with file.engine() as engine:
        return await engine.arguments(Address.parse(address)) or {}


def told(difference: Difference) -> Iterator[str]:
    """A difference in lines: where it is, what was recorded, what happened."""
    yield f"record {difference.number}: {one_line(difference.detail)}"
    yield f"  recorded  {_line(difference.recorded)}"
    yield f"  now       {_line(difference.happened)}"


def _line(one: Record | str | None) -> str:
    if one is None or isinstance(one, str):
        return one or "nothing more"
    return f"{one.kind:18}  {line_of_record(one)}".rstrip()
