"""The work that both loops do, and the checks that they did it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


class Script:
    """`turns` messages with `width` calls of add each, then "done"; or `deltas` words."""

    def __init__(self, *, turns: int = 0, width: int = 1, deltas: int = 0) -> None:
        self.turns, self.width, self.deltas = turns, width, deltas
        self.asked = 0

    def next(self, last: str | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
        """Text and (id, arguments) of the calls. Raises if the model was shown a stale result."""
        turn, self.asked = self.asked, self.asked + 1
        if turn and self.width == 1 and last != str(turn):
            raise AssertionError(f"the model was shown {last!r} and not {turn}")
        if turn == self.turns:
            return "done", ()
        calls = [(f"c{turn}_{i}", json.dumps({"a": turn + i, "b": 1})) for i in range(self.width)]
        return None, tuple(calls)

    def words(self) -> Iterator[str]:
        return (f"w{i} " for i in range(self.deltas))


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def slow_add(a: int, b: int) -> int:
    """Add two integers after ten milliseconds."""
    await asyncio.sleep(0.01)
    return a + b
