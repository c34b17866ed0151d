"""Tells watchers of tool calls: each has one start, one end and one result message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callboard.events import MessageEnd, MessageStart, ToolEnd, ToolStart, ToolUpdate
from callboard.messages import ToolCall
from callboard.transcript import CallState, Round
from callboard.watching import Watchers


class CallTeller:
    """Knows what was told of the open round. Does nothing while nobody watches."""

    __slots__ = ("_ended", "_shown", "_started", "_watchers")

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._started: set[str] = set()  # calls whose start was told
        self._ended: set[str] = set()  # calls whose end was told
        self._shown: set[str] = set()  # calls whose result message was told

    def start(self, call: ToolCall) -> None:
        if self._watchers.active and call.id not in self._started:
            self._started.add(call.id)
            self._watchers.tell(ToolStart, call)

    def end(self, call: CallState) -> None:
        """Tell the end of a call that was started and has its result by now."""
        id, result, observation = call.call.id, call.result, call.observation
        if id not in self._started or id in self._ended:
            return
        if result is not None and observation is not None:
            self._ended.add(id)
            self._watchers.tell(ToolEnd, result.call_id, result.tool_name, observation)

    def result(self, call: CallState) -> None:
        result = call.result
        if not self._watchers.active or result is None or result.call_id in self._shown:
            return
        self._shown.add(result.call_id)
        self._watchers.tell(MessageStart, result.id, "tool")
        self._watchers.tell(MessageEnd, result.id, result)

    def update(self, call_id: str) -> Callable[[Any], None] | None:
        """A sink for the progress of a call, where somebody watches."""
        if not self._watchers.active:
            return None
        return lambda value: self._watchers.tell(ToolUpdate, call_id, value)

    def closed(self, round: Round) -> None:
        """Tell what was not told yet of a round that is closed, however it was closed."""
        if self._watchers.active:
            for call in round.calls.values():
                if call.call.id not in self._shown:
                    self.end(call)
            for call in round.calls.values():
                self.result(call)
            self._started.clear()
            self._ended.clear()
            self._shown.clear()

    def catch_up(self, round: Round) -> None:
        """Tell what a human's answers did to a round while nobody drove it."""
        if self._started:
            for call in round.calls.values():
                self.end(call)
            if not round.open:
                self.closed(round)

    def cut_off(self, round: Round) -> None:
        """As `closed`, for calls that may never have been started."""
        for call in round.calls.values():
            if call.result is not None and call.call.id not in self._shown:
                self.start(call.call)
        self.closed(round)
