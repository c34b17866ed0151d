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
    "absent",  # die, and come back when every question has expired
    "close",  # the stream that is followed, from a task of its own
    "show",  # follow_up with a large picture
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
    "busy",  # says how long to wait
    "overflow",  # the request was too long
    "flood",  # more deltas than a stream holds
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
class Reader:
    """Who follows a run by `stream`: how long each event takes, and after how many it leaves."""

    pause_s: float = 0.0
    leaves_after: int | None = None
    fails: bool = False  # it leaves with an error of its own

    def __str__(self) -> str:
        left = "" if self.leaves_after is None else f", leaves after {self.leaves_after}"
        return f"read with {self.pause_s:g} s{left}{' by an error' if self.fails else ''}"


@dataclass(frozen=True, slots=True)
class Leg:
    """One run or resume, and what is done meanwhile. `native`: in an asyncio task of its own."""

    start: Literal["run", "resume"] = "run"
    acts: tuple[Act, ...] = ()
    native: bool = False
    reader: Reader | None = None  # of a run
    watch: int | None = None  # how many events a bounded view beside it holds
    picture: bool = False  # the prompt has a large one

    def __str__(self) -> str:
        words = [
            f"{self.start}{' (a task)' if self.native else ''}",
            *([str(self.reader)] if self.reader else []),
            *([f"watched by {self.watch}"] if self.watch else []),
            *(["with a picture"] if self.picture else []),
            *map(str, self.acts),
        ]
        return "; ".join(words)


@dataclass(frozen=True, slots=True)
class Fault:
    """An append that fails, before or after it has written (an unknown end)."""

    append: int
    written: bool

    def __str__(self) -> str:
        return f"append {self.append} fails {'after' if self.written else 'before'} writing"


@dataclass(frozen=True, slots=True)
class Child:
    """An agent that is a tool of the other one, and what its model says."""

    script: tuple[Said, ...] = ()
    guarded: bool = False
    model_calls: int | None = None  # of its own budget

    def __str__(self) -> str:
        guard = " (guarded)" if self.guarded else ""
        calls = "" if self.model_calls is None else f" ({self.model_calls} model calls)"
        return f"the child{guard}{calls} says {' / '.join(map(str, self.script)) or 'ok'}"


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
    supplies: tuple[int, ...] = ()  # steering that each poll of a life gives; below 0 it fails
    further: tuple[int, ...] = ()  # the same for follow-ups
    keeps_blobs: bool = False
    blob_faults: tuple[int, ...] = ()  # at which put
    withdraws: bool = False  # what waits for a human, at a new prompt
    child: Child | None = None
    unwatched: bool = False  # but for readers: then it may be written in fewer commits

    @property
    def is_watched(self) -> bool:
        """Whether all events are kept: readers are held against them."""
        return not self.unwatched or any([leg.reader or leg.watch for leg in self.legs])


OPTIONS = (
    *("execution", "policy", "mode", "max_iters", "max_concurrency", "model_calls"),
    *("audit_fails", "supplies", "further", "keeps_blobs", "blob_faults", "withdraws"),
    "unwatched",
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
        *([str(own.child)] if own.child else []),
        *[f"leg {at}: {leg}" for at, leg in enumerate(own.legs, 1)],
    ]
    return "\n".join(lines)
