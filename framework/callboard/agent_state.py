"""A read-only look at an agent: what `agent.state` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callboard.approvals import Approval
from callboard.journaling.records import Queued
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage, ToolCall
from callboard.model import Model
from callboard.replies import Outcome
from callboard.tooling.tools import Tool


class AgentState:
    """The agent as it is now; it follows the agent and cannot change it."""

    __slots__ = ("_state", "model", "streaming", "tools")

    def __init__(
        self, state: State, *, model: Model, tools: Sequence[Tool], streaming: bool
    ) -> None:
        self._state = state
        self.model = model
        self.tools = tools
        self.streaming = streaming

    @property
    def messages(self) -> Sequence[ConversationMessage]:
        return tuple(self._state.messages)

    @property
    def run_id(self) -> str | None:
        """The run that is not finished: running, parked, or cut off by a crash."""
        return self._state.run.run_id if self._state.run else None

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        return tuple([call.call for call in self._state.open_calls])

    @property
    def queued(self) -> tuple[Queued, ...]:
        return self._state.queues.items()

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """The approvals that wait for an answer."""
        return self._state.pending

    @property
    def last_outcome(self) -> Outcome | None:
        return self._state.last_run.outcome if self._state.last_run else None

    @property
    def layers(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What layers recorded, by their namespace."""
        return self._state.layers
