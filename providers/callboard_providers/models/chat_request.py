"""The body of an OpenAI chat request. Called by `openai_chat` once for each model call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callboard.errors import ConfigurationError
from callboard.json_text import Json, thaw
from callboard.model import ModelRequest, ModelSettings, ToolOffer
from callboard.tooling.tools import Tool
from callboard_providers.models.chat_messages import ChatMessages
from callboard_providers.models.json_shape import array_in, is_array, is_object, object_in

Body = dict[str, Any]


def chat_body(
    request: ModelRequest, *, model: str, messages: ChatMessages, max_tokens_field: str
) -> Body:
    """The whole body but `stream`. `settings.extra` wins over everything else in it."""
    body: Body = {
        "model": model,
        "messages": messages.wire(request.messages, system=request.system),
        **_settings(request.settings, max_tokens_field),
        **_offer(request.offer),
    }
    if request.output_schema is not None:
        body["response_format"] = response_format(request.output_schema)
    body["stream_options"] = {"include_usage": True}
    return {**body, **request.settings.extra}


def true_names(offer: ToolOffer | None) -> dict[str, str]:
    """From the names on the wire back to the tools' own."""
    return {tool.wire_name: tool.name for tool in offer.tools} if offer else {}


def _settings(settings: ModelSettings, max_tokens_field: str) -> Body:
    body: Body = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        max_tokens_field: settings.max_tokens,
        "stop": list(settings.stop) or None,
        "seed": settings.seed,
        "reasoning_effort": settings.reasoning_effort,
    }
    return {key: value for key, value in body.items() if value is not None}


def _offer(offer: ToolOffer | None) -> Body:
    """Tools with their options, or nothing.

    A choice that names a tool is sent as that tool alone plus "required": servers exist that
    take a named choice for "any tool".
    """
    if offer is None or not offer.tools:
        return {}
    body: Body = {"tools": [_tool(tool) for tool in _chosen(offer)]}
    if offer.choice != "auto":
        body["tool_choice"] = "required"
    if offer.parallel is not None:
        body["parallel_tool_calls"] = offer.parallel
    return body


def _chosen(offer: ToolOffer) -> Sequence[Tool]:
    if offer.choice in ("auto", "required"):
        return offer.tools
    found = [tool for tool in offer.tools if tool.name == offer.choice]
    if not found:
        names = ", ".join(tool.name for tool in offer.tools)
        raise ConfigurationError(
            f"the choice {offer.choice!r} is none of the tools offered: {names}"
        )
    return found


def _tool(tool: Tool) -> Body:
    function = {"name": tool.wire_name, "description": tool.description}
    return {"type": "function", "function": {**function, "parameters": thaw(tool.parameters)}}


def response_format(schema: Mapping[str, Json]) -> Body:
    """Strict where the schema is closed all the way down, as OpenAI wants it for strict ones."""
    wanted = {"name": "answer", "schema": thaw(schema), "strict": _is_closed(schema)}
    return {"type": "json_schema", "json_schema": wanted}


def _is_closed(schema: Json) -> bool:
    if is_object(schema):
        if schema.get("type") == "object" or "properties" in schema:
            closed = schema.get("additionalProperties") is False
            names = set(object_in(schema, "properties"))
            if not closed or names != set(array_in(schema, "required")):
                return False
        return all(_is_closed(item) for item in schema.values())
    if is_array(schema):
        return all(_is_closed(item) for item in schema)
    return True
