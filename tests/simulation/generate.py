"""Random cases, one for each seed."""

from __future__ import annotations

from random import Random
from typing import get_args

from tests.simulation.case import Case, Fault, Job, Kind, Wrong

CALLS = (40, 100, 250)  # among how many of the first ones the faults lie; a case has about 100
TOOLS = ("pay", "put", "look", "sign", "mail")
KINDS: tuple[Kind, ...] = ("book", "book", "desk", "desk", "clerk", "clerk", "clerk", "chief")


def case_of(seed: int) -> Case:
    """The case of a seed."""
    chance = Random(seed)
    return Case(
        seed=seed,
        backend=chance.choice(("asyncio", "asyncio", "trio")),
        processes=chance.choice((1, 2, 2, 3)),
        escalates=chance.random() < 0.2,
        jobs=tuple([_job(chance, number) for number in range(chance.randint(2, 9))]),
        faults=_faults(chance),
        deaths=tuple([round(chance.uniform(0, 25), 2) for _ in range(chance.choice((0, 0, 1, 2)))]),
    )


def _job(chance: Random, number: int) -> Job:
    kind = chance.choice(KINDS)
    return Job(
        number,
        kind,
        key=chance.choice("ab"),
        at=round(chance.choice((0.0, chance.uniform(0, 15))), 2),
        turns=tuple([_turn(chance, kind) for _ in range(chance.randint(0, 3))]),
        asked=chance.random() < 0.6,
        timeout_s=chance.choice((1.0, 60.0, 60.0)),
        after_s=chance.choice((0.0, 0.0, 0.0, 3.0, 12.0)),
    )


def _turn(chance: Random, kind: Kind) -> tuple[str, ...]:
    if kind == "desk":
        return (chance.choice(("tell", "tell", "ask")),)
    tools = (*TOOLS, "clerk", "clerk") if kind == "chief" else TOOLS
    return tuple([chance.choice(tools) for _ in range(chance.choice((1, 1, 2)))])


def _faults(chance: Random) -> tuple[Fault, ...]:
    calls = chance.choice(CALLS)
    found = [_fault(chance, calls) for _ in range(chance.randint(0, 8))]
    return tuple(sorted(found, key=lambda fault: fault.call))


def _fault(chance: Random, calls: int) -> Fault:
    wrong: Wrong = chance.choice(get_args(Wrong))
    lasts = wrong.startswith("stops") or wrong == "slow"
    seconds = chance.choice((0.5, 5.0, 15.0, 30.0)) if lasts else 0.0
    return Fault(chance.randrange(1, calls), wrong, seconds)
