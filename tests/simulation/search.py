"""Looks for a case that breaks a law, makes it small, and tells it as a short story."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.framework.histories.search import _bounded
from tests.simulation.case import Case, story
from tests.simulation.generate import case_of
from tests.simulation.play import played
from tests.simulation.world import World

TRIES = 400  # to make a case smaller
STEPS = 40  # of the story, from its end


def first_failure(start: int, end: int) -> int | None:
    """The first of these seeds whose case breaks a law."""
    return next((seed for seed in range(start, end) if fault_of(case_of(seed))), None)


def fault_of(case: Case, play: Callable[[Case], World] = played) -> str | None:
    """The law that this case breaks, and how; None if all hold."""
    try:
        with _bounded():
            world = play(case)
    except Exception as error:
        where = "".join(traceback.format_exception(error, limit=-4))
        return f"{type(error).__name__} comes out: {error}\n{where}"
    return None if world.broken is None else str(world.broken)


def failing_story(seed: int) -> str:
    """The case of a seed that fails, made small, with the steps that lead to it."""
    return smallest_story(case_of(seed), played)


def smallest_story(case: Case, play: Callable[[Case], World]) -> str:
    fault = fault_of(case, play)
    assert fault is not None
    law = fault.split(":")[0]
    small = shrunk(case, lambda other: (fault_of(other, play) or "").split(":")[0] == law)
    try:
        steps = play(small).lines[-STEPS:]
    except Exception:  # which is what it is about
        steps = []
    return "\n".join([story(small), *steps, f"broken: {fault_of(small, play)}"])


def shrunk(case: Case, fails: Callable[[Case], bool]) -> Case:
    """A smaller case that fails too, by leaving out one part after the other."""
    tries, smaller = 0, True
    while smaller and tries < TRIES:
        smaller = False
        for candidate in _smaller(case):
            tries += 1
            if fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for name in ("jobs", "faults", "deaths"):
        parts = getattr(case, name)
        for at in range(len(parts)):
            yield replace(case, **{name: parts[:at] + parts[at + 1 :]})
    for at, job in enumerate(case.jobs):
        for turn in range(len(job.turns)):
            fewer = replace(job, turns=job.turns[:turn] + job.turns[turn + 1 :])
            yield replace(case, jobs=(*case.jobs[:at], fewer, *case.jobs[at + 1 :]))
    if case.processes > 1:
        yield replace(case, processes=case.processes - 1)
    if case.escalates:
        yield replace(case, escalates=False)
