"""Verdicts on calls, the sealed call that may run, and the approval record: pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from pydantic_core import core_schema

from callboard.errors import StopRun
from callboard.json_text import Json, digest
from callboard.messages import ToolCall
from callboard.tooling.tools import Tool


@dataclass(frozen=True, slots=True, eq=False)
class SealedCall:
    """A call exactly as it was decided. Only the object that the root sealed may run.

    Sealing is by identity: a copy with other arguments is refused. A layer that wants to try an
    idempotent tool again passes `call.again()` to its super.
    """

    call: ToolCall
    tool: Tool
    attempt: int = 0
    origin: SealedCall | None = None

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def arguments(self) -> Mapping[str, Json]:
        return self.call.arguments

    def again(self) -> SealedCall:
        """The same call, asking for one more attempt."""
        return replace(self, attempt=self.attempt + 1, origin=self.origin or self)

    def is_from(self, seal: SealedCall | None) -> bool:
        """Whether this is `seal` itself, or one more attempt at the very same call."""
        if self is seal:
            return True
        return seal is not None and self.origin is seal and self.call is seal.call


def call_digest(call: ToolCall, *, key: bytes) -> str:
    """The digest of the tool's name and canonical arguments; a grant is bound to it."""
    return digest([call.name, call.arguments], key=key)


class CallDigest:
    """The digest of one call as text (`str(...)`), computed when it is first read."""

    __slots__ = ("_call", "_key", "_text")

    def __init__(self, call: ToolCall, key: bytes) -> None:
        self._call = call
        self._key = key
        self._text: str | None = None

    def __str__(self) -> str:
        if self._text is None:
            self._text = call_digest(self._call, key=self._key)
        return self._text

    def __repr__(self) -> str:
        return f"CallDigest({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (CallDigest, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> core_schema.CoreSchema:
        as_text = core_schema.to_string_ser_schema()  # read back, it is its text
        return core_schema.is_instance_schema(cls, serialization=as_text)


@dataclass(frozen=True, slots=True)
class Proceed:
    """The call may run. Only the root makes one, around the object that it sealed.

    `granted` says that a human approved exactly this call, or granted an earlier one for it, too.
    """

    call: SealedCall
    granted: bool = False

    def ask(
        self,
        reason: str,
        *,
        rule: str | None = None,
        findings: tuple[str, ...] = (),
        expires_at: float | None = None,
    ) -> Verdict:
        """Have a human decide: an Ask about this call, or this verdict where they approved it.

        The approved call is decided again by all layers before it runs. A layer that asks with
        this lets it pass then, and layers further out judge it as any call that may run.
        `expires_at` is in seconds since the epoch.
        """
        if self.granted:
            return self
        return Ask(self.call.call, reason, rule, findings, expires_at)


@dataclass(frozen=True, slots=True)
class Deny:
    """The call does not run; the model reads the reason.

    `terminate` skips the follow-up model call if every result of the batch has it.
    """

    reason: str = "the call was not allowed"
    rule: str | None = None
    terminate: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """The call waits for a human. `call` is what they are asked about: what would run.

    Layers make one with `Proceed.ask`, which knows what was approved already.
    """

    call: ToolCall
    reason: str
    rule: str | None = None
    findings: tuple[str, ...] = ()
    expires_at: float | None = None  # seconds since the epoch


Verdict = Proceed | Deny | Ask
ApprovalStatus = Literal[
    "pending", "approved", "answered", "denied", "withdrawn", "expired", "revoked"
]


class GrantScope(StrEnum):
    """How far an approval reaches, by the choice of the one who gives it."""

    ONCE = "once"  # this call
    RUN = "run"  # this tool with these arguments, until the run ends
    CONVERSATION = "conversation"  # this tool with these arguments, from now on
    TOOL_IN_RUN = "tool_in_run"  # this tool with any arguments, until the run ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question to a human, and its answer once there is one.

    It asks whether a call may run; with `is_question`, a tool asks for words (`ask_user`).
    `preview` is exactly what would run. `path` holds the addresses of the sub-agents that the
    question came through, the one that asked first; it is empty for an agent's own. `approvers`
    are the names that may answer, None for anybody, and empty where the agent's own code tells.
    """

    id: str
    run_id: str
    call_id: str
    tool_name: str
    digest: str
    preview: Mapping[str, Any]
    reason: str
    rule: str | None = None
    findings: tuple[str, ...] = ()
    expires_at: float | None = None  # seconds since the epoch
    status: ApprovalStatus = "pending"
    by: str | None = None
    answer: str | None = None
    scope: GrantScope = GrantScope.ONCE
    is_question: bool = False
    path: tuple[str, ...] = ()
    approvers: tuple[str, ...] | None = None

    @property
    def is_pending(self) -> bool:
        return self.status == "pending"

    @property
    def is_wide(self) -> bool:
        """Whether it was given for more than its own call, and not revoked."""
        return self.status == "approved" and self.scope is not GrantScope.ONCE

    def grants(self, call_id: str, digest: str) -> bool:
        """Whether this approval releases exactly that call."""
        own = self.status == "approved" and not self.path
        return own and self.call_id == call_id and self.digest == digest

    def holds_in(self, run_id: str | None) -> bool:
        """Whether this is a wide approval that holds in that run."""
        return self.is_wide and (
            self.scope is GrantScope.CONVERSATION or (run_id is not None and self.run_id == run_id)
        )

    def covers(self, call: ToolCall, digest: str, run_id: str | None) -> bool:
        """Whether this approval, given for another call, releases that one as well."""
        if self.path or self.tool_name != call.name or not self.holds_in(run_id):
            return False
        return self.scope is GrantScope.TOOL_IN_RUN or self.digest == digest


class CallWaits(StopRun):
    """Raised by a running tool: its call waits for these answers, and the tool is entered again.

    Only for tools that may be entered again, those declared pure or idempotent. `ask_user` and
    agents as tools raise it.
    """

    def __init__(self, *approvals: Approval) -> None:
        super().__init__("waits for a human")
        self.approvals = approvals
