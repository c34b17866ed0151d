"""One execution of one tool: the deadline, cancellation, threads, and what came of it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from anyio import get_cancelled_exc_class

from callboard.errors import StopRun
from callboard.messages import Observation, Status, ToolCall
from callboard.tooling.arguments import Invalid
from callboard.tooling.deadlines import Bounds, heard
from callboard.tooling.results import Keep, failure, observe
from callboard.tooling.threads import ThreadWork
from callboard.tooling.tool_context import ToolContext
from callboard.tooling.tools import Form, Tool

THREAD_GRACE_S = 5.0  # what a thread gets to end when the run is cancelled

_ASYNC, _AT_ONCE = Form.ASYNC, Form.AT_ONCE  # members of an enum take 0.15 us to look up
_SHOWN_ERRORS = 5  # of a group
_FINAL = frozenset({str, int, float, bool, dict, list, tuple, type(None)})  # never awaitable
_Start = Callable[[], Any]


class _Execution:
    """What one execution knows beside its arguments: its thread, and the last value it yielded."""

    __slots__ = ("context", "keep", "partial", "tool", "work")

    def __init__(self, tool: Tool, context: ToolContext, keep: Keep | None) -> None:
        self.tool = tool
        self.context = context
        self.keep = keep
        self.partial: Any = None
        self.work: ThreadWork | None = None

    async def value_of(self, start: _Start) -> Any:
        """Run a function to its end. The caller holds the cancel scope."""
        if self.tool.form is _ASYNC or self.tool.form is _AT_ONCE:
            return await start()
        if self.tool.form is Form.ASYNC_STREAM:
            return await self.drained(start())
        if self.tool.form is Form.SYNC_STREAM:
            return await self.in_thread(lambda: self.iterated(start()))
        return await self.in_thread(start)

    async def whole(self, start: _Start) -> Any:
        """Run any function to the end of what it handed out."""
        value = await self.value_of(start)
        return value if type(value) in _FINAL else await self.settled(value)

    async def settled(self, value: Any) -> Any:
        """The value behind awaitables and generators that a function handed out."""
        while inspect.isawaitable(value):
            value = await value
        if inspect.isasyncgen(value):
            return await self.drained(value)
        if inspect.isgenerator(value):
            return await self.in_thread(lambda: self.iterated(value))
        return value

    async def in_thread(self, function: _Start) -> Any:
        self.work = ThreadWork(function, self.context)
        return await self.work.run()

    async def drained(self, values: AsyncGenerator[Any, Any]) -> Any:
        async with aclosing(values) as stream:
            async for value in stream:
                self.progress(value)
        return self.partial

    def iterated(self, values: Iterator[Any]) -> Any:
        """In the thread: every value is progress; the generator's return value, or the last."""
        while not self.context.ended:
            try:
                value = next(values)
            except StopIteration as end:
                return self.partial if end.value is None else end.value
            self.progress(value)
        getattr(values, "close", lambda: None)()  # abandoned: nobody wants the rest
        return self.partial

    def progress(self, value: Any) -> None:
        self.partial = value
        self.context.update(value)

    def failed(self, error: BaseException) -> Observation:
        return self.ended(Status.FAILED, error_text(error))

    def stopped(self) -> Observation:
        """The result when this call's own scope ended it: by `cancel`, or at the deadline."""
        running = self.work is not None and self.work.abandon()
        late = "; the work may still finish" if running else ""
        if self.context.cancelled:
            return self.ended(Status.CANCELLED, f"the call was cancelled{late}")
        return self.ended(Status.TIMED_OUT, f"timed out after {self.tool.timeout_s:g} s{late}")

    def ended(self, status: Status, text: str) -> Observation:
        size = self.tool.max_result_bytes
        return failure(text, status, size_bytes=size, partial=self.partial, keep=self.keep)

    def observed(self, value: Any) -> Observation:
        tool = self.tool
        return observe(
            value, size_bytes=tool.max_result_bytes, terminate=tool.terminate, keep=self.keep
        )


