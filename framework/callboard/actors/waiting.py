"""A place for one answer, and the one who waits for it, with a deadline.

On asyncio this is a future, and all deadlines of a loop share one timer: an anyio event with a
scope and a timer of its own takes 20 us, half of what asking an actor costs. Elsewhere it is an
event.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from callboard.loops import Loop, running_loop


class Late(TimeoutError):
    """No answer came in time."""


class Answer:
    """Filled once with a value or an error; later fillings change nothing. One task waits."""

    __slots__ = ("_event", "_future", "error", "is_set", "value")

    def __init__(self) -> None:
        loop: Any = running_loop()
        self._future: Any = None if loop is None else loop.create_future()
        self._event = anyio.Event() if loop is None else None
        self.is_set = False
        self.value: Any = None
        self.error: BaseException | None = None

    def set(self, value: Any = None) -> None:
        if not self.is_set:
            self.value = value
            self._wake()

    def fail(self, error: BaseException) -> None:
        if not self.is_set:
            self.error = error
            self._wake()

    def _wake(self) -> None:
        self.is_set = True
        if self._event is not None:
            self._event.set()
        elif not self._future.done():  # it is where its waiter was cancelled
            self._future.set_result(None)

    @property
    def is_over(self) -> bool:
        """Whether it is filled, or nobody waits any more. Without a loop's future: filled."""
        return self.is_set or (self._future is not None and self._future.done())

    def now(self) -> float:
        """The time of the event loop in which it was made."""
        return anyio.current_time() if self._future is None else self._future.get_loop().time()

    async def wait(self, timeout_s: float | None = None, *, until: float = inf) -> Any:
        """The value, once it is there. `until` is a time of the event loop's clock.

        Raises:
            Late: it was not there in time. The error it was failed with, otherwise.
        """
        if timeout_s is not None:
            until = self.now() + timeout_s
        if self._event is not None:
            with anyio.CancelScope(deadline=until):
                await self._event.wait()
        elif until == inf:
            await self._future
        else:
            await self._timed(until)
        if self.error is not None:
            raise self.error
        if not self.is_set:
            self.is_set = True
            raise Late
        return self.value

    async def _timed(self, until: float) -> None:
        loop = self._future.get_loop()
        alarms = _alarms_of(loop)
        alarms.add(self, until, loop)
        try:
            await self._future
        finally:
            alarms.forget()


class _Alarms:
    """The deadlines of one asyncio loop, behind one timer. Holds nothing that holds the loop.

    Answers that came in time stay in the heap until they are the larger part of it.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Answer]] = []
        self._number = 0
        self._forgotten = 0
        self._armed_for = inf

    def add(self, answer: Answer, at: float, loop: Loop) -> None:
        self._number += 1
        heappush(self._heap, (at, self._number, answer))
        if at < self._armed_for:
            self._arm(at, loop)

    def forget(self) -> None:
        """One of them needs no alarm any more."""
        self._forgotten += 1
        if self._forgotten > 1_000 and self._forgotten * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].is_over]
            heapify(self._heap)
            self._forgotten = 0

    def _arm(self, at: float, loop: Loop) -> None:
        self._armed_for = at
        loop.call_at(at, lambda: self._due(at))

    def _due(self, at: float) -> None:
        if at != self._armed_for:
            return  # an earlier one was armed meanwhile, and goes on from there
        loop = running_loop()
        assert loop is not None  # it has called this
        now, heap = loop.time(), self._heap
        while heap and (heap[0][0] <= now or heap[0][2].is_over):
            heappop(heap)[2].fail(Late())
        self._armed_for = inf
        if heap:
            self._arm(heap[0][0], loop)


_of_loop: WeakKeyDictionary[Loop, _Alarms] = WeakKeyDictionary()


def _alarms_of(loop: Loop) -> _Alarms:
    found = _of_loop.get(loop)
    if found is None:
        found = _of_loop[loop] = _Alarms()
    return found
