"""Random histories. One seed is one history, on every machine and in every process."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from callboard.decide import ToolExecution
from callboard.queues import QueueMode, SteeringPolicy
from tests.framework.histories.history import (
    Act,
    Called,
    Child,
    Deed,
    Fault,
    History,
    Leg,
    Reader,
    Said,
    Temper,
)
from tests.framework.histories.house import HOUSE
from tests.framework.histories.layers import LAYERS
from tests.framework.histories.stacks import lawful

NAMES = (
    *("look", "fetch", "put", "put", "pay", "pay", "post", "boom", "deaf", "stubborn", "feed"),
    *("alone", "done", "stop", "late", "hint", "nope", "film", "tome", "leak"),
)
RAW = ("", "{}", '{"x":1}', '{"x":"2"}', '{"x":3}', '{"x":4}', '{"x":5}', '{"x":5}', '{"x":9}')
BELOW = (*RAW, '{"x":5}', '{"x":5}', '{"x":5}', '{"x":5}')  # which a guard asks about
BAD_RAW = ('{"x":"no"}', "[1]", '{"x":', '{"y":1}')
TEMPERS: tuple[Temper, ...] = (
    *("text", "text", "text", "text", "bad", "bad", "slow", "slow", "empty", "thought"),
    *("drop", "eof", "down", "refusal", "length", "broken", "silent", "severed"),
    *("flood", "busy", "overflow"),
)
CALLING: tuple[Temper, ...] = (
    "text",
    "text",
    "text",
    "text",
    "text",
    "text",
    "slow",
    "length",
    "refusal",
)
DEEDS: tuple[Deed, ...] = (
    *("cancel", "cancel", "interrupt", "interrupt", "clear", "steer", "steer", "steer", "mention"),
    *("follow_up", "follow_up", "withdraw", "cancel_call", "approve", "approve", "deny", "run"),
    *("resume", "die", "die", "absent", "close", "close", "show"),
)
OFTEN = {"guard": 0.6, "spending": 0.4}  # of the layers
TIMES = (0.0, 0.0, 0.0, 0.25, 0.25, 0.5, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 20.0)
TICKS = (0, 0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30)


def history_of(seed: int) -> History:
    return made(Random(seed), seed=seed)


def made(rng: Any, *, seed: int) -> History:
    """A history of these random choices (`rng` is a Random, or hypothesis in its place)."""
    layers = [name for name in LAYERS if rng.random() < OFTEN.get(name, 0.3)]
    if rng.random() < 0.35:
        layers += [name for name in HOUSE if rng.random() < 0.35]
    rng.shuffle(layers)
    slow = rng.random() < 0.4
    keeps = rng.random() < 0.3
    below = rng.random() < 0.3
    return History(
        seed=seed,
        backend="trio" if rng.random() < 0.15 else "asyncio",
        script=tuple([said(rng, f"c{at}", below=below) for at in range(rng.randint(0, 6))]),
        legs=tuple([leg(rng) for _ in range(rng.randint(1, 4))]),
        layers=lawful(layers),
        execution=rng.choice(list(ToolExecution)),
        policy=rng.choice(list(SteeringPolicy)),
        mode=rng.choice(list(QueueMode)),
        max_iters=rng.choice([1, 2, 3, 10, 10, 10]),
        max_concurrency=rng.choice([None, None, None, 1, 2]),
        model_calls=rng.choice([None] * 9 + [1, 3]),
        moment_s=rng.choice([0.0, 0.0, 0.25, 0.1]) if slow else None,
        faults=faults(rng) if slow else (),
        supplies=supplies(rng),
        further=supplies(rng),
        keeps_blobs=keeps,
        blob_faults=(rng.randint(1, 4),) if keeps and rng.random() < 0.3 else (),
        withdraws=rng.random() < 0.2,
        child=child(rng) if below else None,
        audit_fails=rng.randint(1, 40) if "audit" in layers and rng.random() < 0.3 else None,
        unwatched=rng.random() < 0.5,
    )


def said(rng: Any, id: str, *, below: bool = False, raws: Sequence[str] = RAW) -> Said:
    if rng.random() < 0.3:
        return Said(rng.choice(TEMPERS))
    letters = "abcd"[: rng.choice([1, 1, 2, 2, 3, 4])]
    calls = [called(rng, f"{id}{letter}", below=below, raws=raws) for letter in letters]
    return Said(rng.choice(CALLING), tuple(calls))


def called(rng: Any, id: str, *, below: bool, raws: Sequence[str]) -> Called:
    given = rng.choice([id] * 8 + [None, "", "same"])
    if below and rng.random() < 0.4:
        return Called("child", '{"task":"do it"}', given)
    name = "thread" if rng.random() < 0.01 else rng.choice(NAMES)
    raw = rng.choice(BAD_RAW) if rng.random() < 0.08 else rng.choice(raws)
    return Called(name, raw, given)


def child(rng: Any) -> Child:
    script = [said(rng, f"k{at}", raws=BELOW) for at in range(rng.randint(1, 6))]
    return Child(tuple(script), rng.random() < 0.7, rng.choice([None, None, 1, 2, 5]))


def leg(rng: Any) -> Leg:
    acts = [act(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4]))]
    runs = rng.random() < 0.7
    return Leg(
        "run" if runs else "resume",
        tuple(acts),
        rng.random() < 0.5,
        reader=reader(rng) if runs and rng.random() < 0.4 else None,
        watch=rng.choice([1, 2, 5, 100]) if rng.random() < 0.3 else None,
        picture=runs and rng.random() < 0.1,
    )


def reader(rng: Any) -> Reader:
    leaves_after = rng.choice([None, None, None, 1, 2, 3, 5, 8, 13])
    fails = leaves_after is not None and rng.random() < 0.3
    return Reader(rng.choice([0.0, 0.0, 0.01, 0.25]), leaves_after, fails)


def supplies(rng: Any) -> tuple[int, ...]:
    """What the first polls of a life give."""
    if rng.random() < 0.7:
        return ()
    return tuple([rng.choice([0, 0, 1, 1, 2, -1]) for _ in range(rng.randint(1, 4))])


def act(rng: Any) -> Act:
    return Act(rng.choice(DEEDS), rng.choice(TIMES), rng.choice(TICKS))


def faults(rng: Any) -> tuple[Fault, ...]:
    number = rng.choice([0, 0, 0, 1, 1, 2])
    return tuple([Fault(rng.randint(1, 30), rng.random() < 0.5) for _ in range(number)])
