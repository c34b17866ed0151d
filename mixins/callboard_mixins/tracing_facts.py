"""The attributes of spans, by the semantic conventions of OpenTelemetry for generative AI (the
stage of development, of 2026). Pure; used by `tracing.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from callboard.json_text import Json, canonical
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    Media,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
)
from callboard.model import ModelRequest
from callboard.tooling.tools import Tool

Attributes = dict[str, str | int | float | bool | Sequence[str]]

_FINISH: Final[Mapping[StopReason, str]] = MappingProxyType(
    {
        StopReason.END: "stop",
        StopReason.TOOL_USE: "tool_call",
        StopReason.LENGTH: "length",
        StopReason.REFUSAL: "content_filter",
        StopReason.FILTER: "content_filter",
        StopReason.OTHER: "stop",
    }
)
_PROVIDERS: Final[Mapping[str, str]] = MappingProxyType({"gemini": "gcp.gemini"})


def names_of(model: str) -> tuple[str, str]:
    """The provider and the model of a name such as "openai:gpt-5"."""
    kind, colon, name = model.partition(":")
    return _PROVIDERS.get(kind, kind), name if colon else model


def request_facts(request: ModelRequest) -> Attributes:
    """What a model call asks for."""
    provider, model = names_of(request.model.name)
    settings = request.settings
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": settings.temperature,
        "gen_ai.request.top_p": settings.top_p,
        "gen_ai.request.max_tokens": settings.max_tokens,
        "gen_ai.request.seed": settings.seed,
        "gen_ai.request.stop_sequences": settings.stop or None,
        "gen_ai.output.type": "json" if request.output_schema is not None else None,
    }
    return known(facts)


def message_facts(message: AssistantMessage) -> Attributes:
    """What came of a model call."""
    usage = message.usage
    facts: dict[str, Any] = {
        "gen_ai.response.id": message.id,
        "gen_ai.response.model": names_of(message.model)[1] if message.model else None,
        "gen_ai.response.finish_reasons": (_FINISH[message.stop_reason],),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return known(facts)


def tool_facts(call_id: str, tool: Tool) -> Attributes:
    """Which tool runs, and for which call."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool.name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": tool.description,
    }


def known(facts: Mapping[str, Any]) -> Attributes:
    """The facts that are known: unknown is not zero."""
    return {name: value for name, value in facts.items() if value is not None}


def content_of(messages: Sequence[ConversationMessage]) -> str:
    """Messages as the conventions write them, in JSON. Media are named and left out."""
    return canonical([_message(message) for message in messages])


def _message(message: ConversationMessage) -> Json:
    if isinstance(message, ToolResultMessage):
        result = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [result]}
    told: dict[str, Json] = {"role": message.role, "parts": [_part(b) for b in message.content]}
    if isinstance(message, AssistantMessage):
        told["finish_reason"] = _FINISH[message.stop_reason]
    return told


def _part(block: object) -> Json:
    match block:
        case TextBlock(text=text):
            return {"type": "text", "content": text}
        case ThinkingBlock(text=text):
            return {"type": "reasoning", "content": text}
        case ToolCall(id=id, name=name, arguments=arguments):
            return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}
        case Media(type=kind, media_type=media_type):
            return {"type": kind, "mime_type": media_type}
        case _:
            return {"type": type(block).__name__}
