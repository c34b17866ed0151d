"""What an audit says of a record: decisions, executions, approvals, and what bounds them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from callboard.journaling.records import (
    Activated,
    ApprovalRequested,
    ApprovalResolved,
    Decided,
    LayerFact,
    MessageAdded,
    Observed,
    Queued,
    Record,
    RunFinished,
    RunStarted,
    Snapshot,
    ToolFinished,
    ToolStarted,
)
from callboard.json_text import Json
from callboard.messages import Observation, ToolCall

MOST_CHARACTERS = 1_000  # of a text; what it was in full is bound by the digest of the record

Facts = dict[str, Json]


def facts_of(record: Record) -> Facts | None:
    """What the audit says of the record, as JSON; None where it says nothing.

    Steering, prompts and answers without calls are conversation and stand in the journal only.
    """
    tell = _TELL.get(type(record))
    return None if tell is None else tell(record)


def cut_to(text: str, most: int = MOST_CHARACTERS) -> str:
    """The beginning of a text, which says so where it was cut."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _call(call: ToolCall) -> Facts:
    arguments, problem = call.parsed
    shown: Json = arguments if problem is None and len(call.raw) <= MOST_CHARACTERS else call.raw
    return {"call": call.id, "tool": call.name, "arguments": shown}


def _observed(call_id: str, observation: Observation) -> Facts:
    return {"call": call_id, "status": str(observation.status), "text": observation.text}


def _message(record: MessageAdded) -> Facts | None:
    calls = record.message.calls
    return {"calls": [_call(call) for call in calls]} if calls else None


def _decided(record: Decided) -> Facts:
    facts = {} if record.call is None else _call(record.call)
    told = {"verdict": record.verdict, "reason": record.reason, "rule": record.rule}
    return {"call": record.call_id, **facts, **told}


def _approval(record: ApprovalRequested) -> Facts:
    asked = record.approval
    return {
        "approval": asked.id,
        "call": asked.call_id,
        "tool": asked.tool_name,
        "digest": asked.digest,
        "preview": asked.preview,
        "reason": asked.reason,
        "rule": asked.rule,
        "findings": list(asked.findings),
    }


def _resolved(record: ApprovalResolved) -> Facts:
    facts: Facts = {"approval": record.approval_id, "status": record.status}
    return {**facts, "by": record.by, "answer": record.answer, "scope": str(record.scope)}


def _started(record: ToolStarted) -> Facts:
    return {
        "call": record.call_id,
        "tool": record.tool_name,
        "effect": str(record.effect),
        "key": record.idempotency_key,
        "digest": str(record.digest),
    }


def _interrupt(record: Queued) -> Facts | None:
    return {"interrupt": record.item_id} if record.lane == "control" else None


def _finished(record: RunFinished) -> Facts:
    facts: Facts = {"run": record.run_id, "outcome": str(record.outcome)}
    return {**facts, "limit": record.limit, "error": record.error}


_TELL: Final[Mapping[type, Callable[[Any], Facts | None]]] = MappingProxyType(
    {
        RunStarted: lambda r: {"run": r.run_id, "parent_run": r.parent_run},
        RunFinished: _finished,
        MessageAdded: _message,
        Decided: _decided,
        ToolStarted: _started,
        ToolFinished: lambda r: {**_observed(r.call_id, r.observation), "attempt": r.attempt},
        Observed: lambda r: _observed(r.call_id, r.observation),
        Queued: _interrupt,
        ApprovalRequested: _approval,
        ApprovalResolved: _resolved,
        LayerFact: lambda r: {"layer": r.name},
        Activated: lambda r: {"epoch": r.epoch},
        Snapshot: lambda r: {"messages": len(r.messages)},
    }
)
AUDITED: Final = frozenset(_TELL)
