"""One line of text for a record, for people who look into a journal."""

from __future__ import annotations

from collections.abc import Iterable

from callboard.journaling.record_codec import encode
from callboard.journaling.records import (
    ApprovalRequested,
    Decided,
    DraftInterrupted,
    MessageAdded,
    ModelAttempted,
    Observed,
    Prompted,
    Record,
    RunFinished,
    RunStarted,
    Snapshot,
    Taken,
    ToolFinished,
    ToolStarted,
)
from callboard.messages import AssistantMessage, Message, Observation, ToolCall

LONGEST = 160  # characters


def one_line(text: str) -> str:
    """The text without line ends and terminal controls, cut where it is long."""
    flat = "".join([c if c.isprintable() else " " for c in text])
    flat = " ".join(flat.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"


def legible(text: str) -> str:
    """The text with what a terminal would not show, or would obey, written out."""
    return "".join([c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text])


def line_of_record(record: Record) -> str:
    """What a record tells, without its kind."""
    return one_line(_told(record))


def _told(record: Record) -> str:
    match record:
        case RunStarted(run_id=run_id):
            return run_id
        case RunFinished(outcome=outcome, text=text, error=error):
            return f"{outcome}: {error or text}"
        case Prompted(messages=messages) | Snapshot(messages=messages):
            return _said(messages)
        case Taken(message=message):
            return _said([message])
        case MessageAdded(message=message) | DraftInterrupted(partial=message):
            return _said([message])
        case ModelAttempted(model=model, ended=ended, usage=usage, error=error):
            tokens = f"{usage.input_tokens or '?'} tokens in, {usage.output_tokens or '?'} out"
            return f"{model}: {error or ended}, {tokens}"
        case Decided(call_id=call_id, verdict=verdict, reason=reason):
            return f"{call_id}: {verdict} {reason or ''}"
        case ToolStarted(call_id=call_id, tool_name=tool_name, effect=effect):
            return f"{call_id}: {tool_name} ({effect})"
        case (
            ToolFinished(call_id=call_id, observation=observation)
            | Observed(call_id=call_id, observation=observation)
        ):
            return f"{call_id}: {_seen(observation)}"
        case ApprovalRequested(approval=approval):
            return f"{approval.id}: {approval.tool_name}: {approval.reason}"
        case _:
            return _as_json(record)


def _said(messages: Iterable[Message]) -> str:
    return " | ".join([_words(message) for message in messages])


def _words(message: Message) -> str:
    calls = message.calls if isinstance(message, AssistantMessage) else ()
    return " ".join([message.text, *map(_call, calls)]).strip()


def _call(call: ToolCall) -> str:
    return f"→ {call.name}({call.raw}) as {call.id}"


def _seen(observation: Observation) -> str:
    return f"{observation.status}: {observation.text}"


def _as_json(record: Record) -> str:
    """The fields, without version and kind."""
    text = encode(record).decode()
    return text[text.index(record.kind) + len(record.kind) + 2 : -1]
