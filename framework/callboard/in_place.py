"""Asking an approver in place: its answer is awaited while the siblings of the call run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import cast

import anyio

from callboard.approvals import Approval
from callboard.approving import Answer, Answered, Approve, Approver, Refuse
from callboard.errors import CommitFailed, NotAnApprover, StopRun
from callboard.hooks import settled
from callboard.journaling.records import ApprovalResolved
from callboard.resolving import late

Take = Callable[[ApprovalResolved], Awaitable[bool]]


class InPlace:
    """Puts questions to an approver, each once, and hands its answers on.

    `answer` takes an answer if its giver may give it, `resolve` takes it from nobody. No lock is
    held while the approver is awaited. An answer from elsewhere ends the wait; so does the expiry.
    """

    __slots__ = ("_answer", "_put", "_resolve", "_waits", "approver")

    def __init__(self, approver: Approver, *, answer: Take, resolve: Take) -> None:
        self.approver = approver
        self._answer = answer
        self._resolve = resolve
        self._put: set[str] = set()
        self._waits: dict[str, anyio.CancelScope] = {}

    def is_new(self, approval: Approval) -> bool:
        """Whether it waits, and the approver was not asked about it yet."""
        return approval.is_pending and approval.id not in self._put

    async def ask(self, approval: Approval) -> None:
        """Await the approver's answer, and record it. None leaves the question open.

        An approver that raises, or answers what is no answer, denies.
        """
        self._put.add(approval.id)
        answer: Answered = None
        scope = self._waits[approval.id] = anyio.CancelScope(deadline=_deadline(approval))
        try:
            with scope:
                answer = await self._said(approval)
        finally:
            self._waits.pop(approval.id, None)
        if answer is not None:
            await self._take(approval, answer)
        elif scope.cancelled_caught and anyio.current_time() >= scope.deadline:
            await self._resolve(late(approval.id))

    def end(self, approval_id: str) -> None:
        """Stop waiting for this one: it was answered elsewhere."""
        self._put.discard(approval_id)
        scope = self._waits.get(approval_id)
        if scope is not None:
            scope.cancel("answered elsewhere")

    def end_all(self) -> None:
        """Stop waiting: the user has said something, and what was not started is skipped."""
        for scope in tuple(self._waits.values()):
            scope.cancel("the user said something")

    async def _said(self, approval: Approval) -> Answered:
        try:
            answer = cast(object, await settled(self.approver(approval)))
        except (CommitFailed, StopRun):
            raise
        except Exception as error:  # what fails in a guard denies
            return Refuse(f"the approver failed: {error!r}", by="")
        wanted = (Answer if approval.is_question else Approve, Refuse)
        if answer is None or isinstance(answer, wanted):
            return answer
        names = " or ".join([kind.__name__ for kind in wanted])
        return Refuse(f"the approver answered {answer!r}, which is no {names}", by="")

    async def _take(self, approval: Approval, answer: Approve | Refuse | Answer) -> None:
        resolved = _resolved(approval.id, answer)
        try:
            if resolved.by:
                await self._answer(resolved)
                return
        except NotAnApprover as error:
            resolved = ApprovalResolved(approval.id, "denied", None, str(error))
        await self._resolve(resolved)


def _resolved(approval_id: str, answer: Approve | Refuse | Answer) -> ApprovalResolved:
    match answer:
        case Approve(by=by, scope=scope) if by:
            return ApprovalResolved(approval_id, "approved", by, scope=scope)
        case Answer(text=text, by=by) if by:
            return ApprovalResolved(approval_id, "answered", by, text)
        case Refuse(reason=reason, by=by):
            return ApprovalResolved(approval_id, "denied", by or None, reason or None)
        case _:
            return ApprovalResolved(approval_id, "denied", None, "nobody signed the answer")


def _deadline(approval: Approval) -> float:
    if approval.expires_at is None:
        return inf
    return anyio.current_time() + approval.expires_at - time.time()
