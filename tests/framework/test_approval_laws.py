"""The law: whatever happens, no denied or unapproved call reaches a tool, and what ran is byte for
byte what was approved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.approvals import Approval, GrantScope
from callboard.journaling.records import (
    ApprovalRequested,
    ApprovalResolved,
    Record,
    RunStarted,
    ToolStarted,
)
from callboard.json_text import canonical
from callboard.testing import pairing_faults, virtual_backend
from tests.framework.approval_world import Ran, World, judged, live

pytestmark = pytest.mark.timeout(120)


def released(ran: Ran, records: Sequence[Record]) -> bool:
    """Whether an approval that was given before the call started, and not revoked, released it."""
    start = next(
        at
        for at, one in enumerate(records)
        if isinstance(one, ToolStarted) and one.call_id == ran.call_id
    )
    before = records[:start]
    run_id = [one.run_id for one in before if isinstance(one, RunStarted)][-1]
    answers = {one.approval_id: one for one in before if isinstance(one, ApprovalResolved)}
    return any(
        _releases(one.approval, answers.get(one.approval.id), ran, run_id)
        for one in before
        if isinstance(one, ApprovalRequested)
    )


def _releases(asked: Approval, answer: ApprovalResolved | None, ran: Ran, run_id: str) -> bool:
    if answer is None or answer.status != "approved" or asked.tool_name != ran.name:
        return False
    if answer.scope is GrantScope.TOOL_IN_RUN and asked.run_id == run_id:
        return True
    if canonical(asked.preview) != ran.arguments:
        return False
    in_run = answer.scope is GrantScope.RUN and asked.run_id == run_id
    return in_run or answer.scope is GrantScope.CONVERSATION or asked.call_id == ran.call_id


def first_answers(records: Sequence[Record]) -> dict[str, ApprovalResolved]:
    found: dict[str, ApprovalResolved] = {}
    for one in records:
        if isinstance(one, ApprovalResolved):
            found.setdefault(one.approval_id, one)
    return found


def lived(seed: int, *, is_family: bool) -> World:
    world = World(Random(seed), is_family=is_family)
    name, options = virtual_backend("asyncio")
    agent = anyio.run(live, world, backend=name, backend_options=options)
    assert pairing_faults(agent.messages) == []
    return world


@pytest.mark.parametrize("is_family", [False, True], ids=["alone", "a sub-agent"])
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_nothing_runs_that_was_not_approved_just_so(seed: int, is_family: bool) -> None:
    world = lived(seed, is_family=is_family)
    records = world.kept()["asks"]
    for ran in world.ran:
        amount = int(ran.arguments.split(":")[1].rstrip("}"))
        assert judged(amount) != "deny", ran
        assert judged(amount) == "let" or released(ran, records), ran
    above = first_answers(world.kept()["root"])
    for approval_id, answer in first_answers(records).items() if is_family else ():
        yes = answer.status in ("approved", "answered")
        told = above.get(approval_id)
        assert not yes or (told and (told.status, told.by) == (answer.status, answer.by)), answer
    times = Counter(ran.call_id for ran in world.ran if ran.name == "pay")
    assert all(count == 1 for count in times.values()), times


def test_the_law_is_tried_in_earnest() -> None:
    """Its histories hold each kind of answer, and calls that ran by each of them."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        world = lived(seed, is_family=seed % 2 == 0)
        records = world.kept()["asks"]
        seen.update(one.status for one in records if isinstance(one, ApprovalResolved))
        seen.update(one.scope for one in records if isinstance(one, ApprovalResolved))
        asked = [one for one in world.ran if judged(int(one.arguments[10:-1])) == "ask"]
        seen["ran"] += len(asked)
    kinds = ("approved", "denied", "withdrawn", "revoked", "answered", *GrantScope, "ran")
    assert min(seen[kind] for kind in kinds) >= 10, seen
