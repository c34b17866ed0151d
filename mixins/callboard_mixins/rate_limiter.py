"""Who may ask a model now, among all agents that share it: first come, first served."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from weakref import WeakKeyDictionary, ref

import anyio
from anyio.lowlevel import current_token

from callboard.errors import ErrorCategory, ModelError
from callboard.loops import running_loop
from callboard_mixins.checked import check_given
from callboard_mixins.rate_window import RateLimit, Sent, Window

NO_LIMIT = RateLimit()
_NONE: Mapping[str, RateLimit] = MappingProxyType({})


class Lane:
    """The requests to one model on one event loop."""

    __slots__ = ("_line", "_paused_until", "_running", "_seen", "_window", "is_free", "limit")

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        numbers = (limit.requests_per_minute, limit.tokens_per_minute, limit.concurrency)
        self.is_free = numbers == (None, None, None)  # and no pause: nothing is counted
        self._window = Window()
        self._line: deque[_Waiter] = deque()
        self._running = 0
        self._paused_until = -inf
        self._seen = (0.0, 0.0)  # the loop's time and the process's, when it was last looked at

    async def enter(self, name: str, tokens: int) -> Sent:
        """Take a place, after all who asked before. Cancelling it takes no place.

        Raises:
            ModelError: rate_limited, since the wait is too long.
        """
        if self.must_wait(tokens):
            await self._wait_in_line(name, tokens)
        self._running += 1
        return self._window.add(now=self._seen[0], tokens=tokens)

    def must_wait(self, tokens: int) -> bool:
        """Whether a request of so many tokens cannot be sent now."""
        return bool(self._line or self._blocked_s(tokens))

    def leave(self) -> None:
        """Give the place back."""
        self._running -= 1
        self._wake()

    def correct(self, sent: Sent, tokens: int) -> None:
        """It is known how many tokens the request used."""
        self._window.correct(sent, tokens)
        self._wake()

    def pause(self, asked_s: float | None) -> None:
        """The provider wants less: nobody asks for a while."""
        wait_s = self.limit.pause_s if asked_s is None else asked_s
        self._paused_until = max(self._paused_until, self._now() + wait_s)
        self.is_free = False

    def continued(self) -> Lane:
        """A lane for another event loop that knows what was sent on this one."""
        lane = Lane(self.limit)
        seen, seen_process = self._seen
        by_s = lane._now() - (seen + lane._seen[1] - seen_process)
        lane._window = self._window.moved(by_s)
        lane._paused_until = self._paused_until + by_s
        lane.is_free = self.is_free
        return lane

    async def _wait_in_line(self, name: str, tokens: int) -> None:
        longest_s = self.limit.longest_wait_s
        mine = _Waiter()
        self._line.append(mine)
        try:
            with anyio.move_on_after(longest_s) as patience:
                while blocked_s := self._blocked_s(tokens) if self._line[0] is mine else inf:
                    if inf > blocked_s > patience.deadline - self._seen[0]:
                        break
                    mine.news = anyio.Event()
                    with anyio.move_on_after(blocked_s):
                        await mine.news.wait()
                else:
                    return
        finally:
            self._line.remove(mine)
            self._wake()
        raise ModelError(
            f"{name!r} has no room for {longest_s:g} s or more: its rate limit is used up, or "
            "the provider asked for less",
            category=ErrorCategory.RATE_LIMITED,
            final=True,
        )

    def _blocked_s(self, tokens: int) -> float:
        """How long the first in line must wait; inf for a place that somebody gives back."""
        now = self._now()
        limit = self.limit
        if limit.concurrency is not None and self._running >= limit.concurrency:
            return inf
        paused_s = max(self._paused_until - now, 0.0)
        return max(paused_s, self._window.wait_s(limit, now=now, tokens=tokens))

    def _now(self) -> float:
        loop = running_loop()
        now = anyio.current_time() if loop is None else loop.time()
        self._seen = (now, time.monotonic())
        return now

    def _wake(self) -> None:
        if self._line and self._line[0].news is not None:
            self._line[0].news.set()


class _Waiter:
    __slots__ = ("news",)

    def __init__(self) -> None:
        self.news: anyio.Event | None = None


class RateLimiter:
    """Limits for models by name, shared by all agents that are given it.

    `limits` has those of single models ("openai:gpt-5"), `others` is for every other one; each
    model is counted for itself. Event loops that run after one another count as one, those that
    run at the same time in several threads count for themselves.
    """

    def __init__(
        self, limits: Mapping[str, RateLimit] = _NONE, *, others: RateLimit = NO_LIMIT
    ) -> None:
        for name, limit in {**limits, "others": others}.items():
            check_given(name, limit, RateLimit)
        self._limits = dict(limits)
        self._others = others
        self._lanes: WeakKeyDictionary[object, dict[str, Lane]] = WeakKeyDictionary()
        self._latest: dict[str, tuple[ref[object], Lane]] = {}

    def lane(self, name: str) -> Lane:
        """The lane of the model of this name, on the event loop that runs."""
        loop = running_loop() or current_token().native_token
        latest = self._latest.get(name)
        if latest is not None and latest[0]() is loop:
            return latest[1]
        lanes = self._lanes.setdefault(loop, {})
        if name not in lanes:
            limit = self._limits.get(name, self._others)
            lanes[name] = latest[1].continued() if latest else Lane(limit)
        self._latest[name] = ref(loop), lanes[name]
        return lanes[name]


PROCESS = RateLimiter()  # no limits: what its sharers have in common is the provider's pauses
