"""What holds at the end of a case, when everything has come to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from callboard.actors.engine import DeadEntry
from callboard.errors import AskTimeout
from callboard.messages import Status, ToolResultMessage
from callboard.replies import Outcome, Reply
from tests.simulation.case import Job
from tests.simulation.cast import ATTEMPTS
from tests.simulation.world import Entry, World

PLAIN = ("book", "desk")
ONCE = ("pay", "sign")


def check(world: World, dead: Sequence[DeadEntry]) -> None:
    """All of them."""
    reasons = {entry.letter.id: f"{entry.reason}: {entry.error}" for entry in dead}
    _check_dead(world, reasons)
    for job in world.case.jobs:
        if job.kind in PLAIN:
            _check_plain(world, job, reasons)
        else:
            _check_run(world, job, reasons)
    _check_told(world, reasons)
    _check_ledger(world)


def _check_dead(world: World, reasons: Mapping[str, str]) -> None:
    """Letters die where nobody waits any more, or where processes died of them."""
    for id, reason in reasons.items():
        if not (reason.startswith("expired") or _may_fail(world)):
            world.breaks("no letter dies without a reason", id, reason)


def _may_fail(world: World) -> bool:
    """Whether so many processes died that what they had in hand may be given up."""
    return world.cuts >= ATTEMPTS


def _check_plain(world: World, job: Job, reasons: Mapping[str, str]) -> None:
    answer, books = world.answers.get(job.id), world.books
    if books.done[job.id] + (job.id in reasons) != 1 and not isinstance(answer, AskTimeout):
        world.breaks("a letter is done once", job.id, books.done[job.id])
    if isinstance(answer, dict):
        got: object = cast("dict[str, object]", answer)["got"]
        if got != job.number:
            world.breaks("an answer is that of its letter", job.id, got)
    elif not (job.id in world.acknowledged or isinstance(answer, AskTimeout) or _may_fail(world)):
        world.breaks("who asks is answered", job.id, repr(answer))


def _check_run(world: World, job: Job, reasons: Mapping[str, str]) -> None:
    books, answer = world.books, world.answers.get(job.id)
    gave_up = isinstance(answer, AskTimeout)
    begun, ended = books.begun[job.id], books.ended.get(job.id)
    if begun > 1:
        world.breaks("a run begins once", job.id, begun)
    if begun and ended is None:
        world.breaks("a run that began has ended", job.id)
    if not begun and job.id not in reasons and not gave_up:
        world.breaks("no prompt is lost", job.id, answer)
    cut_short = ended is not None and ended.outcome is not Outcome.FINISHED
    if cut_short and not (gave_up or _may_fail(world)):
        world.breaks("a run that nobody ends is finished", job.id, ended)
    reply = world.replies.get(job.id)
    if ended is not None and (reply is None or reply.outcome is not ended.outcome):
        world.breaks("the result of a run stays to be had", job.id, reply)
    waits = isinstance(answer, Reply) and answer.outcome is Outcome.AWAITING_APPROVAL
    told = answer.text if isinstance(answer, Reply) and not waits else ""
    if told and told != f"done {job.number}":
        world.breaks("a reply is that of its prompt", job.id, told)


def _check_told(world: World, reasons: Mapping[str, str]) -> None:
    """What a desk told is done once, if its own letter was done."""
    told: dict[tuple[object, object], int] = {}
    for id, letter in world.books.letters.items():
        value: Any = letter.body.get("value")
        if isinstance(value, dict) and "from" in value:
            key = _place(cast("dict[str, object]", value))
            told[key] = told.get(key, 0) + world.books.done[id] + (id in reasons)
    for job in world.case.jobs:
        if job.kind != "desk" or not world.books.done[job.id]:
            continue
        if isinstance(world.answers.get(job.id), Exception):
            continue
        for at, _ in enumerate(job.turns):
            if told.get((job.number, at), 0) != 1:
                world.breaks("what a handler tells is done once", job.id, at, told)


def _place(payload: Mapping[str, object]) -> tuple[object, object]:
    """Of which job, and in which of its turns."""
    return payload["number"], payload["at"]


def _check_ledger(world: World) -> None:
    results = _results(world)
    ran: dict[str, list[Entry]] = {}
    for entry in world.ledger:
        ran.setdefault(entry.call_id, []).append(entry)
    for call_id, entries in ran.items():
        name = entries[0].name
        if name in ONCE and len(entries) > 1:
            world.breaks("no effect twice", *entries)
        if name in ("put", "mail") and len({entry.key for entry in entries}) != 1:
            world.breaks("the same key again", *entries)
        if call_id in world.denied:
            world.breaks("nothing denied ran", *entries)
        result = results.get(call_id)
        if result is None:
            world.breaks("what ran is answered for", call_id)
        elif name in ONCE and result.status is Status.DENIED:
            world.breaks("an effect is not shown as not done", call_id, result)
    for call_id, result in results.items():
        if result.status is Status.OK and result.tool_name != "clerk" and call_id not in ran:
            world.breaks("what is ok has run", result)


def _results(world: World) -> dict[str, ToolResultMessage]:
    return {
        message.call_id: message
        for state in world.books.states.values()
        for message in state.messages
        if isinstance(message, ToolResultMessage)
    }
