"""`callboard journal`: what stands in a journal file, for people and for other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from callboard.errors import JournalDamaged
from callboard.journaling.record_codec import decode
from callboard.journaling.sqlite_file import Entry, addresses, entries
from callboard_console.exits import CommandError, Exit
from callboard_console.record_lines import line_of_record, one_line

journal = typer.Typer(
    help="Look into a journal file. It is opened for reading only, and may be in use.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A journal file.")]
Chosen = Annotated[
    str | None,
    typer.Option(help="Whose records, as `type/key`; needed where a file has several agents."),
]


class ExportFormat(StrEnum):
    """How records are exported."""

    JSONL = "jsonl"  # one JSON object a line, as it stands in the file


@journal.command("show")
def show_journal(file: File, address: Chosen = None) -> None:
    """Print the records of an agent, one a line: number, time, kind, and what it tells."""
    damaged = 0
    for entry in chosen_entries(file, address):
        when = datetime.fromtimestamp(entry.at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        try:
            told = line_of_record(decode(entry.record))
        except JournalDamaged as error:
            damaged += 1
            told = f"!! {one_line(str(error))}"
        print(f"{entry.n:5}  {when}  {entry.kind:18}  {told}".rstrip())
    if damaged:
        raise CommandError(f"{damaged} records cannot be read", code=Exit.FAILED)


@journal.command("export")
def export_journal(
    file: File,
    address: Chosen = None,
    *,
    format: Annotated[  # the option's name
        ExportFormat, typer.Option(help="jsonl: one JSON object a line.")
    ] = ExportFormat.JSONL,
) -> None:
    """Print the records of an agent as they stand in the file, whole and undecoded."""
    del format  # there is one
    out = sys.stdout.buffer
    for entry in chosen_entries(file, address):
        out.write(entry.record + b"\n")
    out.flush()


def chosen_entries(file: Path, address: str | None) -> Iterator[Entry]:
    """The records of the agent that is meant: the one named, or the only one."""
    found = addresses(file)
    if address is None and len(found) == 1:
        address = next(iter(found))
    if address not in found:
        there = ", ".join([f"{name} ({count} records)" for name, count in found.items()])
        problem = "name one with --address" if address is None else f"not {address!r}"
        raise CommandError(f"{file} holds {there or 'no records yet'}; {problem}")
    return entries(file, address)
