"""Calls of one message side by side: bounded, and excluded from each other where tools say so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from typing import TypeVarTuple

import anyio

from callboard.errors import CommitFailed, StopRun
from callboard.tooling.tools import Tool

Ts = TypeVarTuple("Ts")


async def run_batch(
    calls: Sequence[tuple[*Ts]],
    run: Callable[[*Ts], Awaitable[None]],
    *,
    tool_of: Callable[[tuple[*Ts]], Tool],
    max_concurrency: int | None,
) -> None:
    """Run the calls at once, as `side_by_side`, within their bounds."""
    gates = Gates(max_concurrency)

    async def run_bounded(*call: *Ts) -> None:
        async with gates.of(tool_of(call)):
            await run(*call)

    await side_by_side(calls, run_bounded)


async def side_by_side(calls: Sequence[tuple[*Ts]], run: Callable[[*Ts], Awaitable[None]]) -> None:
    """Run the calls at once. A failing call is a result, so it never cancels its siblings.

    What ends the run (StopRun, CommitFailed) cancels the siblings, which are awaited, and is then
    raised by itself. Cancelling this cancels all of them.
    """
    ends: list[StopRun | CommitFailed] = []

    async def one(call: tuple[*Ts]) -> None:
        try:
            await run(*call)
        except (StopRun, CommitFailed) as end:
            ends.append(end)
            group.cancel_scope.cancel("a sibling ended the run")

    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(one, call)
    if ends:
        raise ends[0]


class Gates:
    """The bounds of one batch: over all calls, per tool, and per named resource."""

    def __init__(self, max_concurrency: int | None) -> None:
        self._all = anyio.Semaphore(max_concurrency) if max_concurrency else None
        self._named: dict[tuple[str, str], anyio.Semaphore] = {}

    def of(self, tool: Tool) -> AbstractAsyncContextManager[None]:
        """What a call of this tool holds while it runs, always taken in one order."""
        gates: list[anyio.Semaphore] = []
        if tool.resource is not None:
            gates.append(self._gate("resource", tool.resource, 1))
        if tool.max_concurrency is not None:
            gates.append(self._gate("tool", tool.name, tool.max_concurrency))
        if self._all is not None:
            gates.append(self._all)
        return _hold(gates) if gates else nullcontext()

    def _gate(self, kind: str, name: str, size: int) -> anyio.Semaphore:
        gate = self._named.get((kind, name))
        if gate is None:
            gate = self._named[kind, name] = anyio.Semaphore(size)
        return gate


@asynccontextmanager
async def _hold(gates: Sequence[anyio.Semaphore]) -> AsyncGenerator[None, None]:
    async with AsyncExitStack() as stack:
        for gate in gates:
            await stack.enter_async_context(gate)
        yield
