"""Whole systems of actors over a simulated engine: whatever goes wrong and when, the laws hold.

More of them: `python -m tests.simulation --seeds 300:10000`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

import pytest

from callboard.actors.engine import Commit, Letter, Standing
from callboard.messages import Status, ToolResultMessage
from tests.simulation.case import Case, Fault, Job
from tests.simulation.generate import case_of
from tests.simulation.play import played
from tests.simulation.search import failing_story, fault_of, first_failure, shrunk
from tests.simulation.store import Store

pytestmark = pytest.mark.timeout(120)
CHUNK = 50


@pytest.mark.parametrize("start", range(0, 300, CHUNK))
def test_every_case_keeps_the_laws(start: int) -> None:
    seed = first_failure(start, start + CHUNK)
    assert seed is None, f"\n{failing_story(seed)}"


def test_one_seed_is_one_case_and_takes_the_same_steps() -> None:
    for seed in range(30):
        assert case_of(seed) == case_of(seed)
        first, second = (_steps(played(case_of(seed)).lines) for _ in range(2))
        assert first == second


def _steps(lines: list[str]) -> list[str]:
    """The story without the ids that are made anew each time."""
    return [re.sub(r"\b[a-z]+_[0-9a-f]{12,}", "id", line) for line in lines]


def test_the_cases_hold_what_they_are_about() -> None:
    """Deaths, stops, take-overs, approvals and late answers are met, not only drawn."""
    worlds = [played(case_of(seed)) for seed in range(60)]
    lines = [line for world in worlds for line in world.lines]
    for met, least in (
        ("DIES", 10),
        ("STOPS", 10),
        ("refused", 5),
        ("forgotten", 5),
        ("is handed take_", 5),
        ("approval_resolved", 20),
        ("AskTimeout", 5),
        ("bury", 3),
    ):
        assert sum([met in line for line in lines]) >= least, met
    assert {entry.name for world in worlds for entry in world.ledger} == {
        *("look", "put", "pay", "sign", "mail")
    }


JOB = Job(0, "clerk", "a", turns=(("pay",),), asked=False)


def _plain(*faults: Fault, jobs: tuple[Job, ...] = (JOB,)) -> Case:
    return Case(processes=1, jobs=jobs, faults=faults)


def test_a_process_that_dies_before_an_effect_has_it_told_as_unknown() -> None:
    """The start of the effect was kept, so nobody runs it again."""
    calls = _call_of("tool_started")
    world = played(_plain(Fault(calls, "dies after")))
    assert (world.broken, world.ledger) == (None, [])
    messages = [one for state in world.books.states.values() for one in state.messages]
    (result,) = [one for one in messages if isinstance(one, ToolResultMessage)]
    assert result.status is Status.UNKNOWN_OUTCOME


def test_a_lost_acknowledgement_of_an_end_does_nothing_twice() -> None:
    world = played(_plain(Fault(_call_of("run_finished"), "forgotten")))
    assert (world.broken, len(world.ledger)) == (None, 1)


def _call_of(record: str) -> int:
    """The number of the call that keeps this record, where nothing goes wrong."""
    (line,) = [line for line in played(_plain()).lines if f" {record}" in line]
    return int(line.split()[2])


def test_a_failing_case_is_made_small() -> None:
    """What fails here is 'a clerk pays while something is refused': nothing else is left."""

    def fails(case: Case) -> bool:
        pays = any(["pay" in turn for job in case.jobs for turn in job.turns])
        return pays and any([fault.wrong == "refused" for fault in case.faults])

    case = next(case for seed in range(200) if fails(case := case_of(seed)))
    small = shrunk(case, fails)
    assert (len(small.jobs), len(small.faults), small.processes) == (1, 1, 1)
    assert len(small.jobs[0].turns) == 1


class Forgetful(Store):
    """Takes an id in again."""

    async def send(self, *letters: Letter) -> None:
        self._seen.clear()
        await super().send(*letters)


class Lossy(Store):
    """Keeps what is done, and not what plain actors send with it."""

    def commit_now(self, commit: Commit) -> None:
        kept = [letter for letter in commit.sends if "value" not in letter.body]
        super().commit_now(replace(commit, sends=kept))


class Deaf(Store):
    """Gives what runs to nobody when its process has died."""

    def commit_now(self, commit: Commit) -> None:
        is_running = commit.standing is Standing.RUNNING
        super().commit_now(replace(commit, standing=None if is_running else commit.standing))


@pytest.mark.parametrize("store", [Forgetful, Lossy, Deaf])
def test_a_planted_defect_is_found(store: type[Store]) -> None:
    assert any([fault_of(case_of(seed), partial(played, store=store)) for seed in range(60)])
