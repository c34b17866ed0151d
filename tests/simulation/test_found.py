"""Cases that broke a law once, made small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.case import Case, Fault, Job, Wrong
from tests.simulation.play import played
from tests.simulation.world import World

DESK = Case(jobs=(Job(0, "desk", "a", turns=(("ask",),), asked=False),), escalates=True)
SIGNS = Case(processes=1, jobs=(Job(1, "clerk", "a", turns=(("sign",),), asked=False),))
PAYS = Case(processes=1, jobs=(Job(0, "clerk", "b", turns=(("pay",),), asked=False),))


def befallen(
    case: Case, words: str, wrong: Wrong, seconds: float = 0.0, *, later: int = 0
) -> World:
    """The case, where the first call of which the story says these words goes wrong, or the one
    so many calls later.
    """
    line = next(line for line in played(case).lines if words in line)
    fault = Fault(int(line.split()[2]) + later, wrong, seconds)
    return played(replace(case, faults=(fault,)))


def test_what_was_asked_and_answered_before_is_answered_again() -> None:
    """The actor is handled again elsewhere, and asks a book whose answer is there already."""
    world = befallen(DESK, "commit desk/a done job-0", "refused")
    assert (world.broken, world.was_stuck) == (None, False)


@pytest.mark.parametrize("wrong", ["refused", "forgotten", "dies before", "dies after"])
def test_an_approval_that_was_kept_has_the_run_go_on(wrong: Wrong) -> None:
    """Whatever becomes of the letter that said it."""
    world = befallen(SIGNS, "approval_resolved", wrong, later=1)
    assert (world.broken, world.was_stuck) == (None, False)
    assert [entry.name for entry in world.ledger] == ["sign"]


def test_a_run_is_not_cancelled_by_a_process_that_was_stopped() -> None:
    world = befallen(PAYS, "run_started", "stops after", 30.0)
    assert (world.broken, [entry.name for entry in world.ledger]) == (None, ["pay"])


def test_no_effect_begins_where_the_lease_ran_out_while_its_start_was_kept() -> None:
    world = befallen(PAYS, "tool_started", "stops after", 30.0)
    assert (world.broken, world.ledger) == (None, [])


@pytest.mark.parametrize("wrong", ["refused", "forgotten"])
def test_the_end_of_a_letter_that_was_not_kept_is_kept_later(wrong: Wrong) -> None:
    plain = replace(DESK, escalates=False, processes=1)
    world = befallen(plain, "commit book/a done", wrong)
    assert (world.broken, world.was_stuck) == (None, False)
