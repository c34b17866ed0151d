"""What a round costs when the conversation is long: no more than when it is short."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.journaling.message_view import MessageView
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    StopReason,
    TextBlock,
    ToolCall,
    UserMessage,
)
from callboard.model import Capabilities, Delta, ModelRequest, StopDelta, WholeDelta
from tests.framework.kit import echo

pytestmark = pytest.mark.anyio


class CallsOnce:
    """A model that looks at the last message only."""

    name = "calls-once"
    capabilities = Capabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if request.messages[-1].role == "user":
            yield WholeDelta((ToolCall(id="", name="echo", raw='{"x":"1"}'),))
            yield StopDelta(StopReason.TOOL_USE)
        else:
            yield WholeDelta((TextBlock(text="done"),))
            yield StopDelta(StopReason.END)


async def calls_of_a_round(length: int) -> int:
    """How many functions one more round calls after this many messages."""
    history: list[ConversationMessage] = []
    for at in range(length // 2):
        history += [UserMessage.of(f"u{at}"), AssistantMessage.of(f"a{at}")]
    agent = ReActAgent(model=CallsOnce(), tools=[echo], messages=history)
    await agent.run("warm up")
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        assert (await agent.run("go")).text == "done"
    finally:
        sys.setprofile(None)
    return count


async def test_mem_05_a_round_costs_the_same_after_ten_thousand_messages() -> None:
    short, long = await calls_of_a_round(100), await calls_of_a_round(10_000)
    assert long <= short * 1.1


def test_mem_05_a_view_shares_its_messages_and_a_slice_takes_no_more_than_it_shows() -> None:
    history: list[ConversationMessage] = [UserMessage.of(str(at)) for at in range(9)]
    view = MessageView(history)
    history.append(UserMessage.of("later"))
    assert view[0] is history[0]
    for part in (slice(-2, None), slice(None), slice(8, 99), slice(None, None, -3), slice(5, 2)):
        assert view[part] == tuple(view)[part]
