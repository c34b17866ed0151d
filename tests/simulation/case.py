"""One case: what is sent to whom and when, and what goes wrong at which call of an engine.

A pure description. `play.py` plays it, `search.py` makes it smaller, `story` tells it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Wrong = Literal[
    "refused",  # CommitFailed, and nothing was kept
    "forgotten",  # CommitFailed, but all of it was kept
    "dies before",  # the process, which releases nothing
    "dies after",
    "stops before",  # as by SIGSTOP, for so many seconds
    "stops after",
    "slow",
]
Kind = Literal["book", "desk", "clerk", "chief"]  # two plain actors, and two agents


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at one call of an engine; all processes count together."""

    call: int
    wrong: Wrong
    seconds: float = 0.0

    def __str__(self) -> str:
        lasts = f" for {self.seconds:g} s" if self.seconds else ""
        return f"call {self.call} {self.wrong}{lasts}"


@dataclass(frozen=True, slots=True)
class Job:
    """One letter from outside, sent until it is acknowledged.

    `turns` are what an agent's model calls, one turn after the other, or whom a desk tells.
    """

    number: int
    kind: Kind
    key: str
    at: float = 0.0
    turns: tuple[tuple[str, ...], ...] = ()
    asked: bool = True
    timeout_s: float = 60.0
    after_s: float = 0.0

    @property
    def id(self) -> str:
        return f"job-{self.number}"

    @property
    def to(self) -> str:
        return f"{self.kind}/{self.key}"

    @property
    def text(self) -> str:
        """The prompt, for agents."""
        return f"job {self.number}: {'; '.join([' '.join(turn) for turn in self.turns])}"

    def __str__(self) -> str:
        how = f"asked for {self.timeout_s:g} s" if self.asked else "told"
        later = f", due {self.after_s:g} s later" if self.after_s else ""
        return f"at {self.at:g} s {self.to} is {how}{later}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    seed: int = 0
    backend: Literal["asyncio", "trio"] = "asyncio"
    processes: int = 2
    escalates: bool = False  # an actor that fails ends its process
    jobs: tuple[Job, ...] = ()
    faults: tuple[Fault, ...] = ()
    deaths: tuple[float, ...] = ()  # when a process is killed, whatever it does


def story(case: Case) -> str:
    """The case in a few lines, for people."""
    escalates = ", whose actors escalate" if case.escalates else ""
    lines = [
        f"seed {case.seed} on {case.backend}; {case.processes} processes{escalates}",
        *map(str, case.jobs),
        *map(str, case.faults),
        *[f"a process is killed at {at:g} s" for at in case.deaths],
    ]
    return "\n".join(lines)
