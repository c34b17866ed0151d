"""What an agent does next: a pure function of its state. There is no second way to resume.

| action      | when (the first that matches)                                                  |
|-------------|--------------------------------------------------------------------------------|
| `Close`     | an interrupt is queued: the open round is closed                               |
| `Skip`      | steering waits, and by its policy the open calls do not run                    |
| `Act`       | the open round has calls without a result that may run now                     |
| `Park`      | a call of the open round waits for a human                                     |
| `Summarize` | there is something to answer, and a limit is reached                           |
| `Reason`    | there is something to answer: a prompt, results, steering, then a follow-up    |
| `Finish`    | none of these                                                                  |
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from callboard.budget import NO_LIMITS, Budget, reached
from callboard.errors import ConfigurationError
from callboard.journaling.records import Queued
from callboard.journaling.transcript import CallState, State
from callboard.plain import plain
from callboard.queues import QueueMode, SteeringPolicy

MAX_ITERS = 10


class ToolExecution(StrEnum):
    """How the calls of one message run."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the caller fixed for an agent's runs."""

    max_iters: int | None = MAX_ITERS
    budget: Budget = NO_LIMITS
    tool_execution: ToolExecution = ToolExecution.PARALLEL
    queue_mode: QueueMode = QueueMode.ONE_AT_A_TIME
    steering_policy: SteeringPolicy = SteeringPolicy.AFTER_BATCH


def rules_of(*, max_iters: int | None, budget: Budget, **more: Any) -> Rules:
    """The rules of an agent: `max_iters` is 10 unless the budget limits the turns.

    Raises:
        TypeError: both limit the turns.
        ConfigurationError: no attempt could take a turn.
    """
    if max_iters is not None and budget.turns is not None:
        raise TypeError("give max_iters or Budget(turns=...), not both")
    if max_iters is not None and max_iters < 1:
        raise ConfigurationError(f"max_iters={max_iters!r}: an attempt needs at least 1 turn")
    if max_iters is None and budget.turns is None:
        max_iters = MAX_ITERS
    return Rules(max_iters=max_iters, budget=budget, **more)


@dataclass(frozen=True, slots=True)
class Close:
    """Close the open round, without another model call."""


@plain
class Skip:
    """Close these calls unrun: the user has said something."""

    calls: tuple[CallState, ...]


@plain
class Act:
    """Decide and run these calls."""

    calls: tuple[CallState, ...]


@dataclass(frozen=True, slots=True)
class Park:
    """Leave the run until a human answers."""


@plain
class Summarize:
    """Answer with what there is, because of this limit."""

    limit: str


@plain
class Reason:
    """Take these waiting messages into the conversation and ask the model."""

    take: tuple[Queued, ...] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is answered."""


Action = Close | Skip | Act | Park | Summarize | Reason | Finish

CLOSE, PARK, REASON, FINISH = Close(), Park(), Reason(), Finish()


def next_action(state: State, rules: Rules) -> Action:
    """What to do now. Pure: no I/O, no clock."""
    if state.interrupted:
        return CLOSE
    if state.round is not None and state.round.open:
        if stops_batch(state, rules):
            return Skip(state.open_calls)
        ready = _ready(state, rules)
        return Act(ready) if ready else PARK
    take: tuple[Queued, ...] = ()
    if state.queues:
        take = state.queues.due(rules.queue_mode, idle=not state.unanswered)
    if not state.unanswered and not take:
        return FINISH
    limit = reached(rules.budget, state.use, max_iters=rules.max_iters)
    if limit is not None:
        return Summarize(limit)
    return Reason(take) if take else REASON


def stops_batch(state: State, rules: Rules) -> bool:
    """Whether no further call of the open round may start: an interrupt, or steering."""
    if state.interrupted:
        return True
    after_batch = rules.steering_policy is SteeringPolicy.AFTER_BATCH
    return bool(state.queues.steering) and not after_batch


def _ready(state: State, rules: Rules) -> tuple[CallState, ...]:
    """The calls that may run; in sequence, those behind a waiting call wait too."""
    round = state.round
    if round is not None and round.open == len(round.calls) and not state.approvals:
        return tuple(round.calls.values())
    ready: list[CallState] = []
    for call in state.open_calls:
        if not state.is_pending(call):
            ready.append(call)
        elif rules.tool_execution is ToolExecution.SEQUENTIAL:
            break
    return tuple(ready)
