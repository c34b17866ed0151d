"""What every request must satisfy, whatever the provider: calls and results pair, and nothing is
empty. `ScriptedModel` checks each request with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultMessage,
)
from callboard.model import ModelRequest, ToolOffer


def request_faults(request: ModelRequest, *, start: int = 0) -> list[str]:
    """Everything that is wrong with a request, in words; empty where it may be sent.

    The messages before `start` are taken for checked: they were a valid request before.
    """
    messages = request.messages
    faults = [*pairing_faults(messages, start=start), *_message_faults(messages, start)]
    if not messages:
        faults.append("the request has no messages")
    if request.offer is not None:
        faults.extend(_offer_faults(request.offer))
    return faults


def _offer_faults(offer: ToolOffer) -> Iterator[str]:
    if not offer.tools:
        yield "tools are offered and there are none: a request without tools has offer=None"
    elif offer.choice not in {"auto", "required", *(tool.name for tool in offer.tools)}:
        yield f"the tool choice {offer.choice!r} is not among the offered tools"


def pairing_faults(messages: Sequence[ConversationMessage], *, start: int = 0) -> list[str]:
    """Calls without exactly one result right behind their message; results without a call."""
    faults: list[str] = []
    open_ids: dict[str, str] = {}
    answered: set[str] = set()
    for at, message in enumerate(messages[start:], start):
        if isinstance(message, ToolResultMessage):
            faults.extend(_answer(message, at, open_ids, answered))
            continue
        faults.extend(_unanswered(open_ids, at))
        open_ids, answered = {}, set()
        if isinstance(message, AssistantMessage):
            faults.extend(_open(message, at, open_ids))
    faults.extend(_unanswered(open_ids, len(messages)))
    return faults


def _open(message: AssistantMessage, at: int, open_ids: dict[str, str]) -> Iterator[str]:
    for call in message.calls:
        if not call.id:
            yield f"message {at}: the call of {call.name!r} has no id"
        elif call.id in open_ids:
            yield f"message {at}: two calls have the id {call.id!r}"
        open_ids[call.id] = call.name


def _answer(
    message: ToolResultMessage, at: int, open_ids: dict[str, str], answered: set[str]
) -> Iterator[str]:
    name = open_ids.pop(message.call_id, None)
    if name is not None:
        answered.add(message.call_id)
        if name != message.tool_name:
            yield f"message {at}: the result of {name!r} says it is of {message.tool_name!r}"
    elif message.call_id in answered:
        yield f"message {at}: the call {message.call_id!r} has a second result"
    else:
        yield f"message {at}: a result for {message.call_id!r}, which no call before it asked for"


def _unanswered(open_ids: dict[str, str], at: int) -> Iterator[str]:
    for id, name in open_ids.items():
        yield f"before message {at}: the call {id!r} of {name!r} has no result"


def _message_faults(messages: Sequence[ConversationMessage], start: int) -> Iterator[str]:
    for at, message in enumerate(messages[start:], start):
        if not message.content and not isinstance(message, ToolResultMessage):
            yield f"message {at}: this {message.role} message is empty"
        if any(isinstance(block, TextBlock) and not block.text for block in message.content):
            yield f"message {at}: an empty text block"
