"""Plays one history on a clock that jumps, and checks the laws after each of its legs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import anyio

from callboard.events import Warned
from callboard.journaling.records import Queued, Record, Withdrawn
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing.virtual_time import virtual_backend
from callboard.tooling.threads import _limiters
from tests.framework.histories.history import History
from tests.framework.histories.journals import expired, from_disk
from tests.framework.histories.keeps import check_kept
from tests.framework.histories.laws import (
    Broken,
    broken_unless,
    check_expired,
    check_ledger,
    check_said,
)
from tests.framework.histories.life import Life
from tests.framework.histories.prefixes import Prefixes
from tests.framework.histories.readers import check_numbers
from tests.framework.histories.scripts import script_of
from tests.framework.histories.world import World
from tests.framework.kit import assert_paired, assert_replays, marks

FOR_EVER_S = 1_000_000.0  # virtual: whoever still waits then, hangs


def played(history: History, file: Path | None = None) -> World:
    """Play it to its end; with a `file` the journal is a SqliteJournal there.

    Raises:
        Broken: a law does not hold.
    """
    name, options = virtual_backend(history.backend, seed=history.seed)
    if name == "trio":
        _seed_trio(history.seed)
    return anyio.run(partial(_play, history, file), backend=name, backend_options=options)


def _seed_trio(seed: int) -> None:
    """trio shuffles tasks by itself: from this seed."""
    run: Any = import_module("trio._core._run")
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    run._r.seed(seed)


async def _play(history: History, file: Path | None) -> World:
    world = World(history, file)
    answers = Random(history.seed)
    try:
        with anyio.fail_after(FOR_EVER_S):
            life = Life(world, script_of(history.script))
            for leg in history.legs:
                await life.leg(leg)
                life = await _after(life)
            await life.to_the_end(answers)
            await _after(life)
            await life.last_words()
            await _after(life)
            if world.child is not None:
                await world.child.last_words()
            if not world.was_left_long:
                world.house.check(life.agent, life.journal.records, life.model)
            if world.blobs is not None:
                messages, full = life.agent.messages, bool(history.blob_faults)
                await check_kept(messages, world.blobs, full=full)
    except TimeoutError:
        raise Broken("nothing hangs") from None
    _at_the_end(world, life)
    return world


async def _after(life: Life) -> Life:
    """Check the laws; the heir of a life that has ended."""
    if life.records is not None:
        records = from_disk(life.records)
        if life.was_absent and life.world.file is None:
            records = expired(records, life.world.expired)
            life.world.was_left_long = True
        if life.world.child is not None:
            life.world.child.is_left(records, long=life.was_absent and life.world.file is None)
        heir = Life(life.world, life.script, records)
        _check_books(life.world, records)
        return heir
    await _nothing_is_alive(life)
    state = life.agent._conversation
    if not state._broken and not state._stale:
        _replays(life)
    _check_books(life.world, life.journal.records)
    if life.world.child is not None:
        life.world.child.check(life.journal.records, life.agent, quiet=not life.a_commit_failed)
    parked = life.agent.state.run_id is not None
    if not parked and not life.a_commit_failed:  # then the next run tells what is missing
        _events_pair(life)
    return life


async def _nothing_is_alive(life: Life) -> None:
    alive = life.hands.running + (life.world.child.hands.running if life.world.child else 0)
    broken_unless(alive == 0, "no tool is alive after the run")
    broken_unless(life.model.open_streams == 0, "no stream is alive after the run")
    if "asyncio" in sys.modules and life.world.history.backend == "asyncio":
        left = asyncio.all_tasks() - {asyncio.current_task()}
        broken_unless(not left, "no task is alive after the run", left)
    for _ in range(1_000):  # a thread that was given up ends on its own clock
        if not _limiters()[0].borrowed_tokens:
            break
        await anyio.sleep(0.01)
    broken_unless(not _limiters()[0].borrowed_tokens, "no thread is alive after the run")


def _replays(life: Life) -> None:
    try:
        assert_replays(life.agent)
    except AssertionError as differs:
        raise Broken(f"the journal makes the live state: {differs}") from None


def _events_pair(life: Life) -> None:
    check_numbers(life.events)
    events = [e for e in life.events if not isinstance(e, Warned)]  # a thread may warn late
    if events:
        try:
            assert_paired(events)
        except AssertionError:
            raise Broken(f"every start has its end: {' | '.join(marks(events))}") from None


def _check_books(world: World, records: Sequence[Record]) -> None:
    state = Prefixes(world.history).check(records)
    check_said(state.messages)
    cut = frozenset(world.cancelled_calls)
    if world.history.policy is SteeringPolicy.INTERRUPT:
        cut |= set(state.call_ids)
    check_expired(state, world.expired)
    check_ledger(world.ledger, records, state, layers=world.history.layers, cut=cut)


def _at_the_end(world: World, life: Life) -> None:
    """What people were told is so: queued messages came in once, prompts were taken."""
    state = Prefixes(world.history).check(life.journal.records)
    texts = [message.text for message in state.messages if message.role == "user"]
    waiting = {item.item_id for item in state.queues.items()}
    gone = {r.item_id for r in life.journal.records if isinstance(r, Withdrawn)}
    for id, text in world.items.items():
        places = (id in waiting) + (id in gone) + texts.count(text)
        broken_unless(places == 1, "no queued message is lost", text, places)
    broken_unless(world.withdrawn <= gone, "what was withdrawn is gone")
    _check_supplied(world, texts, life.journal.records)
    asked = {item.content[0].text for item in state.queues.items()}  # type: ignore[union-attr]
    for text, reply in world.replies.items():
        lost = text not in texts and text not in asked and not gone
        planned = "planning" in world.history.layers  # takes it in once there is a plan
        lost = lost and not (planned and reply.outcome is not Outcome.FINISHED)
        broken_unless(not lost, "no prompt is lost", text, reply)
        parked = reply.outcome is Outcome.AWAITING_APPROVAL
        broken_unless(parked == bool(reply.pending), "a parked reply says so", reply)


def _check_supplied(world: World, texts: Sequence[str], records: Sequence[Record]) -> None:
    """What a supplier gave is queued, but for a process that died with it in its hands."""
    contents = [r.content for r in records if isinstance(r, Queued)]
    queued = [block.text for content in contents for block in content if block.type == "text"]
    for text, number in world.supplied.items():
        places = queued.count(text)
        least = 0 if number in world.deaths or world.commits_fail else 1
        broken_unless(least <= places <= 1, "what was supplied is queued", text, places)
