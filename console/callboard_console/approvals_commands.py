"""`callboard approvals`: what agents in a journal file ask of humans, and the answers.

The agent need not run, and its code need not be there: it reads the answer when it goes on.
"""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import anyio
import typer

from callboard.approvals import Approval, GrantScope
from callboard.errors import NotAnApprover
from callboard.journaling.record_codec import decode
from callboard.journaling.records import ApprovalResolved
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.journaling.transcript import fold
from callboard.resolving import answer_offline, fate_of
from callboard_console.engine_files import OutsideJournal
from callboard_console.exits import CommandError, Exit
from callboard_console.places import FORM, Place, place_at
from callboard_console.record_lines import legible, one_line

approvals = typer.Typer(
    help="What agents ask of humans, and answers to it, in a journal file. The agent goes on "
    "with its next resume().",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[
    Place,
    typer.Argument(metavar="FILE", parser=place_at, show_default=False, help=FORM),
]
Id = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="The approval, or its unique end.")
]
By = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who decides.",
        default_factory=getpass.getuser,
        show_default="your user name",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """An approval, and the agent at which it is answered."""

    address: str
    approval: Approval


@approvals.command("list")
def list_approvals(
    file: File,
    *,
    every: Annotated[bool, typer.Option("--all", help="Those that are answered, too.")] = False,
) -> None:
    """Print what waits for an answer, one a line: id, agent, and what would run."""
    for asked in asked_in(file):
        one = asked.approval
        if every or one.is_pending:
            status = "" if one.is_pending else f"  {fate_of(one.id, one)}"
            what = f"{one.tool_name} {as_json(one)}: {one.reason}"
            print(f"{one.id}  {asked.address}  {one_line(what)}{one_line(status)}".rstrip())


@approvals.command("show")
def show_approval(file: File, id: Id) -> None:
    """Print one approval whole, with exactly what would run."""
    asked = found_in(file, id)
    one = asked.approval
    print(f"{one.id} of {asked.address}: {fate_of(one.id, one)}")
    for name, value in _facts(one):
        print(f"  {name:9} {legible(value)}")
    print(legible(json.dumps(one.preview, ensure_ascii=False, indent=2, default=str)))


@approvals.command("approve")
def approve_call(
    file: File,
    id: Id,
    *,
    by: By,
    scope: Annotated[
        GrantScope, typer.Option("--for", help="How far it reaches; `once` is this call alone.")
    ] = GrantScope.ONCE,
) -> None:
    """Let exactly this call run, once, unless --for says more."""
    asked = found_in(file, id)
    _refuse_kind(asked, is_question=False)
    _answer(file, asked, ApprovalResolved(asked.approval.id, "approved", by, scope=scope))


@approvals.command("deny")
def deny_call(
    file: File,
    id: Id,
    reason: Annotated[str, typer.Argument(help="What the agent reads.", show_default=False)] = "",
    *,
    by: By,
) -> None:
    """Refuse it; the agent reads the reason."""
    asked = found_in(file, id)
    _answer(file, asked, ApprovalResolved(asked.approval.id, "denied", by, reason or None))


@approvals.command("answer")
def answer_question(
    file: File,
    id: Id,
    text: Annotated[str, typer.Argument(help="The answer.", show_default=False)],
    *,
    by: By,
) -> None:
    """Answer a question of the agent (its tool `ask_user`)."""
    asked = found_in(file, id)
    _refuse_kind(asked, is_question=True)
    _answer(file, asked, ApprovalResolved(asked.approval.id, "answered", by, text))


@approvals.command("revoke")
def revoke_grant(file: File, id: Id, *, by: By) -> None:
    """End what an approval grants beyond its own call."""
    asked = found_in(file, id)
    _answer(file, asked, ApprovalResolved(asked.approval.id, "revoked", by))


# -- the file --------------------------------------------------------------------------------------


def asked_in(file: Place) -> list[Asked]:
    """The approvals of all agents in a file, each where it is answered: at the root of those
    that it came through.
    """
    found: dict[str, Asked] = {}
    for address in file.addresses():
        records = [decode(entry.record) for entry in file.entries(address)]
        for one in fold(records).approvals.values():
            before = found.get(one.id)
            if before is None or len(one.path) > len(before.approval.path):
                found[one.id] = Asked(address, one)
    return list(found.values())


def found_in(file: Place, id: str) -> Asked:
    """The approval with this id, or the only one whose id ends so.

    Raises:
        CommandError: there is none, or there are several.
    """
    all_asked = {asked.approval.id: asked for asked in asked_in(file)}
    if id in all_asked:
        return all_asked[id]
    near = [asked for asked_id, asked in all_asked.items() if id and asked_id.endswith(id)]
    if len(near) != 1:
        there = " ".join([one for one, asked in all_asked.items() if asked.approval.is_pending])
        raise CommandError(f"{id!r} names {len(near) or 'none'} of: {there or '(nothing waits)'}")
    return near[0]


def _refuse_kind(asked: Asked, *, is_question: bool) -> None:
    if asked.approval.is_question is not is_question:
        kind, right = (
            ("for words", "answer") if asked.approval.is_question else ("yes or no", "approve")
        )
        raise CommandError(f"{asked.approval.id} asks {kind}: callboard approvals {right}")


def _answer(file: Place, asked: Asked, answer: ApprovalResolved) -> None:
    answered = _answered_in_engine if file.has_engine else _answered_in_file
    try:
        done, now = anyio.run(answered, file, asked.address, answer)
    except NotAnApprover as error:
        raise CommandError(str(error), code=Exit.FAILED) from error
    if not done:
        raise CommandError(fate_of(now.id, now), code=Exit.FAILED)
    print(f"{answer.status}: {now.tool_name} {legible(as_json(now))}")


async def _answered_in_file(
    file: Place, address: str, answer: ApprovalResolved
) -> tuple[bool, Approval]:
    with SqliteJournal(file.file, address=address) as journal:
        return await answer_offline(journal, answer)


async def _answered_in_engine(
    file: Place, address: str, answer: ApprovalResolved
) -> tuple[bool, Approval]:
    """Whoever serves the agent goes on with it at once, or when it is served again."""
    async with file.engine() as engine:
        return await answer_offline(OutsideJournal(engine, address, wakes=True), answer)


# -- what is shown ---------------------------------------------------------------------------------


def as_json(asked: Approval) -> str:
    """What would run, on one line."""
    return json.dumps(asked.preview, ensure_ascii=False, default=str)


def _facts(one: Approval) -> Iterator[tuple[str, str]]:
    yield "tool", one.tool_name
    yield "reason", one.reason
    if one.rule:
        yield "rule", one.rule
    for finding in one.findings:
        yield "finding", finding
    if one.path:
        yield "asked by", one.path[0]
    if one.expires_at is not None:
        yield "expires", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.expires_at))
    if one.approvers is not None:
        yield "approvers", ", ".join(one.approvers) or "as the agent's code says"
    if one.answer:
        yield "answer", one.answer
    if one.is_wide:
        yield "holds for", one.scope
