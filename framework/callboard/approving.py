"""What a human may answer to a question of an agent, and the rules for asking: plain values.

Given to the agent as `approver=` (who is asked in place) and `approvals=` (who may answer, how
long, and what a new prompt does meanwhile).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from callboard.approvals import Approval, GrantScope
from callboard.errors import ConfigurationError

IN_PLACE = "approver"  # who answered, where an approver does not say


def scope_of(scope: GrantScope | str) -> GrantScope:
    """The scope of this name. Raises ConfigurationError where there is none."""
    try:
        return GrantScope(scope)
    except ValueError:
        known = ", ".join(GrantScope)
        raise ConfigurationError(f"scope={scope!r} is unknown; there are: {known}") from None


@dataclass(frozen=True, slots=True)
class Approve:
    """The call may run. A `scope` beyond ONCE releases others like it, too, without asking.

    Raises:
        ConfigurationError: there is no such scope.
    """

    by: str = IN_PLACE
    scope: GrantScope = GrantScope.ONCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", scope_of(self.scope))


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call does not run, or the question is not answered; the model reads the reason."""

    reason: str = ""
    by: str = IN_PLACE


@dataclass(frozen=True, slots=True)
class Answer:
    """The words that a tool asked for (`ask_user`)."""

    text: str
    by: str = IN_PLACE


Answered = Approve | Refuse | Answer | None
Approver = Callable[[Approval], Answered | Awaitable[Answered]]
MayAnswer = Callable[[Approval, str], bool | Awaitable[bool]]


class OnPrompt(StrEnum):
    """What `run` does on an agent that waits for a human."""

    QUEUE = "queue"  # the prompt waits, too; `run` returns at once with `awaiting_approval`
    WITHDRAW = "withdraw"  # the calls that wait are skipped, and the prompt is answered


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """The rules for asking humans.

    `approvers`: who may answer, as names, or as a function of the approval and the name that may
    be async; None lets anybody. One that raises lets nobody. `expires_s`: how long a question
    stands, where the layer that asks does not say; None for ever.
    """

    approvers: Collection[str] | MayAnswer | None = None
    expires_s: float | None = None
    on_prompt: OnPrompt | str = OnPrompt.QUEUE

    def __post_init__(self) -> None:
        if isinstance(self.approvers, str):
            raise ConfigurationError(
                f"approvers={self.approvers!r} is one name; give several: ({self.approvers!r},)"
            )
        if self.expires_s is not None and not self.expires_s > 0:
            raise ConfigurationError(f"expires_s={self.expires_s!r} must be above 0; None is never")
        if self.approvers is not None and not callable(self.approvers):
            object.__setattr__(self, "approvers", tuple(self.approvers))
        try:
            object.__setattr__(self, "on_prompt", OnPrompt(self.on_prompt))
        except ValueError:
            known = ", ".join(OnPrompt)
            raise ConfigurationError(
                f"on_prompt={self.on_prompt!r} is unknown; there are: {known}"
            ) from None

    def stamped(self, asked: Approval) -> Approval:
        """The question with its expiry and its approvers; those of a sub-agent's have to be let
        by both.
        """
        if asked.path:
            return replace(asked, approvers=_let_by_both(asked.approvers, self.names))
        expires_at = asked.expires_at
        if expires_at is None and self.expires_s is not None:
            expires_at = time.time() + self.expires_s
        return replace(asked, expires_at=expires_at, approvers=self.names)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Who may answer, as an approval keeps it: by name, anybody, or nobody by name."""
        if self.approvers is None:
            return None
        return () if callable(self.approvers) else tuple(sorted(self.approvers))


def _let_by_both(
    below: tuple[str, ...] | None, above: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """Who may answer under two rules, each as an approval keeps it."""
    if below is None or above is None:
        return above if below is None else below
    if not below or not above:  # code tells, which is asked where it is
        return ()
    return tuple([name for name in below if name in above]) or NOBODY


NOBODY = ("",)  # who no answer can be by
ANYBODY = ApprovalPolicy()
