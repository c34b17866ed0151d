"""Forking: a new conversation from any earlier point of a journal, which stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

from callboard.approvals import GrantScope
from callboard.closing import closing_all
from callboard.errors import ConfigurationError, JournalConflict
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.journaling.records import ApprovalResolved, LayerFact, Record, RunFinished
from callboard.journaling.transcript import State, fold
from callboard.json_text import freeze
from callboard.replies import Outcome

FORKED = "fork"  # the name of the fact that says where a journal came from

J = TypeVar("J", bound=Journal)


@overload
async def forked(journal: Journal, *, at: int | None = None) -> InMemoryJournal: ...
@overload
async def forked(journal: Journal, *, at: int | None = None, into: J) -> J: ...
async def forked(
    journal: Journal, *, at: int | None = None, into: Journal | None = None
) -> Journal:
    """A journal that begins as this one did, up to and including record number `at`.

    All of it without `at`; the numbers count from 0, as `callboard journal show` prints them. It
    is written `into` an empty journal, in one commit, or kept in memory. An agent on it stands
    where the other one stood, with the same ids: `make_agent(journal=await forked(old, at=41))`.

    What was open at that point is closed, as for a run that is cut off: calls without a result are
    cancelled (of unknown outcome, where an effect was started), questions to humans withdrawn, the
    run ended as interrupted. Queued messages still wait. What a human granted for more than one
    call is revoked: they said it of the other conversation.

    Raises:
        ConfigurationError: there is no record `at`, or `into` holds records already.
        CommitFailed: `into` could not be written; it is as it was.
    """
    records = await journal.read()
    kept = up_to(records, at)
    target = InMemoryJournal() if into is None else into
    try:
        await target.append([*kept, *ending(kept, of=address_of(journal))], 0)
    except JournalConflict as conflict:
        raise ConfigurationError(
            f"{target!r} holds records already; fork into an address that holds none"
        ) from conflict
    return target


def up_to(records: Sequence[Record], at: int | None) -> Sequence[Record]:
    """The records up to and including number `at`.

    Raises:
        ConfigurationError: there is no such record.
    """
    last = len(records) - 1
    if last < 0:
        raise ConfigurationError("the journal holds no records: there is nothing to fork")
    if at is None:
        return records
    if type(at) is not int or not 0 <= at <= last:
        raise ConfigurationError(f"at={at!r}: give the number of a record, 0 to {last}")
    return records[: at + 1]


def ending(kept: Sequence[Record], *, of: str | None) -> list[Record]:
    """What a fork has behind the records that it shares: the closing, and where it came from."""
    state = fold(kept)
    closing = closing_all(state)
    if state.run is not None:
        reason = f"forked at record {len(kept) - 1}"
        closing.append(RunFinished(state.run.run_id, Outcome.INTERRUPTED, error=reason))
    fact = LayerFact(FORKED, freeze({"of": of, "at": len(kept) - 1}))
    return [*closing, *_revoking(state), fact]


def _revoking(state: State) -> list[Record]:
    """No yes holds in a conversation that its giver does not know. Those for a run end with it,
    and those of sub-agents stand in their own journals.
    """
    wide = [state.approvals[id] for id in state.wide]
    lasting = [one for one in wide if one.scope is GrantScope.CONVERSATION and not one.path]
    return [ApprovalResolved(one.id, "revoked") for one in lasting]


def address_of(journal: Journal) -> str | None:
    """Whose journal it is, where it says so."""
    address = getattr(journal, "address", None)
    return None if address is None else str(address)
