"""The hand-written loop that Callboard is measured against: the least code for the same work.

Plain asyncio, a compiled JSON schema, an append to a list. No layers, journal, events, limits,
deadlines or cancellation.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from jsonschema import Draft202012Validator

from benchmarks.workload import SCHEMA, Script

Message = dict[str, Any]


class Model:
    def __init__(self, script: Script) -> None:
        self.script = script

    async def __call__(self, messages: list[Message]) -> Message:
        last = messages[-1]
        text, calls = self.script.next(last["content"] if last["role"] == "tool" else None)
        return {"role": "assistant", "content": text, "tool_calls": calls}

    async def stream(self, messages: list[Message]) -> AsyncIterator[str]:
        for word in self.script.words():
            yield word


class Agent:
    def __init__(
        self, model: Model, tool: Callable[..., Awaitable[int]], max_turns: int = 10
    ) -> None:
        self.model, self.max_turns = model, max_turns
        self.tools = {"add": (tool, Draft202012Validator(SCHEMA))}
        self.messages: list[Message] = [{"role": "system", "content": "You add numbers."}]

    async def act(self, call: tuple[str, str]) -> Message:
        tool, validator = self.tools["add"]
        arguments = json.loads(call[1])
        validator.validate(arguments)
        return {"role": "tool", "id": call[0], "content": str(await tool(**arguments))}

    async def run(self, prompt: str) -> str:
        self.messages.append({"role": "user", "content": prompt})
        for _ in range(self.max_turns):
            reply = await self.model(self.messages)
            self.messages.append(reply)
            calls = reply["tool_calls"]
            if not calls:
                return str(reply["content"])
            if len(calls) == 1:
                self.messages.append(await self.act(calls[0]))
            else:
                self.messages += await asyncio.gather(*[self.act(call) for call in calls])
        raise RuntimeError("max_turns")

    async def stream(self, prompt: str) -> AsyncIterator[tuple[str, str]]:
        self.messages.append({"role": "user", "content": prompt})
        parts: list[str] = []
        async for delta in self.model.stream(self.messages):
            parts.append(delta)
            yield "text", delta
        text = "".join(parts)
        self.messages.append({"role": "assistant", "content": text})
        yield "end", text
