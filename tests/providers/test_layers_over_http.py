"""The layers around the model with a real adapter, a real server, and its recorded failures."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from callboard import ReActAgent, TextBlock, UserMessage
from callboard_mixins import (
    FallbackMixin,
    MediaFilterMixin,
    RateLimit,
    RateLimiter,
    RateLimitMixin,
    RetryMixin,
    RetryPolicy,
)
from callboard_providers.models import OpenAIChatModel
from callboard_providers.models.recorded import (
    Answer,
    ReplayServer,
    piece,
    read_answer,
    refusal,
    sse,
)
from tests.mixins.kit import png, shown, watched

pytestmark = pytest.mark.anyio

WIRE = Path(__file__).parents[1] / "data" / "wire"
DONE = sse(piece(content="do"), piece(content="ne"), piece("stop"))
CUT = sse(piece(content="Here is "), done=False, then="drop")
CALL = {
    "index": 0,
    "id": "call_1|fc_1",
    "type": "function",
    "function": {"name": "note", "arguments": "{}"},
}


class Whole(FallbackMixin, RateLimitMixin, RetryMixin, MediaFilterMixin, ReActAgent):
    """An agent with all layers around the model."""


def model(server: ReplayServer, name: str) -> OpenAIChatModel:
    return OpenAIChatModel(name, base_url=server.url, api_key="k")


def agent_of(own: ReplayServer, other: ReplayServer, **options: Any) -> Whole:
    return Whole(
        model=model(own, "own"),
        fallback_models=[model(other, "other")],
        retry_policy=RetryPolicy(attempts=2, first_wait_s=0.01),
        rate_limiter=RateLimiter(others=RateLimit(concurrency=1)),
        **options,
    )


def note() -> str:
    """Write a note."""
    return "noted"


async def test_pi_72_the_wait_that_a_header_asks_for_is_kept() -> None:
    many = refusal(429, "slow down", headers={"retry-after-ms": "300"})
    with ReplayServer([many, DONE]) as own, ReplayServer([DONE]) as other:
        begun = time.monotonic()
        reply = await agent_of(own, other).run("go")
        assert time.monotonic() - begun >= 0.3
    assert (reply.text, len(own.requests), len(other.requests)) == ("done", 2, 0)


async def test_str_10_a_connection_that_breaks_in_an_answer_is_tried_again() -> None:
    with ReplayServer([CUT, DONE]) as own, ReplayServer([DONE]) as other:
        reply, events = await watched(agent_of(own, other))
    assert (reply.text, shown(events), len(own.requests)) == ("done", "done", 2)


@pytest.mark.parametrize("failure", [refusal(503, "busy"), CUT, sse(done=False, then="drop")])
async def test_a_server_that_goes_on_failing_is_followed_by_the_next(failure: Answer) -> None:
    with ReplayServer([failure]) as own, ReplayServer([DONE]) as other:
        reply, events = await watched(agent_of(own, other))
    assert reply.message is not None
    assert (reply.message.model, shown(events)) == ("openai:other", "done")
    assert len(own.requests) == 2


async def test_pi_66_the_next_server_gets_call_ids_that_it_takes() -> None:
    asks = sse(piece(tool_calls=[CALL]), piece("tool_calls"))
    answers = [asks, refusal(503, "busy")]
    with ReplayServer(answers) as own, ReplayServer([DONE]) as other:
        await agent_of(own, other, tools=[note]).run("go")
    native, foreign = own.requests[1]["messages"], other.requests[0]["messages"]
    assert native[1]["tool_calls"][0]["id"] == native[2]["tool_call_id"] == "call_1|fc_1"
    rewritten = foreign[1]["tool_calls"][0]["id"]
    assert rewritten == foreign[2]["tool_call_id"] != "call_1|fc_1"
    assert "|" not in rewritten


async def test_med_02_a_server_that_names_the_medium_teaches_it() -> None:
    refused = read_answer(WIRE / "image.json")
    with ReplayServer([refused, DONE]) as own, ReplayServer([DONE]) as other:
        agent = agent_of(own, other)
        await agent.run(UserMessage(content=(TextBlock(text="see"), png())))
        await agent.run("and?")
    first, second, third = (request["messages"][0]["content"] for request in own.requests)
    assert [part["type"] for part in first] == ["text", "image_url"]
    assert second == third == "see\n[image omitted: this model takes no images]"
    assert other.requests == []
