"""From the streamed text of one action to deltas. Used by `local` with `json_action`.

The answer's text is shown as it arrives, with its escapes resolved; a call's arguments are passed
on as the model wrote them.
"""

from __future__ import annotations

import json
import re

from callboard.messages import StopReason, new_id
from callboard.model import Delta, StopDelta, TextDelta, ToolCallDelta

_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\S)')
_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*(?=\S)')
_HALF_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\(?:u[0-9a-fA-F]{0,3})?)$")
_STRING_PART = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)


class ActionStream:
    """Feed it the pieces of one answer, in any split; then say how it `stopped`."""

    def __init__(self) -> None:
        self._held = ""
        self._mode = ""  # "", "string" (an answer), "json" (an answer that is data), "call", "end"
        self._depth = 0
        self._quoted = False
        self._escaped = False
        self._called = False

    def feed(self, text: str) -> list[Delta]:
        """The deltas that this piece completes."""
        if self._mode == "end":
            return []
        self._held += text
        opened = [] if self._mode else self._opened()
        if self._mode == "string":
            return self._string()
        if self._mode in ("json", "call"):
            return opened + self._value()
        return opened

    def _opened(self) -> list[Delta]:
        if found := _CALL.match(self._held):
            self._held = self._held[found.end() :]
            self._mode, self._called = "call", True
            name = json.loads(found[1], strict=False)
            return [ToolCallDelta(id=new_id("call"), name=name)]
        if found := _ANSWER.match(self._held):
            self._held = self._held[found.end() :]
            self._mode = "string" if self._held.startswith('"') else "json"
            self._held = self._held.removeprefix('"')
        return []

    def _string(self) -> list[Delta]:
        """Text up to the closing quote; half an escape waits for its other half."""
        half = _HALF_ESCAPE.search(self._held)
        ready = self._held[: half.start(1)] if half else self._held
        found = _STRING_PART.match(ready)
        part = found[0] if found else ""
        if len(part) < len(ready):
            self._mode, self._held = "end", ""
        else:
            self._held = self._held[len(part) :]
        text = json.loads(f'"{part}"', strict=False) if part else ""
        return [TextDelta(text)] if text else []

    def _value(self) -> list[Delta]:
        """JSON as it stands, up to the brace that closes the action."""
        length = next((i for i, c in enumerate(self._held) if self._ends(c)), None)
        part = self._held[:length]
        self._held = ""
        if length is not None:
            mode, self._mode = self._mode, "end"
        else:
            mode = self._mode
        if not part:
            return []
        return [ToolCallDelta(arguments=part) if mode == "call" else TextDelta(part)]

    def _ends(self, character: str) -> bool:
        if self._quoted:
            self._quoted = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        elif character == '"':
            self._quoted = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
        return self._depth < 0

    def stopped(self, stop: StopDelta) -> list[Delta]:
        """The end of the message; text that was no action is shown as it is."""
        deltas: list[Delta] = []
        if not self._mode and self._held.strip():
            deltas.append(TextDelta(self._held))
        called = self._called and stop.reason is StopReason.END
        return [*deltas, StopDelta(StopReason.TOOL_USE) if called else stop]
