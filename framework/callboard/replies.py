"""What a run is asked and what it answers with: Prompt, Outcome, Reply, RunFailed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from callboard.approvals import Approval
from callboard.errors import CallboardError, StopRun
from callboard.messages import (
    NO_USAGE,
    AssistantMessage,
    Content,
    ConversationMessage,
    StopReason,
    Usage,
    UserMessage,
    new_id,
)
from callboard.plain import plain

PromptLike = str | UserMessage | Sequence[UserMessage] | Sequence[Content] | Sequence[str]


class Outcome(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    AWAITING_APPROVAL = "awaiting_approval"  # not over: `reply.pending` says what waits
    MAX_ITERS = "max_iters"
    BUDGET = "budget"
    REFUSED = "refused"
    EMPTY_REPLY = "empty_reply"
    INCOMPLETE = "incomplete"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    FAILED = "failed"


@plain
class Prompt:
    """What one attempt answers. Entering `reply` twice with one id journals it once."""

    id: str
    messages: tuple[UserMessage, ...]

    @classmethod
    def of(cls, prompt: PromptLike | Prompt, *, id: str | None = None) -> Prompt:
        """A prompt from text, from a user message, or from several of them, or from blocks."""
        if isinstance(prompt, Prompt):
            return prompt
        return cls(id or new_id("p"), _user_messages(prompt))

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)


def _user_messages(prompt: PromptLike) -> tuple[UserMessage, ...]:
    if isinstance(prompt, str):
        return (UserMessage.of(prompt),)
    if isinstance(prompt, UserMessage):
        return (prompt,)
    messages: list[UserMessage] = []
    blocks: list[Content] = []
    for item in prompt:
        if isinstance(item, UserMessage):
            messages.append(item)
        elif isinstance(item, str):
            messages.extend(_user_messages(item))
        else:
            blocks.append(item)
    if blocks:
        messages.append(UserMessage(content=tuple(blocks)))
    return tuple(messages)


@plain(kw_only=True)
class Reply:
    """What a run returns for every outcome but `failed`, which raises RunFailed carrying it.

    `messages` are those that this run added to the conversation. `limit` names the limit that
    ended the run; `summary_failed` says that `text` was put together without a model. `cost` is in
    US dollars, as far as it is known: a budget with `cost` or `prices` makes it known.
    """

    run_id: str
    outcome: Outcome
    text: str = ""
    message: AssistantMessage | None = None
    messages: tuple[ConversationMessage, ...] = ()
    usage: Usage = NO_USAGE
    cost: float | None = None
    pending: tuple[Approval, ...] = ()
    output: Any = None
    limit: str | None = None
    summary_failed: bool = False
    error: str | None = None

    def completed(
        self,
        message: AssistantMessage | None,
        *,
        messages: tuple[ConversationMessage, ...],
        usage: Usage,
        cost: float | None,
        pending: tuple[Approval, ...],
    ) -> Reply:
        """The same with what the run added and used; `dataclasses.replace` takes 4 us more."""
        return Reply(
            run_id=self.run_id,
            outcome=self.outcome,
            text=self.text,
            message=message,
            messages=messages,
            usage=usage,
            cost=cost,
            pending=pending,
            output=self.output,
            limit=self.limit,
            summary_failed=self.summary_failed,
            error=self.error,
        )

    @property
    def stop_reason(self) -> StopReason | None:
        """Why the model stopped in its last message, or None where there is none."""
        return self.message.stop_reason if self.message else None


class RunFailed(CallboardError):
    """A run ended with outcome `failed`. The transcript stays sendable; `reply` carries it.

    The cause, often a ModelError, is `__cause__`.
    """

    def __init__(self, message: str, *, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


class RunEnds(StopRun):
    """Ends a run with an outcome of the loop's own: a park, an interrupt, an empty reply."""

    def __init__(self, outcome: Outcome, text: str = "", *, limit: str | None = None) -> None:
        super().__init__(text)
        self.outcome = outcome
        self.limit = limit
