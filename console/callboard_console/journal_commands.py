"""`callboard journal`: what stands in a journal file, for people and for other programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Annotated

import anyio
import typer

from callboard.actors.address import Address
from callboard.errors import JournalDamaged
from callboard.journaling.following import Followed, Follower
from callboard.journaling.forking import forked
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import Record
from callboard.journaling.sqlite_file import Entry
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard_console.engine_files import OutsideJournal
from callboard_console.exits import CommandError, Exit
from callboard_console.places import FORM, Place, place_at
from callboard_console.record_lines import line_of_record, one_line

journal = typer.Typer(
    help="Look into a journal file or an engine, which may be in use. Only `fork` writes to it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[
    Place,
    typer.Argument(metavar="FILE", parser=place_at, show_default=False, help=FORM),
]
Chosen = Annotated[
    str | None,
    typer.Option(help="Whose records, as `type/key`; needed where a file has several agents."),
]
Followable = Annotated[
    str | None,
    typer.Argument(metavar="ADDRESS", help="Whose records, as `type/key`; all without it."),
]
POLL_S = 0.2


Number = Annotated[
    int | None,
    typer.Option(metavar="N", help="The last record that is kept, by its number; all without it."),
]


class ExportFormat(StrEnum):
    """How records are exported."""

    JSONL = "jsonl"  # one JSON object a line, as it stands in the file


@journal.command("show")
def show_journal(file: File, address: Chosen = None) -> None:
    """Print the records of an agent, one a line: number, time, kind, and what it tells."""
    damaged = 0
    for entry in chosen_entries(file, address):
        line, is_whole = line_of_entry(entry)
        damaged += not is_whole
        print(line)
    if damaged:
        raise CommandError(f"{damaged} records cannot be read", code=Exit.FAILED)


@journal.command("tail")
def tail_journal(
    file: File,
    address: Followable = None,
    *,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C."),
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many records to begin with.")
    ] = 10,
) -> None:
    """Print the newest records of an agent, or of all agents in the order of writing."""
    if not follow:
        there = file.addresses()
        if not there or (address is not None and address not in there):
            raise CommandError(_not_there(file, there, address))
    if file.is_server:
        anyio.run(partial(_tail_server, file, address, lines, follow=follow))
        return
    with suppress(KeyboardInterrupt), Follower(file.file, address) as follower:
        _print_followed(follower.newest(lines), with_address=address is None)
        while follow:  # until Ctrl-C, which is how one leaves
            time.sleep(POLL_S)
            _print_followed(follower.news(), with_address=address is None)


async def _tail_server(place: Place, address: str | None, lines: int, *, follow: bool) -> None:
    """A server keeps no order among agents, so one of them has to be named."""
    if address is None:
        raise CommandError("name one agent: callboard journal tail nats://... clerk/ann")
    async with place.engine() as engine:
        shown, begun = 0, False
        while follow or not begun:
            records = await engine.records(Address.parse(address), shown)
            first = 0 if begun else max(0, len(records) - lines)
            for n, record in enumerate(records[first:], shown + first):
                print(line_of_entry(Entry(n, 0.0, record.kind, encode(record)))[0], flush=True)
            shown, begun = shown + len(records), True
            await anyio.sleep(POLL_S if follow else 0)


def _print_followed(found: Iterable[Followed], *, with_address: bool) -> None:
    for one in found:
        line, _ = line_of_entry(one.entry, one.address if with_address else None)
        print(line, flush=True)


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


@journal.command("fork")
def fork_journal(
    file: File,
    address: Annotated[str, typer.Argument(help="Whose journal, as `type/key`.")],
    new_address: Annotated[str, typer.Argument(help="The new conversation, as `type/key`.")],
    *,
    at: Number = None,
) -> None:
    """Begin a new conversation in the file, from any earlier point of one that is there.

    What is open at that point is closed in the new one; the old one stays as it is.
    """
    target = _address_of(new_address)
    there = file.addresses()
    if address not in there:
        raise CommandError(_not_there(file, there, address))
    fork = _fork_in_engine if file.has_engine else _fork_in_file
    count = anyio.run(partial(fork, file, address, target, at=at))
    print(f"{target}: {count} records")


async def _fork_in_file(file: Place, address: str, target: str, *, at: int | None) -> int:
    path = file.file
    with SqliteJournal(path, address=address) as old, SqliteJournal(path, address=target) as new:
        return len(await (await forked(old, at=at, into=new)).read())


async def _fork_in_engine(file: Place, address: str, target: str, *, at: int | None) -> int:
    """The new one is made with the arguments of the old one, when its first letter comes."""
    async with file.engine() as engine:
        old, new = OutsideJournal(engine, address), OutsideJournal(engine, target)
        count = len(await (await forked(old, at=at, into=new)).read())
        arguments = await engine.arguments(Address.parse(address))
        if arguments is not None:
            await engine.spawn(Address.parse(target), arguments)
    return count


def _address_of(text: str) -> str:
    try:
        return str(Address.parse(text))
    except ValueError as error:
        raise CommandError(f"{text!r}: {error}") from error


def chosen_entries(file: Place, address: str | None) -> Iterator[Entry]:
    """The records of the agent that is meant: the one named, or the only one."""
    return chosen(file, address)[1]


def chosen(file: Place, address: str | None) -> tuple[str, Iterator[Entry]]:
    """The agent that is meant, the one named or the only one, and its records.

    Raises:
        CommandError: there is none, or there are several.
    """
    found = file.addresses()
    if address is None and len(found) == 1:
        address = next(iter(found))
    if address is None or address not in found:
        raise CommandError(_not_there(file, found, address))
    return address, file.entries(address)


def decoded(entry: Entry) -> Record:
    """The record of an entry.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return decode(entry.record)
    except JournalDamaged as error:
        raise CommandError(f"record {entry.n}: {error}", code=Exit.FAILED) from error


def _not_there(file: Place, found: dict[str, int], address: str | None) -> str:
    there = ", ".join([f"{name} ({count} records)" for name, count in found.items()])
    problem = "name one with --address" if address is None else f"not {address!r}"
    return f"{file} holds {there or 'no records yet'}; {problem}"


def line_of_entry(entry: Entry, address: str | None = None) -> tuple[str, bool]:
    """A record as one line of text, and whether it could be read."""
    when = "-"
    if entry.at:
        when = datetime.fromtimestamp(entry.at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    whose = "" if address is None else f"{one_line(address)}  "
    try:
        told, is_whole = line_of_record(decode(entry.record)), True
    except JournalDamaged as error:
        told, is_whole = f"!! {one_line(str(error))}", False
    return f"{whose}{entry.n:5}  {when}  {entry.kind:18}  {told}".rstrip(), is_whole
