"""Random histories of a whole agent: whatever is done to it and whenever, the laws hold.

More of them: `python -m tests.framework.histories --seeds 2000:100000`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.agent import ReActAgent
from callboard.journaling.records import ApprovalRequested, RunStarted
from tests.framework.histories.generate import history_of, made
from tests.framework.histories.history import Act, Called, History, Leg, Said, story
from tests.framework.histories.house import HOUSE
from tests.framework.histories.keeps import SlowBlobs
from tests.framework.histories.laws import Broken
from tests.framework.histories.play import played
from tests.framework.histories.search import failing_story, first_failure, smallest_story
from tests.framework.histories.shrink import shrunk
from tests.framework.histories.stacks import stack
from tests.framework.histories.world import World

pytestmark = pytest.mark.timeout(120)
CHUNK = 100


@pytest.mark.parametrize("start", range(0, 2_000, CHUNK))
def test_every_history_keeps_the_laws(start: int) -> None:
    seed = first_failure(start, start + CHUNK)
    assert seed is None, f"\n{failing_story(seed)}"


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_histories_with_a_journal_in_a_real_file_keep_the_laws(start: int, tmp_path: Path) -> None:
    """Faults of the disk are left to the tests of the journal itself."""
    for seed in range(start, start + 50):
        history = replace(history_of(seed), faults=(), moment_s=0.001)
        try:
            played(history, tmp_path / f"{seed}.db")
        except Broken as broken:
            pytest.fail(f"seed {seed}: {broken}")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(note_method_calls=False, use_true_random=False), st.integers(0, 999))
def test_hypothesis_finds_no_history_that_breaks_a_law(rng: Any, seed: int) -> None:
    history = made(rng, seed=seed)
    try:
        played(history)
    except Broken:
        pytest.fail(f"\n{smallest_story(history)}")


def test_one_seed_is_one_history_and_ends_in_one_way() -> None:
    for seed in range(40):
        assert history_of(seed) == history_of(seed)
        first, second = (outcomes_of(played(history_of(seed))) for _ in range(2))
        assert first == second


def outcomes_of(world: World) -> list[Any]:
    ran = [(entry.name, entry.x, entry.life) for entry in world.ledger]
    return [ran, [(reply.outcome, reply.text) for reply in world.replies.values()]]


def test_the_histories_hold_what_they_are_about() -> None:
    """Deaths, cancels, approvals and unknown ends are met, not only drawn."""
    met = [played(history_of(seed)) for seed in range(150)]
    assert sum(world.lives > 1 for world in met) > 15
    assert sum(bool(world.granted) for world in met) > 5
    assert sum(bool(world.items) for world in met) > 50
    assert sum(bool(world.cancelled_calls) for world in met) >= 1
    outcomes = {reply.outcome for world in met for reply in world.replies.values()}
    assert len(outcomes) >= 7


def test_the_histories_hold_readers_suppliers_stores_and_agents_below() -> None:
    met = [played(history_of(seed)) for seed in range(150)]
    assert sum(world.readings for world in met) > 100
    assert sum(world.missed for world in met) > 100
    assert sum(bool(world.supplied) for world in met) > 20
    assert sum(bool(world.expired) for world in met) >= 1
    assert sum(bool(world.house.trail.lines) for world in met) >= 5
    stores = [world.blobs for world in met if isinstance(world.blobs, SlowBlobs)]
    assert sum(bool(len(store)) for store in stores) >= 5
    below = [record for world in met if world.child for record in world.child.journal.records]
    assert sum(isinstance(record, RunStarted) for record in below) > 15
    assert sum(isinstance(record, ApprovalRequested) for record in below) >= 3


def test_the_layers_of_the_house_stand_in_many_lawful_orders() -> None:
    stacks = {history_of(seed).layers for seed in range(500)}
    orders = {tuple([name for name in layers if name in HOUSE]) for layers in stacks}
    assert len(orders) > 100
    for layers in stacks:
        assert issubclass(stack(layers), ReActAgent)  # or the class statement would refuse it


def test_a_failing_history_is_made_small() -> None:
    """What fails here is 'it says pay and is cancelled': nothing else is left of the history."""

    def fails(history: History) -> bool:
        names = [call.name for said in history.script for call in said.calls]
        return "pay" in names and any(a.deed == "cancel" for g in history.legs for a in g.acts)

    large = next(h for seed in range(1_000) if fails(h := made(Random(seed), seed=seed)))
    small = shrunk(large, fails)
    assert (len(small.script), len(small.legs), small.layers) == (1, 1, ())
    assert [call.name for call in small.script[0].calls] == ["pay"]
    assert small.legs[0].acts == (Act("cancel"),)


def test_a_story_is_short() -> None:
    said = Said("text", (Called("pay", '{"x":1}', "a"),))
    told = story(History(seed=3, script=(said,), legs=(Leg("run", (Act("die", 0.5, 2),)),)))
    assert told.splitlines() == [
        "seed 3 on asyncio; no layers; defaults",
        "journal in memory; no faults",
        """the model says 1: text: pay({"x":1}) 'a'""",
        "leg 1: run; die at 0.5 s + 2 ticks",
    ]
