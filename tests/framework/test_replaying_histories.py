"""Replays of random histories: whatever was done to an agent, the same code does the same again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import Blobs, Budget, Journal, ReActAgent, SqliteJournal
from callboard.model import Model
from callboard.testing import replayed
from tests.framework.histories.generate import history_of
from tests.framework.histories.history import History
from tests.framework.histories.life import ASKING, KEY, WITHDRAWING
from tests.framework.histories.play import played
from tests.framework.histories.stacks import stack
from tests.framework.histories.tools import Hands
from tests.framework.histories.world import World

pytestmark = pytest.mark.real_clock
SEEDS = 30


@pytest.mark.parametrize("start", range(0, SEEDS, 10))
def test_every_history_is_the_same_again(start: int, tmp_path: Path) -> None:
    """But for what no record tells: what a supplier raised, and who got a slot first."""
    for seed in range(start, start + 10):
        history = replace(history_of(seed), **WITHOUT)
        file = tmp_path / f"{seed}.db"
        make, world = maker(history, blobs=played(history, file).blobs)
        with SqliteJournal(file) as journal:
            replay = replayed(anyio.run(journal.read), make)
        assert replay.difference is None, f"seed {seed}: {replay.difference}"
        assert world.ledger == []


WITHOUT: dict[str, Any] = {
    "faults": (),
    "blob_faults": (),
    "audit_fails": None,
    "supplies": (),
    "further": (),
    "max_concurrency": None,
    "moment_s": 0.001,
}


def maker(history: History, *, blobs: Blobs | None) -> tuple[Callable[..., ReActAgent], World]:
    """What makes the agents of a history, as its lives do."""
    world = World(history)
    hands = Hands(world.ledger, world.items, life=1)
    below = [world.child.begin()] if world.child else []

    def make(*, model: Model, journal: Journal) -> ReActAgent:
        audit: dict[str, Any] = {"audit_sink": _unheard} if "audit" in history.layers else {}
        return stack(history.layers)(
            model=model,
            journal=journal,
            tools=[*hands.tools(), *below],
            max_iters=history.max_iters,
            tool_execution=history.execution,
            budget=Budget(model_calls=history.model_calls),
            queue_mode=history.mode,
            steering_policy=history.policy,
            digest_key=KEY,
            blobs=blobs,
            approvals=WITHDRAWING if history.withdraws else ASKING,
            **audit,
            **world.house.keywords(),
        )

    return make, world


def _unheard(_: object) -> None:
    """An audit that nobody reads."""
