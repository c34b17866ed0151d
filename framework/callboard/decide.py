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
from callboard.replies import Outcome

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
    if max_iters is not None and (type(max_iters) is not int or max_iters < 1):
        raise ConfigurationError(
            f"max_iters={max_iters!r}: give a whole number of turns, at least 1"
        )
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
    """Answer with what there is, because of this limit; that is then the outcome of the run."""

    limit: str
    outcome: Outcome = Outcome.BUDGET


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
    round, queues = state.round, state.queues
    if round is not None and round.open:
        if queues.steering and stops_batch(state, rules):
            return Skip(state.open_calls)
        ready = _ready(state, rules)
        return Act(ready) if ready else PARK
    take: tuple[Queued, ...] = ()
    if queues.steering or queues.follow_up:
        take = queues.due(rules.queue_mode, idle=not state.unanswered)
    if not state.unanswered and not take:
        return FINISH
    if rules.max_iters is not None and state.use.attempt_turns >= rules.max_iters:
        return Summarize(f"max_iters={rules.max_iters}", Outcome.MAX_ITERS)
    limit = reached(rules.budget, state.use)
    if limit is not None:
        return Summarize(limit)
    return Reason(take) if take else REASON


def stops_batch(state: State, rules: Rules) -> bool:
    """Whether no further call of the open round may start: an interrupt, or steering."""
    if state.interrupted:
        return True
    return bool(state.queues.steering) and rules.steering_policy is not SteeringPolicy.AFTER_BATCH


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
