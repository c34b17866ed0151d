"""Tool use by constrained JSON, for models too small to follow a provider's tool format.

Every answer is one JSON object, held to a schema by the engine: `{"tool": NAME, "arguments":
{...}}` or `{"answer": TEXT}`. Used by `local`; the engine sees no tools at all. Worked examples,
sent as real turns, matter more to small models than any wording; one of them chains two calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from callboard.json_text import Json
from callboard.messages import (
    AssistantMessage,
    Content,
    ConversationMessage,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import ModelRequest, ToolOffer
from callboard.per_message import PerMessage
from callboard.tooling.tools import Tool
from callboard_providers.models.action_schema import action_schema, answer_schema

HOW_TO = """\
Reply with exactly one JSON object.
To use a tool: {"tool": "its name", "arguments": {...}}. You get its result, then you go on.
Use a tool for everything that a tool can find out or compute; never do that in your head.
When you have all results that the question needs: {"answer": "your answer"}."""


def _called(tool: str, **arguments: Json) -> AssistantMessage:
    return AssistantMessage.of(call_text(tool, arguments))


def _answered(text: str) -> AssistantMessage:
    return AssistantMessage.of(_json({"answer": text}))


def call_text(tool: str, arguments: Mapping[str, Json]) -> str:
    """A call as the model is to write it."""
    return _json({"tool": tool, "arguments": arguments})


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _result(tool: str, text: str) -> UserMessage:
    return UserMessage.of(f"Result of {tool}: {text}")


EXAMPLES: tuple[ConversationMessage, ...] = (
    UserMessage.of("Say good night in French."),
    _answered("Bonne nuit !"),
    UserMessage.of("Multiply 6 by 7, then take 5 away from the result."),
    _called("multiply", x=6, y=7),
    _result("multiply", "42"),
    _called("subtract", x=42, y=5),
    _result("subtract", "37"),
    _answered("6 times 7 is 42, and 42 minus 5 is 37."),
    UserMessage.of("A farmer has 240 sheep and sells 17. How many are left?"),
    _called("subtract", x=240, y=17),
    _result("subtract", "223"),
    _answered("The farmer has 223 sheep left."),
    UserMessage.of("How much is 58 minus 17?"),
    _called("subtract", x=58, y=17),
    _result("subtract", "41"),
    _answered("58 minus 17 is 41."),
    UserMessage.of("How many boxes are in warehouse 7?"),
    _called("count_boxes", warehouse=7),
    _result("count_boxes", "48"),
    _answered("There are 48 boxes in warehouse 7."),
)


class JsonAction:
    """Turns requests with tools, or with calls in their history, into ones without.

    `rewritten` returns the request that the engine gets and whether its answer is an action.
    """

    def __init__(self) -> None:
        self._told = PerMessage(_told)

    def rewritten(self, request: ModelRequest) -> tuple[ModelRequest, bool]:
        offer = request.offer if request.offer and request.offer.tools else None
        if offer is None and not any(map(_is_of_tools, request.messages)):
            return request, False
        leading = [m.text for m in takewhile(_is_system, request.messages)]
        system = "\n\n".join(part for part in (request.system, *leading, _tools(offer)) if part)
        told = [self._told(message) for message in request.messages[len(leading) :]]
        changed = replace(
            request,
            messages=(*EXAMPLES, *told),
            system=system,
            offer=None,
            output_schema=_schema(request, offer),
        )
        return changed, True


def _schema(request: ModelRequest, offer: ToolOffer | None) -> dict[str, Json]:
    """Only an answer where there are no tools, or where the model goes round in circles."""
    if offer is None or goes_in_circles(request.messages, polling=_polling(offer.tools)):
        return answer_schema(request.output_schema)
    return action_schema(offer, request.output_schema)


def _polling(tools: Sequence[Tool]) -> frozenset[str]:
    return frozenset([tool.name for tool in tools if tool.polling])


def goes_in_circles(
    messages: Sequence[ConversationMessage], *, polling: frozenset[str] = frozenset()
) -> bool:
    """Whether the last call was made before, with the same arguments, for the same prompt.

    A model of this size then repeats itself for ever: it is only let answer.
    """
    seen: list[str] = []
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage):
            calls = [call for call in message.calls if call.name not in polling]
            seen += [call_text(call.name, call.arguments) for call in reversed(calls)]
    return bool(seen) and seen[0] in seen[1:]


def _is_system(message: ConversationMessage) -> bool:
    return isinstance(message, SystemMessage)


def _is_of_tools(message: ConversationMessage) -> bool:
    return isinstance(message, ToolResultMessage)


def _tools(offer: ToolOffer | None) -> str:
    if offer is None:
        return HOW_TO
    lines = [
        f"- {tool.name}: {' '.join(tool.description.split())} "
        f"Arguments: {_json(tool.parameters.get('properties', {}))}"
        for tool in offer.tools
    ]
    return "\n".join(["Your tools:", *lines, HOW_TO])


def _told(message: ConversationMessage) -> ConversationMessage:
    """One message in this notation. Media stay what they are, for the engine to judge."""
    match message:
        case AssistantMessage(calls=()):
            return _answered(message.text) if message.text else message
        case AssistantMessage():
            lines = [message.text, *map(_line, message.calls)]
            return AssistantMessage.of("\n".join(line for line in lines if line))
        case ToolResultMessage():
            said = "Error from" if message.is_error else "Result of"
            text = TextBlock(text=f"{said} {message.tool_name}: {message.text or '(empty)'}")
            media: list[Content] = [b for b in message.content if not isinstance(b, TextBlock)]
            return UserMessage(content=(text, *media))
        case _:
            return message


def _line(call: ToolCall) -> str:
    return call_text(call.name, call.arguments)
