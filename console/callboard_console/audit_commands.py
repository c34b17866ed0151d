"""`callboard audit`: whether an audit is whole and unchanged, and what stands in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from callboard.journaling.record_codec import decode
from callboard.journaling.sqlite_file import addresses, entries, opened
from callboard_console.exits import CommandError, Exit
from callboard_console.record_lines import one_line
from callboard_mixins.audit.chain import TRAIL, Link, twin_of
from callboard_mixins.audit.entries import facts_of
from callboard_mixins.audit.verifying import Twin, Verification, compare, read_trail, verify

audit = typer.Typer(
    help="Look into an audit file (JSON lines or SQLite). It is opened for reading only.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="An audit file.")]
FOUND = """Exit codes: 0 whole and unchanged, 1 a fault (the first bad line is named), 2 wrong
usage, 3 an extra is missing."""


@audit.command("verify", epilog=FOUND)
def verify_audit(
    file: File,
    *,
    key: Annotated[
        Path | None, typer.Option(metavar="PUB", help="The public key (PEM) of who signed it.")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(metavar="DB", help="The journal file of the agents in it.")
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(metavar="ENTRY:HASH", help="A head that this command printed earlier."),
    ] = None,
) -> None:
    """Check that nothing was changed, dropped, reordered, doubled or cut off.

    Without --key, who can write both the file and its head could make it all anew. Keep the head
    that is printed elsewhere, and give it as --anchor next time.
    """
    found = verify(read_trail(file), key=_public_key(key), anchor=_anchor(anchor))
    for note in found.notes:
        print(f"note: {note}")
    if found.fault is not None:
        place = f"line {found.fault.line}" if found.fault.line else "head"
        raise CommandError(f"{file}: {place}: {found.fault.text}", code=Exit.FAILED)
    if journal is not None:
        _check_journal(file, found, journal)
    agents = ", ".join([f"{name} {count}" for name, count in sorted(found.agents.items())])
    signed = " and signed" if key is not None else ""
    print(f"whole{signed}: {len(found.entries)} entries ({agents or 'no agents'})")
    print(f"head {found.head.number}:{found.head.hash}")


@audit.command("show")
def show_audit(
    file: File,
    agent: Annotated[str | None, typer.Option(help="Whose entries, as `type/key`.")] = None,
) -> None:
    """Print the entries, one a line: number, time, agent, kind, and what it tells.

    Checks nothing but that the lines can be read: `verify` does.
    """
    found = verify(read_trail(file))
    for entry in found.entries:
        if agent is None or entry["agent"] == agent:
            print(_line(entry))
    if found.fault is not None:
        text = f"{file}: line {found.fault.line}: {found.fault.text}; shown is what is before it"
        raise CommandError(text, code=Exit.FAILED)


def _line(entry: Mapping[str, Any]) -> str:
    when = str(entry.get("at", ""))[:23].replace("T", " ")
    facts: Mapping[str, Any] = entry["facts"]
    told = " ".join([f"{name}={_shown(value)}" for name, value in facts.items() if value])
    return one_line(f"{entry['entry']:5}  {when}  {entry['agent']}  {entry['kind']:18}  {told}")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _anchor(text: str | None) -> Link | None:
    if text is None:
        return None
    number, _, hash = text.partition(":")
    if not number.isdigit() or len(hash) != 64:
        raise CommandError(f"--anchor {text!r}: give ENTRY:HASH, as verify prints it behind `head`")
    return Link(int(number), hash)


def _public_key(path: Path | None) -> Any:
    if path is None:
        return None
    from callboard_mixins.audit.keys import PublicKey

    return PublicKey.read(path)


def _check_journal(file: Path, found: Verification, journal: Path) -> None:
    there = addresses(journal)
    agents = [name for name in found.agents if name != TRAIL]
    pairs = {name: name for name in agents if name in there}
    if not pairs and len(agents) == len(there) == 1:  # one agent, under two names
        pairs = dict(zip(agents, there, strict=True))
    if not pairs:
        raise CommandError(f"{journal} holds {list(there)}, and {file} is of {agents}")
    for agent, address in pairs.items():
        mine = [entry for entry in found.entries if entry["agent"] == agent]
        compared = compare(mine, list(_twins(journal, address)))
        for note in compared.notes:
            print(f"note: {agent}: {note}")
        if compared.faults:
            raise CommandError(f"{file}: {agent}: {compared.faults[0]}", code=Exit.FAILED)
        print(f"{agent}: as its journal has it")


def _twins(journal: Path, address: str) -> Iterator[Twin]:
    with closing(opened(journal, read_only=True)) as connection:
        query = "SELECT value FROM secret WHERE name = 'digest_key'"
        key = bytes(connection.execute(query).fetchone()[0])
    is_answer = False
    for entry in entries(journal, address):
        is_answer = entry.kind == "approval_resolved" or (is_answer and entry.kind == "observed")
        audited = facts_of(decode(entry.record)) is not None
        yield Twin(twin_of(entry.record, key) if audited else None, is_answer)
