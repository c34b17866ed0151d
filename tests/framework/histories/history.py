"""One history: what a model will say, how the agent is made, and what is done to it and when.

A pure description. `play.py` plays it, `shrink.py` makes it smaller, `story` tells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from callboard.decide import ToolExecution
from callboard.queues import QueueMode, SteeringPolicy

Deed = Literal[
    "cancel",
    "interrupt",
    "clear",  # interrupt(clear=True)
    "steer",
    "mention",  # steer(wake=False)
    "follow_up",
    "withdraw",
    "cancel_call",
    "approve",
    "deny",
    "run",
    "resume",
    "die",
]
Temper = Literal[
    "text",
    "bad",
    "slow",
    "refusal",
    "length",
    "empty",
    "thought",
    "drop",
    "eof",
    "down",
    "broken",
    "silent",  # empty until the loop gives up
    "severed",  # broken off until the loop gives up
]


@dataclass(frozen=True, slots=True)
class Called:
    """One call of the model. Without an id the model counts one."""

    name: str
    raw: str
    id: str | None

    def __str__(self) -> str:
        return f"{self.name}({self.raw}) {'' if self.id is None else repr(self.id)}".rstrip()


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of the model: its calls, or what it says without any."""

    temper: Temper = "text"
    calls: tuple[Called, ...] = ()

    def __str__(self) -> str:
        return f"{self.temper}: {', '.join(map(str, self.calls))}" if self.calls else self.temper


@dataclass(frozen=True, slots=True)
class Act:
    """Something done to the agent `at` these virtual seconds and so many ticks later."""

    deed: Deed
    at: float = 0.0
    ticks: int = 0

    def __str__(self) -> str:
        return f"{self.deed} at {self.at:g} s + {self.ticks} ticks"


@dataclass(frozen=True, slots=True)
class Leg:
    """One run or resume, and what is done meanwhile. `native`: in an asyncio task of its own."""

    start: Literal["run", "resume"] = "run"
    acts: tuple[Act, ...] = ()
    native: bool = False

    def __str__(self) -> str:
        by = " (a task)" if self.native else ""
        return f"{self.start}{by}; {'; '.join(map(str, self.acts))}".rstrip("; ")


@dataclass(frozen=True, slots=True)
class Fault:
    """An append that fails, before or after it has written (an unknown end)."""

    append: int
    written: bool

    def __str__(self) -> str:
        return f"append {self.append} fails {'after' if self.written else 'before'} writing"


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    seed: int = 0
    backend: Literal["asyncio", "trio"] = "asyncio"
    script: tuple[Said, ...] = ()
    legs: tuple[Leg, ...] = (Leg(),)
    layers: tuple[str, ...] = ()
    execution: ToolExecution = ToolExecution.PARALLEL
    policy: SteeringPolicy = SteeringPolicy.AFTER_BATCH
    mode: QueueMode = QueueMode.ONE_AT_A_TIME
    max_iters: int = 10
    max_concurrency: int | None = None
    model_calls: int | None = None  # of the budget
    moment_s: float | None = None  # what an append of a slow journal takes; None: in memory
    faults: tuple[Fault, ...] = ()
    audit_fails: int | None = None  # at which record


OPTIONS = (
    *("execution", "policy", "mode", "max_iters", "max_concurrency", "model_calls"),
    "audit_fails",
)


def story(history: History) -> str:
    """The history in a few lines, for people."""
    own, plain = history, History()
    options = [
        f"{name}={value}"
        for name in OPTIONS
        if (value := getattr(own, name)) != getattr(plain, name)
    ]
    journal = "in memory" if own.moment_s is None else f"slow ({own.moment_s:g} s)"
    layers = " > ".join(own.layers) or "no layers"
    lines = [
        f"seed {own.seed} on {own.backend}; {layers}; {' '.join(options) or 'defaults'}",
        f"journal {journal}; {'; '.join(map(str, own.faults)) or 'no faults'}",
        *[f"the model says {at}: {said}" for at, said in enumerate(own.script, 1)],
        *[f"leg {at}: {leg}" for at, leg in enumerate(own.legs, 1)],
    ]
    return "\n".join(lines)
