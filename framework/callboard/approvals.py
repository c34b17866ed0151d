"""Verdicts on calls, the sealed call that may run, and the approval record: pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic_core import core_schema

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
        return core_schema.is_instance_schema(cls)  # read back, it is its text


@dataclass(frozen=True, slots=True)
class Proceed:
    """The call may run. Only the root makes one, around the object that it sealed.

    `granted` says that a human approved exactly this call.
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
ApprovalStatus = Literal["pending", "approved", "denied", "withdrawn", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question to a human, and its answer once there is one."""

    id: str
    run_id: str
    call_id: str
    tool_name: str
    digest: str
    preview: Mapping[str, Any]
    reason: str
    rule: str | None = None
    findings: tuple[str, ...] = ()
    expires_at: float | None = None
    status: ApprovalStatus = "pending"
    by: str | None = None
    answer: str | None = None

    @property
    def is_pending(self) -> bool:
        return self.status == "pending"

    def grants(self, call_id: str, digest: str) -> bool:
        """Whether this approval releases exactly that call."""
        return self.status == "approved" and self.call_id == call_id and self.digest == digest
