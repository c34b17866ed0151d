"""Asking a model without an agent: a request made from little, and its assembled answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import cast

from callboard.assembler import Assembler, Complete, Incomplete
from callboard.json_text import Json
from callboard.messages import (
    ConversationMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from callboard.model import Delta, Model, ModelRequest, ModelSettings, Purpose, ToolOffer
from callboard.tooling.tools import Tool


def make_request(
    model: Model,
    *,
    messages: str | Sequence[ConversationMessage] = "hello",
    tools: Sequence[Tool] = (),
    choice: str = "auto",
    system: str = "",
    settings: ModelSettings | None = None,
    purpose: Purpose = Purpose.ANSWER,
    output_schema: Mapping[str, Json] | None = None,
) -> ModelRequest:
    """A request as an agent would build it; a text is one user message, no tools is no offer."""
    said = (UserMessage.of(messages),) if isinstance(messages, str) else messages
    return ModelRequest(
        model=model,
        messages=tuple(said),
        system=system,
        offer=ToolOffer(tools=tuple(tools), choice=choice) if tools else None,
        settings=settings or ModelSettings(),
        purpose=purpose,
        output_schema=output_schema,
    )


def make_result(call: ToolCall, text: str) -> ToolResultMessage:
    """The message that answers a call with a text."""
    return ToolResultMessage(call_id=call.id, tool_name=call.name, content=blocks_of(text))


async def ask_model(
    request: ModelRequest, *, seen: list[Delta] | None = None
) -> Complete | Incomplete:
    """Ask `request.model` and assemble its answer. `seen` collects the deltas as they came.

    Raises:
        ModelError: the model refused or failed; what came before it is lost.
    """
    assembler = Assembler(model=request.model.name)
    async with aclosing(cast(AsyncGenerator[Delta], request.model.stream(request))) as deltas:
        async for delta in deltas:
            if seen is not None:
                seen.append(delta)
            assembler.feed(delta)
    return assembler.result()
