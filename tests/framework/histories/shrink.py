"""A failing history made small: every part that the failure does not need is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from tests.framework.histories.history import Act, History, Leg, Said

PLAIN = History()
TRIES = 1_500


def shrunk(history: History, fails: Callable[[History], bool]) -> History:
    """A smaller history that fails too, by dropping one part after the other."""
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(history):
            tries += 1
            if tries > TRIES:
                return history
            if fails(candidate):
                history, smaller = candidate, True
                break
    return history


def _smaller(history: History) -> Iterator[History]:
    for name in ("legs", "script", "layers", "faults"):
        parts = getattr(history, name)
        for at in range(len(parts)):
            yield replace(history, **{name: parts[:at] + parts[at + 1 :]})
    for at, leg in enumerate(history.legs):
        for fewer in _smaller_legs(leg):
            yield replace(history, legs=(*history.legs[:at], fewer, *history.legs[at + 1 :]))
    for at, said in enumerate(history.script):
        for less in _smaller_answers(said):
            yield replace(history, script=(*history.script[:at], less, *history.script[at + 1 :]))
    for field in fields(History):
        plain = getattr(PLAIN, field.name)
        parts = field.name in ("legs", "script", "layers", "faults", "seed")
        if not parts and getattr(history, field.name) != plain:
            yield replace(history, **{field.name: plain})


def _smaller_legs(leg: Leg) -> Iterator[Leg]:
    for at in range(len(leg.acts)):
        yield replace(leg, acts=leg.acts[:at] + leg.acts[at + 1 :])
    if leg.native:
        yield replace(leg, native=False)
    for at, act in enumerate(leg.acts):
        for simpler in _simpler_acts(act):
            yield replace(leg, acts=(*leg.acts[:at], simpler, *leg.acts[at + 1 :]))


def _simpler_acts(act: Act) -> Iterator[Act]:
    if act.ticks:
        yield replace(act, ticks=0)
        yield replace(act, ticks=act.ticks // 2)
        yield replace(act, ticks=act.ticks - 1)
    if act.at:
        yield replace(act, at=0.0)


def _smaller_answers(said: Said) -> Iterator[Said]:
    for at in range(len(said.calls)):
        yield replace(said, calls=said.calls[:at] + said.calls[at + 1 :])
    if said.temper != "text":
        yield replace(said, temper="text")
    for at, call in enumerate(said.calls):
        if call.raw:
            plain = replace(call, raw="")
            yield replace(said, calls=(*said.calls[:at], plain, *said.calls[at + 1 :]))
