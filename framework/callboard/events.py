"""What watchers see of a run: facts that happened, derived from records and deltas.

AgentStart ... AgentEnd        one run; the end is sent once, when everything is settled
TurnStart ... TurnEnd          one model call and its tool calls
MessageStart, MessageUpdate*, MessageEnd
ToolStart, ToolUpdate*, ToolEnd
ApprovalAsked, ApprovalAnswered, Retry, LimitReached, ArgumentsRepaired, Warned

Every start has its end, also after an error and after a cancel. An event is built only when
somebody watches.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from callboard.actors.address import Address
from callboard.approvals import Approval
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    Observation,
    ToolCall,
    ToolResultMessage,
)
from callboard.model import Delta
from callboard.plain import plain
from callboard.replies import Outcome, Prompt


@plain
class Source:
    """The run that an event tells of."""

    address: Address
    run_id: str
    parent_run: str | None = None


@plain
class Event:
    """The base of all events. `sequence` counts the events of one agent's run from 1."""

    kind: ClassVar[str] = "event"
    source: Source
    sequence: int

    @property
    def address(self) -> Address:
        return self.source.address

    @property
    def run_id(self) -> str:
        return self.source.run_id

    @property
    def parent_run(self) -> str | None:
        return self.source.parent_run


@plain
class AgentStart(Event):
    kind: ClassVar[str] = "agent_start"
    prompt: Prompt


@plain
class AgentEnd(Event):
    kind: ClassVar[str] = "agent_end"
    outcome: Outcome
    text: str


@plain
class TurnStart(Event):
    kind: ClassVar[str] = "turn_start"
    turn: int


@plain
class TurnEnd(Event):
    kind: ClassVar[str] = "turn_end"
    turn: int
    message: AssistantMessage | None
    results: tuple[ToolResultMessage, ...]


@plain
class MessageStart(Event):
    kind: ClassVar[str] = "message_start"
    message_id: str
    role: Literal["user", "assistant", "tool"]


@plain
class MessageUpdate(Event):
    """One delta. An AttemptDiscarded delta voids what was shown of this message so far."""

    kind: ClassVar[str] = "message_update"
    message_id: str
    delta: Delta
    attempt: int


@plain
class MessageEnd(Event):
    """`message` is None where none came of it; then nothing was stored."""

    kind: ClassVar[str] = "message_end"
    message_id: str
    message: ConversationMessage | None


@plain
class ToolStart(Event):
    kind: ClassVar[str] = "tool_start"
    call: ToolCall


@plain
class ToolUpdate(Event):
    kind: ClassVar[str] = "tool_update"
    call_id: str
    value: Any


@plain
class ToolEnd(Event):
    kind: ClassVar[str] = "tool_end"
    call_id: str
    tool_name: str
    observation: Observation


@plain
class ArgumentsRepaired(Event):
    kind: ClassVar[str] = "arguments_repaired"
    before: ToolCall
    after: ToolCall


@plain
class ApprovalAsked(Event):
    kind: ClassVar[str] = "approval_requested"
    approval: Approval


@plain
class ApprovalAnswered(Event):
    kind: ClassVar[str] = "approval_resolved"
    approval: Approval


@plain
class Retry(Event):
    """The model is asked again."""

    kind: ClassVar[str] = "retry"
    attempt: int
    reason: str


@plain
class LimitReached(Event):
    kind: ClassVar[str] = "limit_reached"
    limit: str


@plain
class Warned(Event):
    """Something went wrong that did not end the run."""

    kind: ClassVar[str] = "warning"
    text: str
