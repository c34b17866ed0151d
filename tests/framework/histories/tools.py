"""The tools of the histories, of every temper, and the ledger of what they did."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
from anyio import get_cancelled_exc_class

from callboard.errors import StopRun
from callboard.messages import ImageBlock
from callboard.tooling.tools import Effect, Tool, ToolContext, tool
from tests.framework.histories.large import FILM, LONGEST_BYTES, TOME

ADDRESS = "ann@example.org"
SECRET = "AKIAIOSFODNN7EXAMPLE"  # a key of an example

EFFECTS = {  # of the tools by name; all others have one
    "look": Effect.PURE,
    "fetch": Effect.PURE,
    "feed": Effect.PURE,
    "late": Effect.PURE,
    "film": Effect.PURE,
    "leak": Effect.PURE,
    "tome": Effect.PURE,
    "put": Effect.IDEMPOTENT,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One execution of a tool."""

    call_id: str
    name: str
    x: int
    key: str
    life: int


class Hands:
    """The tools of one life: they write into the ledger until that life is over."""

    def __init__(self, ledger: list[Entry], items: dict[str, str], *, life: int) -> None:
        self._ledger = ledger
        self._items = items  # what was queued and acknowledged: id -> text
        self.life = life
        self.running = 0
        self.dead = False

    def tools(self) -> list[Tool]:
        """All of them, bound to this life."""
        return [getattr(self, name) for name, made in vars(Hands).items() if type(made) is Tool]

    def _begin(self, context: ToolContext, x: int) -> None:
        if not self.dead:
            key = context.idempotency_key
            self._ledger.append(Entry(context.call_id, context.tool_name, x, key, self.life))

    async def _work(self, context: ToolContext, x: int, seconds: float) -> str:
        self._begin(context, x)
        self.running += 1
        try:
            if seconds:
                await anyio.sleep(seconds)
            return f"{context.tool_name} {x}"
        finally:
            self.running -= 1

    @tool(effect="pure")
    async def look(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 0)

    @tool(effect="pure")
    async def fetch(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 1)

    @tool(effect="idempotent")
    async def put(self, context: ToolContext, x: int = 0) -> str:
        done = await self._work(context, x, 0.25)
        if context.attempt == 1:
            raise OSError("flaky")
        return done

    @tool(resource="till")
    async def pay(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 0.5)

    @tool(resource="till")
    async def post(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 0)

    @tool(sequential=True)
    async def alone(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 0.25)

    @tool(terminate=True)
    async def done(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 0)

    @tool(effect="pure", timeout_s=0.5)
    async def late(self, context: ToolContext, x: int = 0) -> str:
        return await self._work(context, x, 10)

    @tool
    async def boom(self, context: ToolContext, x: int = 0) -> None:
        await self._work(context, x, 0)
        raise ValueError("boom")

    @tool
    async def stop(self, context: ToolContext, x: int = 0) -> None:
        await self._work(context, x, 0)
        raise StopRun("stopped")

    @tool
    async def deaf(self, context: ToolContext, x: int = 0) -> str:
        """Swallows cancellation, three times."""
        self._begin(context, x)
        self.running += 1
        for _ in range(3):
            try:
                await anyio.sleep(0.5)
                break
            except get_cancelled_exc_class():
                continue
        self.running -= 1
        return f"deaf {x}"

    @tool
    async def stubborn(self, context: ToolContext, x: int = 0) -> str:
        """Finishes behind a shield."""
        with anyio.CancelScope(shield=True):
            await self._work(context, x, 0.75)
        return f"stubborn {x}"

    @tool(effect="pure")
    async def feed(self, context: ToolContext, x: int = 0) -> AsyncIterator[str]:
        self._begin(context, x)
        self.running += 1
        try:
            for at in range(3):
                yield f"piece {at}"
                await anyio.sleep(0.25)
        finally:
            self.running -= 1

    @tool
    async def hint(self, context: ToolContext, x: int = 0) -> str:
        """Steers its own agent."""
        text = f"hint of {context.call_id}"
        item = await context.agent.steer(text)
        if not self.dead:
            self._items[item] = text
        return await self._work(context, x, 0.25)

    @tool(effect="pure")
    async def film(self, context: ToolContext, x: int = 0) -> ImageBlock:
        await self._work(context, x, 0)
        return FILM

    @tool(effect="pure")
    async def leak(self, context: ToolContext, x: int = 0) -> str:
        await self._work(context, x, 0.25)
        return f"write to {ADDRESS}, the key is {SECRET}"

    @tool(effect="pure", max_result_bytes=LONGEST_BYTES)
    async def tome(self, context: ToolContext, x: int = 0) -> str:
        await self._work(context, x, 0.25)
        return TOME

    @tool
    def thread(self, context: ToolContext, x: int = 0) -> str:
        self._begin(context, x)
        time.sleep(0.002)
        return f"thread {x}"
