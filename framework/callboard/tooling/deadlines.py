"""Cancel scopes with a deadline, cheap enough for every tool call.

A scope with a deadline of its own sets and clears a timer of the event loop, which on asyncio
costs a tool call about 9 us, a fifth of a hand-written turn. Deadlines of calls that end in time
never matter, so on asyncio all calls of a loop share one timer. Elsewhere (trio keeps deadlines
without a timer each) the scope gets its deadline as usual.
"""

from __future__ import annotations

import threading
from functools import partial
from math import inf
from weakref import WeakKeyDictionary, ref

import anyio
from anyio import CancelScope

from callboard.loops import Loop, running_loop


class Deadline:
    """A cancel scope that is cancelled at a time of the loop's clock, until `end` is called."""

    __slots__ = ("_deadlines", "at", "scope")

    def __init__(self, timeout_s: float) -> None:
        self._deadlines: _Deadlines | None = None
        loop = running_loop()
        if loop is None:
            self.at = anyio.current_time() + timeout_s
            self.scope = CancelScope(deadline=self.at)
            return
        self.at = loop.time() + timeout_s
        self.scope = CancelScope()
        self._deadlines = _deadlines_of(loop)
        self._deadlines.add(self, loop)

    def end(self) -> None:
        """The scope was left: forget the deadline."""
        if self._deadlines is not None:
            self._deadlines.forget(self)


class _Deadlines:
    """All deadlines of one asyncio loop. Holds nothing that holds the loop."""

    def __init__(self) -> None:
        self._open: set[Deadline] = set()
        self._timers: set[float] = set()  # when the loop will call
        self._armed_for = inf

    def add(self, deadline: Deadline, loop: Loop) -> None:
        self._open.add(deadline)
        if deadline.at < self._armed_for:
            self._arm(deadline.at, loop)

    def forget(self, deadline: Deadline) -> None:
        self._open.discard(deadline)

    def _arm(self, at: float, loop: Loop) -> None:
        # A timer is never taken back: one that comes too early finds nothing to do.
        self._armed_for = at
        if at not in self._timers:
            self._timers.add(at)
            loop.call_at(at, partial(self._due, at))

    def _due(self, at: float) -> None:
        self._timers.discard(at)
        if at != self._armed_for:
            return  # an earlier one was armed meanwhile, and goes on from there
        loop = running_loop()
        assert loop is not None  # it has called this
        now = loop.time()
        for deadline in [one for one in self._open if one.at <= now]:
            self._open.discard(deadline)
            deadline.scope.cancel("the deadline of the call")
        self._armed_for = inf
        if self._open:
            self._arm(min([one.at for one in self._open]), loop)


_of_loop: WeakKeyDictionary[Loop, _Deadlines] = WeakKeyDictionary()
_last: threading.local = threading.local()  # a look-up in `_of_loop` takes 0.8 us, this 0.1


def _deadlines_of(loop: Loop) -> _Deadlines:
    known = getattr(_last, "known", None)
    if known is not None and known[0]() is loop:
        found: _Deadlines = known[1]
        return found
    deadlines = _of_loop.get(loop)
    if deadlines is None:
        deadlines = _of_loop[loop] = _Deadlines()
    _last.known = (ref(loop), deadlines)
    return deadlines
