"""What bounds one tool call: a cancel scope, its deadline, and cancellation from outside.

A scope with a deadline of its own sets and clears a timer of the event loop, which on asyncio
costs a tool call about 9 us, a fifth of a hand-written turn. Deadlines of calls that end in time
never matter, so on asyncio all calls of a loop share one timer. Elsewhere (trio keeps deadlines
without a timer each) the scope gets its deadline as usual.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from typing import NoReturn, TypeVar, cast
from weakref import WeakKeyDictionary, ref

import anyio
from anyio import (
    CancelScope,
    current_effective_deadline,
    get_cancelled_exc_class,
    sleep_forever,
)

from callboard.loops import Loop, Task, asyncio_current_task, running_loop

GRACE_S = 5.0  # between two warnings about what was cancelled and goes on

T = TypeVar("T")


class Bounds:
    """A cancel scope that is cancelled at a time of the loop's clock, until `end` is called.

    It also notices cancellation that came from outside after this was made, in the same task: a
    tool may swallow one, and asyncio delivers a native one once only. `execute` asks `pending`,
    lets `reraise` bring it back, or tells its caller by `was_swallowed`. What has been cancelled
    and does not end cannot be abandoned: `on_deaf` is called each `GRACE_S` (by the shared timer;
    elsewhere `heard` does it).
    """

    __slots__ = (
        "_cancels",
        "_on_deaf",
        "_shared",
        "_task",
        "at",
        "cancelled_at",
        "scope",
    )

    def __init__(
        self, timeout_s: float | None = None, *, on_deaf: Callable[[], None] | None = None
    ) -> None:
        self.at: float | None = None
        self.cancelled_at: float | None = None  # or when that was seen, or told last
        self._on_deaf = on_deaf
        loop = running_loop()
        if loop is None:
            self._shared = self._task = None  # nobody but a scope cancels there
            if timeout_s is not None:
                self.at = anyio.current_time() + timeout_s
            self.scope = CancelScope(deadline=inf if self.at is None else self.at)
            return
        self._shared = shared = _shared_of(loop)
        self._task = task = shared.current_task(loop)
        self._cancels = task.cancelling()
        self.scope = shared.new_scope()
        shared.open.add(self)
        now, armed_for = loop.time(), shared.armed_for
        if timeout_s is not None:
            self.at = now + timeout_s
        if armed_for > now + GRACE_S or (self.at is not None and armed_for > self.at):
            shared.arm(self.attend(now), loop)

    @property
    def shares_timer(self) -> bool:
        """Whether the loop's timer tells of deaf calls."""
        return self._shared is not None

    def end(self) -> None:
        """The scope was left: forget the deadline."""
        if self._shared is not None:
            self._shared.open.discard(self)

    def attend(self, now: float) -> float:
        """Cancel what is due, tell of what is deaf. When this wants to be called again."""
        if self.cancelled_at is None:
            if self.at is not None and self.at <= now:
                self.scope.cancel("the deadline of the call")
                self.cancelled_at = now
            elif self.was_swallowed:
                self.cancelled_at = now
            else:
                return min(_next_look(now), inf if self.at is None else self.at)
        elif now >= self.cancelled_at + GRACE_S:
            self.cancelled_at = now
            if self._on_deaf is not None:
                self._on_deaf()
        return _next_look(now)

    @property
    def pending(self) -> bool:
        """Whether this task is being cancelled from outside."""
        return self.was_swallowed or current_effective_deadline() == -inf

    @property
    def was_swallowed(self) -> bool:
        """Whether a native cancel came and was swallowed. (Scopes deliver theirs again.)"""
        return self._task is not None and self._task.cancelling() > self._cancels

    async def reraise(self) -> None:
        """Raise the cancellation if it is pending, also where a tool has swallowed it."""
        if self.pending:
            await raise_cancelled()


async def raise_cancelled() -> NoReturn:
    """Raise the cancellation of this task again, after somebody has swallowed it."""
    if current_effective_deadline() == -inf:  # a scope takes back only what it has raised itself
        await sleep_forever()
    raise get_cancelled_exc_class()


class _Shared:
    """What all calls of one asyncio loop share. Holds nothing that holds the loop."""

    def __init__(self) -> None:
        self.open: set[Bounds] = set()
        self.armed_for = inf
        self.current_task: Callable[[Loop], Task] = asyncio_current_task()
        # anyio looks up the backend for each scope that it makes, which takes 2 us.
        self.new_scope = type(CancelScope())
        self._timers: set[float] = set()  # when the loop will call

    def arm(self, at: float, loop: Loop) -> None:
        # A timer is never taken back: one that comes too early finds nothing to do.
        self.armed_for = at
        if at not in self._timers:
            self._timers.add(at)
            loop.call_at(at, partial(self._due, at))

    def _due(self, at: float) -> None:
        self._timers.discard(at)
        if at != self.armed_for:
            return  # an earlier one was armed meanwhile, and goes on from there
        loop = running_loop()
        assert loop is not None  # it has called this
        now = loop.time()
        self.armed_for = inf
        if self.open:
            self.arm(min([bounds.attend(now) for bounds in tuple(self.open)]), loop)


def _next_look(now: float) -> float:
    """When deaf calls are looked for: at times that all calls have in common, so one timer does."""
    return (now // GRACE_S + 1) * GRACE_S


async def heard(start: Callable[[], Awaitable[T]], on_deaf: Callable[[], None]) -> T:
    """Await it; each `GRACE_S` after it was cancelled and has not ended, call `on_deaf`.

    For event loops without a timer that calls share.
    """
    done = anyio.Event()
    value: T | None = None
    error: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_listen, done, on_deaf)
        try:
            value = await start()
        except BaseException as raised:  # noqa: BLE001  # raised below, unwrapped
            error = raised
        done.set()
    if error is not None:
        raise error
    return cast(T, value)


async def _listen(done: anyio.Event, on_deaf: Callable[[], None]) -> None:
    try:
        await done.wait()
    except get_cancelled_exc_class():
        with CancelScope(shield=True):
            while not done.is_set():
                with anyio.move_on_after(GRACE_S) as grace:
                    await done.wait()
                if grace.cancelled_caught:
                    on_deaf()


_of_loop: WeakKeyDictionary[Loop, _Shared] = WeakKeyDictionary()
_last: tuple[ref[Loop], _Shared] | None = None  # a look-up in `_of_loop` takes 0.8 us, this 0.1


def _shared_of(loop: Loop) -> _Shared:
    global _last
    last = _last  # another thread may set it meanwhile
    if last is not None and last[0]() is loop:
        return last[1]
    shared = _of_loop.get(loop)
    if shared is None:
        shared = _of_loop[loop] = _Shared()
    _last = (ref(loop), shared)
    return shared


def new_scope() -> CancelScope:
    """A cancel scope: on asyncio 2 us cheaper than `CancelScope()`, which looks for the backend."""
    loop = running_loop()
    return CancelScope() if loop is None else _shared_of(loop).new_scope()
