"""Tells watchers of tool calls: each has one start, one end and one result message."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from callboard.events import MessageEnd, MessageStart, ToolEnd, ToolStart, ToolUpdate
from callboard.journaling.transcript import CallState, Round
from callboard.messages import ToolCall
from callboard.watchers import Watchers


class _Told(Enum):
    STARTED = 1
    ENDED = 2
    SHOWN = 3  # the result message, too


class CallTeller:
    """Knows what was told of the open round. Does nothing while nobody watches."""

    __slots__ = ("_told", "_watchers")

    def __init__(self, watchers: Watchers) -> None:
        self._watchers = watchers
        self._told: dict[str, _Told] = {}  # how far each call was told

    def start(self, call: ToolCall) -> None:
        if self._watchers.active and call.id not in self._told:
            self._told[call.id] = _Told.STARTED
            self._watchers.tell(ToolStart, call)

    def end(self, call: CallState) -> None:
        """Tell the end of a call that was started and has its result by now."""
        if not self._told:
            return
        result, observation = call.result, call.observation
        if self._told.get(call.call.id) is not _Told.STARTED:
            return
        if result is not None and observation is not None:
            self._told[call.call.id] = _Told.ENDED
            self._watchers.tell(ToolEnd, result.call_id, result.tool_name, observation)

    def result(self, call: CallState) -> None:
        result = call.result
        if not self._watchers.active or result is None:
            return
        if self._told.get(result.call_id) is _Told.SHOWN:
            return
        self._told[result.call_id] = _Told.SHOWN
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
                self.end(call)
            for call in round.calls.values():
                self.result(call)
            self._told.clear()

    def catch_up(self, round: Round | None) -> None:
        """Tell what came into the last round unnoticed: by a human's answer while nobody drove
        it, or in an append of unknown end.
        """
        if self._told and round is not None:
            for call in round.calls.values():
                self.end(call)
            if not round.open:
                self.closed(round)

    def cut_off(self, round: Round) -> None:
        """As `closed`, for calls that may never have been started."""
        for call in round.calls.values():
            if call.result is not None:
                self.start(call.call)
        self.closed(round)
