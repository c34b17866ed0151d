"""What was sent within the last minute, and when there is room for more: the pure part of
`rate_limiter`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from callboard.errors import ConfigurationError

WINDOW_S = 60.0
_NOW_S = 1e-6  # closer than that is now: clocks of event loops round


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """What one model takes; None is no limit. No minute, wherever it begins, holds more.

    `tokens_per_minute` counts what a request is thought to need (a token for four bytes, and
    the settings' `max_tokens`) until its usage is known. A request that is larger than the limit
    goes alone. `concurrency` is how many answers may be under way; a place is held until the
    answer is over, or with `held_until="first_delta"` until it begins. After "too many requests"
    everybody waits as long as the provider asked, or `pause_s`. Who has waited `longest_wait_s`
    for its turn, or would have to, gives up.

    Raises:
        ConfigurationError: a limit is no whole number above zero.
    """

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    held_until: Literal["first_delta", "end"] = "end"
    pause_s: float = 2.0
    longest_wait_s: float | None = 300.0

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "concurrency", "longest_wait_s"):
            value = getattr(self, name)
            whole = name == "longest_wait_s" or type(value) is int
            if value is not None and not (whole and value > 0):
                raise ConfigurationError(
                    f"RateLimit({name}={value!r}): give a whole number above zero, or leave it "
                    "out for no limit"
                )
        if self.held_until not in ("first_delta", "end"):
            raise ConfigurationError(
                f"RateLimit(held_until={self.held_until!r}): there are 'first_delta' and 'end'"
            )
        if not self.pause_s >= 0:
            raise ConfigurationError(f"RateLimit(pause_s={self.pause_s!r}): give 0 or more")


class Sent:
    """A request that was sent; `counts` until the minute after it is over."""

    __slots__ = ("counts", "tokens", "until")

    def __init__(self, until: float, tokens: int) -> None:
        self.until = until
        self.tokens = tokens
        self.counts = True


class Window:
    """The requests of the last minute, oldest first. Times are those of one clock, in seconds."""

    __slots__ = ("_sent", "_tokens")

    def __init__(self) -> None:
        self._sent: deque[Sent] = deque()
        self._tokens = 0

    def wait_s(self, limit: RateLimit, *, now: float, tokens: int) -> float:
        """How long until a request of so many tokens may be sent; 0.0 for now."""
        self._forget(now)
        free_at = now
        requests = limit.requests_per_minute
        if requests is not None and len(self._sent) >= requests:
            free_at = self._sent[len(self._sent) - requests].until
        if limit.tokens_per_minute is not None:
            free_at = max(free_at, self._room_at(limit.tokens_per_minute - tokens, now))
        return free_at - now

    def _room_at(self, others: int, now: float) -> float:
        """When the others have no more than so many tokens; with nothing sent there is room."""
        left, at = self._tokens, now
        for sent in self._sent:
            if left <= others:
                break
            left -= sent.tokens
            at = sent.until
        return at

    def _forget(self, now: float) -> None:
        while self._sent and self._sent[0].until - now < _NOW_S:
            old = self._sent.popleft()
            old.counts = False
            self._tokens -= old.tokens

    def add(self, *, now: float, tokens: int) -> Sent:
        """A request is sent."""
        sent = Sent(now + WINDOW_S, tokens)
        self._sent.append(sent)
        self._tokens += tokens
        return sent

    def correct(self, sent: Sent, tokens: int) -> None:
        """It is known what the request used."""
        if sent.counts:
            self._tokens += tokens - sent.tokens
        sent.tokens = tokens

    def moved(self, by_s: float) -> Window:
        """The same requests on another clock."""
        window = Window()
        for sent in self._sent:
            window.add(now=sent.until - WINDOW_S + by_s, tokens=sent.tokens)
        return window