async def execute(
    tool: Tool,
    call: ToolCall,
    context: ToolContext,
    *,
    keep: Keep | None = None,
    thread_grace_s: float = THREAD_GRACE_S,
) -> Observation:
    """Run the tool once and say what came of it. What a tool raises is an observation.

    Cancellation from outside is raised again once the tool has ended: coroutines are waited for,
    a thread gets `thread_grace_s`. A tool that finishes all the same has its real result returned;
    the caller records it, and raises the cancellation again if `context.swallowed_cancel`. `keep`
    gets the whole of a text that is cut.

    Raises:
        StopRun: as the tool raised it. KeyboardInterrupt and its like pass through as well.
    """
    start = tool.bind(call, context)
    if isinstance(start, Invalid):
        return Observation.of(start.text, Status.INVALID)
    execution = _Execution(tool, context, keep)
    if tool.is_at_once:
        seen = await _seen_at_once(start, execution)
        if not isinstance(seen, partial):
            return seen
        start = seen
    bounds = Bounds(tool.timeout_s, on_deaf=context.deaf)
    context.begin(bounds.scope, deadline=bounds.at)
    if tool.takes_context:
        context.admit_threads()
    try:
        with bounds.scope:
            if bounds.shares_timer:
                value = await (start() if tool.form is _ASYNC else execution.value_of(start))
            else:
                value = await heard(partial(execution.whole, start), context.deaf)
            if type(value) not in _FINAL:
                value = await execution.settled(value)
            return execution.observed(value)
        await bounds.reraise()
        return execution.stopped()
    except (StopRun, GeneratorExit):
        raise
    except BaseException as error:  # the tool's own code
        if not (bounds.pending and _holds_cancellation(error)):
            return _judged(error, execution)
        return await _after_outside_cancel(error, execution, thread_grace_s)
    finally:
        bounds.end()
        context.end()
        context.swallowed_cancel = bounds.was_swallowed


async def _seen_at_once(start: _Start, execution: _Execution) -> Observation | partial[Any]:
    """What came of a coroutine without an await; a start of what it handed out to be awaited.

    Nobody can cancel it in the middle, so it needs no scope, which would cost 10 us.
    """
    try:
        value = await start()
        return execution.observed(value) if type(value) in _FINAL else partial(_given, value)
    except (StopRun, GeneratorExit):
        raise
    except BaseException as error:  # the tool's own code
        return _judged(error, execution)


async def _given(value: Any) -> Any:
    return value


def _holds_cancellation(error: BaseException) -> bool:
    return any(isinstance(leaf, get_cancelled_exc_class()) for leaf in _leaves(error))


def _judged(error: BaseException, execution: _Execution) -> Observation:
    """A failure of the tool as an observation; what is not the tool's own is raised again.

    A cancellation that nobody asked for is the tool's own: left alone, it would end the task
    group of the batch without a word.
    """
    for leaf in _leaves(error):
        own = isinstance(leaf, (Exception, get_cancelled_exc_class()))
        if isinstance(leaf, StopRun) or not own:
            raise leaf
    return execution.failed(error)


async def _after_outside_cancel(
    error: BaseException, execution: _Execution, grace_s: float
) -> Observation:
    """Wait for a thread that still runs; its real result counts if it ends in time."""
    work = execution.work
    finished = False
    if work is not None and not work.done.is_set():
        try:
            finished = await work.settle(grace_s)
        finally:  # a native cancel pierces the shield
            work.abandon()
    if work is None or not finished:
        raise next(leaf for leaf in _leaves(error) if not isinstance(leaf, Exception))
    try:
        return execution.observed(work.outcome())
    except BaseException as late:  # the tool's own code
        return _judged(late, execution)


def error_text(error: BaseException) -> str:
    """'ValueError: boom', and for a group its members."""
    leaves = list(_leaves(error))
    shown = "; ".join([_one_error(leaf) for leaf in leaves[:_SHOWN_ERRORS]])
    more = len(leaves) - _SHOWN_ERRORS
    return f"{shown}; and {more} more" if more > 0 else shown


def _one_error(error: BaseException) -> str:
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:  # the exception's own code
        message = "(its message cannot be shown)"
    return f"{name}: {message}" if message else name


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(member)
    else:
        yield error
