"""When a model is asked again, and after how long: the pure part of `retry`.

The waits are tenacity's strategies. Its loops are not used: they retry a whole function, by the
clock on the wall, and what is retried here is a stream that broke in the middle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from callboard.errors import RETRYABLE, ConfigurationError, ErrorCategory, MissingExtra, ModelError

REFUSED_AT_ONCE = frozenset({429, 503, 529})  # the provider did nothing: it had no room


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is sent, and what is waited in between.

    `attempts` counts the first one too. Where the provider says how long to wait, that is waited;
    else a random time up to `first_wait_s`, doubled with each attempt, at most `longest_wait_s`
    (or what `wait`, a strategy of tenacity, says). A wait that would bring the waiting for this
    request above `total_wait_s` is not begun: the failure is raised at once. None is no limit.

    Raises:
        ConfigurationError: a number makes no sense, or a category is one that asking again
            cannot help.
        MissingExtra: tenacity is not installed.
    """

    attempts: int = 5
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0
    total_wait_s: float | None = 120.0
    categories: frozenset[ErrorCategory] = RETRYABLE
    wait: Callable[[Any], float] | None = None

    def __post_init__(self) -> None:
        if find_spec("tenacity") is None:
            raise MissingExtra("tenacity", extra="retry")
        if type(self.attempts) is not int or self.attempts < 1:
            raise ConfigurationError(
                f"RetryPolicy(attempts={self.attempts!r}): give a whole number, 1 or more"
            )
        for name in ("first_wait_s", "longest_wait_s", "total_wait_s"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigurationError(f"RetryPolicy({name}={value!r}): give seconds, 0 or more")
        if hopeless := sorted(frozenset(self.categories) - RETRYABLE):
            raise ConfigurationError(
                f"RetryPolicy(categories=...) has {', '.join(hopeless)}, where the same request "
                f"fails again; there are {', '.join(sorted(RETRYABLE))}"
            )


class Attempts:
    """The attempts at one request, made when the first one failed."""

    __slots__ = ("_policy", "_state", "_stop", "_wait")

    def __init__(self, policy: RetryPolicy) -> None:
        import tenacity  # it takes 50 ms, which only a failure should cost

        self._policy = policy
        self._stop = tenacity.stop_after_attempt(policy.attempts)
        self._wait = policy.wait or tenacity.wait_random_exponential(
            multiplier=policy.first_wait_s, max=policy.longest_wait_s
        )
        self._state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})

    @property
    def count(self) -> int:
        """How many attempts there were."""
        return self._state.attempt_number

    def wait_s(self, failure: ModelError) -> float | None:
        """What to wait before the next attempt; None where there is to be none."""
        state = self._state
        if failure.category not in self._policy.categories or failure.final:
            return None
        state.set_exception((type(failure), failure, failure.__traceback__))
        if self._stop(state):
            return None
        wait_s = failure.retry_after_s or self._wait(state)
        longest = self._policy.total_wait_s
        if longest is not None and state.idle_for + wait_s > longest:
            return None
        state.idle_for += wait_s
        state.prepare_for_next_attempt()
        return wait_s


def may_act_twice(failure: ModelError, *, acts: bool, came: bool) -> bool:
    """Whether sending the request again could repeat what the provider did for it.

    `acts` says that the provider does such things, `came` that something of an answer arrived.
    """
    return acts and (came or failure.status not in REFUSED_AT_ONCE)
