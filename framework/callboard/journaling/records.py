"""The journal's records: what happened to one agent, in order. State is a fold of them.

RunStarted / RunFinished    a run and its end            Prompted          what an attempt answers
ModelAttempted              one model call and its cost  MessageAdded      an answer of the model
Decided                     may a call run, and as what  Observed          closes a call
ToolStarted / ToolFinished  around the effect            Queued / Taken / Withdrawn   the queues
ApprovalRequested / ApprovalResolved                     LayerFact         a layer's own fact
Spent   what a run inside used       Repaired, DraftInterrupted, Activated, Snapshot

Plain objects: a frozen pydantic model for each costs a turn about 2x. `record_codec.py`
turns them into JSON and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from callboard.approvals import Approval, ApprovalStatus, CallDigest, GrantScope
from callboard.errors import ErrorCategory
from callboard.messages import (
    NO_USAGE,
    AssistantMessage,
    Content,
    Message,
    Observation,
    ToolCall,
    Usage,
    UserMessage,
)
from callboard.model import Purpose
from callboard.plain import plain
from callboard.replies import Outcome, Prompt
from callboard.tooling.tools import Effect


@plain
class RunStarted:
    kind: ClassVar[str] = "run_started"
    run_id: str
    prompt: Prompt
    parent_run: str | None = None


@plain
class RunFinished:
    kind: ClassVar[str] = "run_finished"
    run_id: str
    outcome: Outcome
    text: str = ""
    limit: str | None = None
    summary_failed: bool = False
    error: str | None = None
    output: Any = None


@plain
class Prompted:
    kind: ClassVar[str] = "prompted"
    prompt_id: str
    messages: tuple[UserMessage, ...]


@plain
class ModelAttempted:
    kind: ClassVar[str] = "model_attempt"
    model: str
    purpose: Purpose
    ended: Literal["complete", "incomplete", "failed", "cancelled"]
    usage: Usage = NO_USAGE
    active_s: float = 0.0
    error: str | None = None
    cost: float | None = None  # in US dollars; unknown where no budget asked
    answer: AssistantMessage | None = None  # to a layer's own question: it is in no conversation
    category: ErrorCategory | None = None  # of the failure, where the model itself told it


@plain
class MessageAdded:
    kind: ClassVar[str] = "message"
    message: AssistantMessage
    purpose: Purpose = Purpose.ANSWER


@plain
class Decided:
    """`call` is the call as it was decided where a hook, a layer or a repair changed it, else None.

    A call that runs as the model made it has no such record: ToolStarted tells.
    """

    kind: ClassVar[str] = "decided"
    call_id: str
    verdict: Literal["proceed", "deny", "ask"]
    call: ToolCall | None = None
    reason: str | None = None
    rule: str | None = None


@plain
class ToolStarted:
    """Written before the effect. `digest` is of what runs; a pure tool has none.

    It is computed when it is first read, since a journal in memory never reads it and it costs
    a tenth of a turn.
    """

    kind: ClassVar[str] = "tool_started"
    call_id: str
    tool_name: str
    effect: Effect
    idempotency_key: str
    digest: CallDigest | str = ""
    polling: bool = False


@plain
class ToolFinished:
    """The outcome as the tool gave it."""

    kind: ClassVar[str] = "tool_finished"
    call_id: str
    attempt: int
    observation: Observation
    active_s: float = 0.0


@plain
class Observed:
    """The outcome as the model sees it. Only this closes a call."""

    kind: ClassVar[str] = "observed"
    call_id: str
    observation: Observation
    message_id: str


@plain
class Queued:
    """A message that waits (steering, follow-up), or an interrupt (control)."""

    kind: ClassVar[str] = "queued"
    item_id: str
    lane: Literal["steering", "follow_up", "control"]
    content: tuple[Content, ...] = ()
    wake: bool = True


@plain
class Taken:
    """A queued message enters the conversation and leaves its queue, in this one commit."""

    kind: ClassVar[str] = "taken"
    item_id: str
    message: UserMessage


@plain
class Spent:
    """What a run inside this one (an agent as a tool) has used so far, all in all.

    The last record of each such run counts, so that one that goes on after a crash is not
    counted twice. Its seconds are those of the call that it runs in.
    """

    kind: ClassVar[str] = "spent"
    run_id: str
    model_calls: int
    usage: Usage = NO_USAGE
    cost: float | None = None


@plain
class Withdrawn:
    kind: ClassVar[str] = "withdrawn"
    item_id: str


@plain
class ApprovalRequested:
    kind: ClassVar[str] = "approval_requested"
    approval: Approval


@plain
class ApprovalResolved:
    kind: ClassVar[str] = "approval_resolved"
    approval_id: str
    status: ApprovalStatus
    by: str | None = None
    answer: str | None = None
    scope: GrantScope = GrantScope.ONCE


@plain
class LayerFact:
    """What a layer wants to remember; `name` is the layer's own namespace."""

    kind: ClassVar[str] = "layer"
    name: str
    payload: Mapping[str, Any]


@plain
class Repaired:
    """A conversation that was brought in needed mending."""

    kind: ClassVar[str] = "repaired"
    notes: tuple[str, ...]


@plain
class DraftInterrupted:
    """What a broken-off message said so far: for people, never sent again."""

    kind: ClassVar[str] = "draft_interrupted"
    partial: AssistantMessage
    reason: str


@plain
class Activated:
    kind: ClassVar[str] = "activated"
    epoch: int


@plain
class Snapshot:
    """A conversation as a whole: what an agent was given when it was made, or has taken over."""

    kind: ClassVar[str] = "snapshot"
    messages: tuple[Message, ...] = ()


Record = (
    RunStarted
    | RunFinished
    | Prompted
    | ModelAttempted
    | MessageAdded
    | Decided
    | ToolStarted
    | ToolFinished
    | Observed
    | Queued
    | Taken
    | Withdrawn
    | Spent
    | ApprovalRequested
    | ApprovalResolved
    | LayerFact
    | Repaired
    | DraftInterrupted
    | Activated
    | Snapshot
)
