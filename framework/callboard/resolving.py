"""What an answer to an approval writes, given the state that it is appended to. Pure but for
`answer_offline`, which answers in a journal whose agent is not there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from callboard.approvals import Approval
from callboard.approving import NOBODY
from callboard.errors import ConfigurationError, JournalConflict, NotAnApprover
from callboard.journaling.journal import Journal
from callboard.journaling.records import ApprovalResolved, Observed, Record
from callboard.journaling.transcript import State, fold
from callboard.messages import Observation, Status, new_id

TRIES = 5  # against an agent that writes at the same time
WITHDRAWN = "This call was not run: the question whether it may run was withdrawn."
LATE = "the approval expired before it was given"
_GOES_ON = frozenset({"approved", "answered"})


def resolving(state: State, answer: ApprovalResolved) -> Sequence[Record]:
    """The records of an answer; none where there is nothing (any more) to answer.

    A refusal closes its call. What a sub-agent asked is answered by the sub-agent itself, which
    is told so when the call that runs it goes on.
    """
    asked = state.approvals.get(answer.approval_id)
    if asked is None:
        return ()
    if answer.status == "revoked":
        return (answer,) if asked.is_wide else ()
    if not asked.is_pending:
        return ()
    if answer.status in _GOES_ON or asked.path:
        return (answer,)
    return (answer, Observed(asked.call_id, _refusal(answer), new_id("m")))


def _refusal(answer: ApprovalResolved) -> Observation:
    match answer.status:
        case "withdrawn":
            return Observation.of(answer.answer or WITHDRAWN, Status.SKIPPED)
        case "expired":
            return Observation.of(f"Denied (expired): {LATE}.", Status.DENIED)
        case _ if answer.by is None:  # nobody's word: an approver that failed
            return Observation.of(f"Denied: {answer.answer}", Status.DENIED)
        case _:
            reason = f": {answer.answer}" if answer.answer else "."
            return Observation.of(f"Denied by the user{reason}", Status.DENIED)


def late(approval_id: str) -> ApprovalResolved:
    """The answer to a question that nobody answered in time."""
    return ApprovalResolved(approval_id, "expired", None, LATE)


def expiring(state: State) -> Sequence[ApprovalResolved]:
    """The answers to the questions that nobody answered in time."""
    if not state.approvals:
        return ()
    now = time.time()
    return [
        late(asked.id)
        for asked in state.pending
        if asked.expires_at is not None and asked.expires_at <= now
    ]


def fate_of(approval_id: str, asked: Approval | None) -> str:
    """What became of an approval, for the one who would answer it."""
    if asked is None:
        return f"there is no approval {approval_id!r} here"
    by = f" by {asked.by}" if asked.by else ""
    match asked.status:
        case "pending":
            return f"{approval_id} waits for an answer"
        case "expired":
            return f"{approval_id} expired before it was answered; its call did not run"
        case "withdrawn":
            return f"{approval_id} was withdrawn; its call did not run"
        case status:
            return f"{approval_id} was {status} already{by}"


def check_fit(asked: Approval, answer: ApprovalResolved) -> None:
    """Words are for questions, and a yes is for calls.

    Raises:
        ConfigurationError: it is the other way round.
    """
    if answer.status == "approved" and asked.is_question:
        raise ConfigurationError(f"{asked.id} asks for words: answer(id, text, by=...)")
    if answer.status == "answered" and not asked.is_question:
        raise ConfigurationError(f"{asked.id} asks whether a call may run: approve or deny")


def not_an_approver(asked: Approval, by: str) -> NotAnApprover:
    """The refusal of an answer, which names who may give one."""
    named = "nobody that all rules let" if asked.approvers == NOBODY else None
    who = named or ", ".join(asked.approvers or ()) or "those that the agent's code lets"
    return NotAnApprover(f"{by!r} may not answer {asked.id} ({asked.tool_name}); {who} may")


async def answer_offline(journal: Journal, answer: ApprovalResolved) -> tuple[bool, Approval]:
    """Answer an approval in the journal of an agent that is not there, nor its code.

    Takes nothing over: an agent that is parked on this journal sees it when it goes on. Returns
    whether it was answered by this, and the approval as it stands now.

    Raises:
        NotAnApprover: `answer.by` may not; nothing was written.
        LookupError: there is no such approval.
        ConfigurationError: it asks for words, or for a yes, and this is the other one.
        JournalConflict: the agent was writing, five times.
    """
    for tried in range(TRIES):
        state = fold(await journal.read())
        asked = state.approvals.get(answer.approval_id)
        if asked is None:
            raise LookupError(fate_of(answer.approval_id, None))
        check_fit(asked, answer)
        if asked.approvers is not None and answer.by not in asked.approvers:
            raise not_an_approver(asked, answer.by or "")
        is_late = any([one.approval_id == asked.id for one in expiring(state)])
        records = resolving(state, late(asked.id) if is_late else answer)
        try:
            await journal.append(records, state.seq)
        except JournalConflict:
            if tried == TRIES - 1:
                raise
            continue
        state.apply(records)
        return bool(records) and not is_late, state.approvals[asked.id]
    raise AssertionError("unreachable")
