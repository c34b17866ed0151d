"""What becomes of an actor that fails on a message which nobody waits for."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from callboard.errors import ConfigurationError


class OnFailure(StrEnum):
    """What a supervisor does. The failed letter is a dead letter in each case."""

    ESCALATE = "escalate"  # the whole system ends with ActorFailed
    RESTART = "restart"  # a new actor takes the mailbox over; after too many of them: escalate
    STOP = "stop"  # the actor ends, its unread letters are dead letters
    RESUME = "resume"  # the same actor goes on with the next letter


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervision:
    """How failures of one actor are answered.

    More than `most_restarts` within `within_s` seconds escalate. The first restart comes at once;
    the following ones wait `backoff_s`, then twice as long each, up to `longest_backoff_s`.
    """

    on_failure: OnFailure = OnFailure.ESCALATE
    most_restarts: int = 5
    within_s: float = 60.0
    backoff_s: float = 0.1
    longest_backoff_s: float = 10.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_failure", OnFailure(self.on_failure))
        if self.most_restarts < 0 or min(self.within_s, self.backoff_s) < 0:
            raise ConfigurationError(f"{self!r}: numbers below zero")


class Restarts:
    """The restarts of one actor, as its supervision counts them."""

    def __init__(self, supervision: Supervision) -> None:
        self._supervision = supervision
        self._times: deque[float] = deque()

    def next_wait_s(self, now: float) -> float | None:
        """How long to wait before the next restart; None if there were too many of them."""
        rules = self._supervision
        while self._times and self._times[0] <= now - rules.within_s:
            self._times.popleft()
        earlier = len(self._times)
        if earlier >= rules.most_restarts:
            return None
        self._times.append(now)
        if not earlier:
            return 0.0
        return min(rules.backoff_s * 2.0 ** (earlier - 1), rules.longest_backoff_s)
