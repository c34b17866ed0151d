"""The request for a summary of old messages. Pure; used by `compaction.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from callboard.json_text import cut
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import ModelRequest, Purpose
from callboard_mixins.compacting import media_words
from callboard_mixins.token_estimate import BYTES_PER_TOKEN

_SHOWN_BYTES = 4_000  # of one message, to the model that sums up
_WHOLE_BYTES = 200_000  # of all of them


def summary_request(
    request: ModelRequest,
    old: Sequence[ConversationMessage],
    *,
    head: Sequence[ConversationMessage],
    instructions: str,
) -> ModelRequest:
    """What the model of this request is asked, so that it sums up the old messages. `head` is what
    stands for those before them: the summary that there is already.
    """
    window = request.model.capabilities.context_tokens
    half = _WHOLE_BYTES if window is None else window * BYTES_PER_TOKEN // 2
    text = to_sum_up(old, head=head, most_bytes=min(_WHOLE_BYTES, half))
    return replace(
        request,
        messages=(UserMessage.of(text),),
        system=instructions,
        offer=None,
        output_schema=None,
        purpose=Purpose.COMPACTION,
    )


def to_sum_up(
    messages: Sequence[ConversationMessage],
    *,
    head: Sequence[ConversationMessage] = (),
    most_bytes: int = _WHOLE_BYTES,
) -> str:
    """The messages as one text of about `most_bytes` at most. The head stays, for it stands for
    the most; then the newest count most.
    """
    begun = [cut(message.text, most_bytes // 2) for message in head]
    size = sum([_size(line) for line in begun])
    lines: list[str] = []
    for message in reversed(messages):
        line = _line(message)
        size += _size(line)
        if size > most_bytes:
            lines.append(f"({len(messages) - len(lines)} earlier messages are left out)")
            break
        lines.append(line)
    return "Sum this up:\n\n" + "\n\n".join([*begun, *reversed(lines)])


def _size(line: str) -> int:
    return len(line.encode(errors="replace"))


def _line(message: ConversationMessage) -> str:
    text = " ".join([part for part in (_text(message), media_words(message)) if part])
    if isinstance(message, ToolResultMessage):
        return f"result of {message.tool_name} ({message.status}): {text}"
    if isinstance(message, AssistantMessage):
        calls = [f"called {call.name}({cut(call.raw, 500)})" for call in message.calls]
        return "\n".join([f"agent: {text}", *calls])
    return f"user: {text}"


def _text(message: ConversationMessage) -> str:
    shown = cut(message.text, _SHOWN_BYTES)
    return shown if len(shown) == len(message.text) else f"{shown}..."
