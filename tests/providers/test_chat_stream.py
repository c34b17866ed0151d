"""Recorded streams, replayed to the real client over a real connection."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from callboard.assembler import Complete, Incomplete
from callboard.errors import ErrorCategory, ModelError
from callboard.json_text import FrozenDict
from callboard.messages import AssistantMessage, StopReason, ThinkingBlock
from callboard.model import Delta, TextDelta
from callboard.testing import ask_model, make_request
from callboard_providers.models import OpenAIChatModel
from callboard_providers.models.recorded import Answer, ReplayServer, piece, read_answer, sse

pytestmark = pytest.mark.anyio
WIRE = Path(__file__).parents[1] / "data" / "wire"


async def asked(answer: Answer, **options: Any) -> Complete | Incomplete:
    with ReplayServer([answer]) as server:
        model = OpenAIChatModel("m", base_url=server.url, **options)
        return await ask_model(make_request(model))


async def message(answer: Answer) -> AssistantMessage:
    result = await asked(answer)
    assert isinstance(result, Complete), result
    return result.message


async def test_text_comes_in_pieces_and_usage_after_it() -> None:
    seen: list[Delta] = []
    with ReplayServer([read_answer(WIRE / "usage.sse")]) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        result = await ask_model(make_request(model), seen=seen)
    assert isinstance(result, Complete)
    assert result.message.text == "Hello! How can I assist you today?"
    assert len([delta for delta in seen if isinstance(delta, TextDelta)]) > 5
    usage = result.message.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (22, 10, 0)


async def test_unknown_usage_is_not_zero() -> None:
    usage = (await message(read_answer(WIRE / "plain.sse"))).usage
    assert usage.input_tokens is None
    assert usage.reasoning_tokens is None


async def test_a_length_stop_is_told() -> None:
    assert (await message(read_answer(WIRE / "plain.sse"))).stop_reason is StopReason.LENGTH


async def test_a_call_arrives_whole() -> None:
    found = await message(read_answer(WIRE / "tool_call.sse"))
    assert [(call.name, call.arguments) for call in found.calls] == [("add", {"a": 17, "b": 25})]
    assert found.stop_reason is StopReason.TOOL_USE
    assert found.text == ""


async def test_parallel_calls_stay_apart() -> None:
    calls = (await message(read_answer(WIRE / "parallel_calls.sse"))).calls
    assert [call.name for call in calls] == ["get_current_time", "add"]
    assert all(call.problem is None for call in calls)


async def test_a_cut_call_says_length() -> None:
    """Nothing of it may run: the loop decides that by the stop reason."""
    found = await message(read_answer(WIRE / "truncated_call.sse"))
    assert found.stop_reason is StopReason.LENGTH
    assert found.calls[0].problem is not None


async def test_an_error_object_in_the_stream_is_an_error() -> None:
    with pytest.raises(ModelError) as caught:
        await asked(read_answer(WIRE / "malformed_output.sse"))
    assert caught.value.category is ErrorCategory.MALFORMED_OUTPUT


async def test_str_01_chunks_without_choices_are_fine() -> None:
    used: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 8, "completion_tokens": 4}}
    empty: dict[str, Any] = {"choices": []}
    chunks = (empty, piece(content="he"), empty, piece(content="llo"), piece("stop"), used, empty)
    found = await message(sse(*chunks))
    assert found.text == "hello"
    assert (found.usage.input_tokens, found.usage.output_tokens) == (8, 4)


def call_piece(arguments: str, **fields: Any) -> dict[str, Any]:
    name = {"name": fields.pop("name")} if "name" in fields else {}
    return piece(tool_calls=[{**fields, "function": {**name, "arguments": arguments}}])


async def test_str_02_calls_without_index_stay_apart() -> None:
    found = await message(
        sse(
            call_piece('{"x":', id="a", name="echo"),
            call_piece('"1"}'),
            call_piece('{"x":"2"}', id="b", name="echo"),
            call_piece('{"x":"3"}', id="c", name="echo", index=5),
            piece("tool_calls"),
        )
    )
    assert [(c.id, c.arguments["x"]) for c in found.calls] == [("a", "1"), ("b", "2"), ("c", "3")]


async def test_str_03_two_ids_under_one_index_are_two_calls() -> None:
    found = await message(
        sse(
            call_piece('{"x":"1"}', id="a", name="echo", index=0),
            call_piece('{"x":', id="b", name="echo", index=0),
            call_piece('"2"}', id="b", name="echo", index=0),
            piece("tool_calls"),
        )
    )
    assert [(c.name, c.arguments["x"]) for c in found.calls] == [("echo", "1"), ("echo", "2")]


async def test_str_07_an_end_without_stop_reason_is_incomplete() -> None:
    pay = call_piece('{"n":1}', id="a", name="pay", index=0)
    assert isinstance(await asked(sse(pay, done=False)), Incomplete)
    assert isinstance(await asked(sse(pay)), Incomplete)


async def test_a_provider_that_never_says_why_it_stopped_can_be_declared() -> None:
    result = await asked(sse(piece(content="ok")), sends_stop_reason=False)
    assert isinstance(result, Complete)
    assert result.message.stop_reason is StopReason.OTHER


async def test_msg_03_a_refusal_says_why() -> None:
    found = await message(sse(piece(refusal="I will "), piece(refusal="not."), piece("stop")))
    assert (found.stop_reason, found.stop_detail) == (StopReason.REFUSAL, "I will not.")


async def test_msg_03_a_content_filter_keeps_the_partial_text() -> None:
    found = await message(sse(piece(content="so"), piece("content_filter")))
    assert (found.stop_reason, found.text) == (StopReason.FILTER, "so")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_thinking(field: str) -> None:
    found = await message(
        sse(piece(**{field: "hm "}), piece(**{field: "so"}), piece(content="42"), piece("stop"))
    )
    assert found.content[0] == ThinkingBlock(text="hm so")
    assert found.text == "42"


async def test_text_of_any_script_survives() -> None:
    raw = '{"choices":[{"index":0,"delta":{"content":"naïve 日本 🎭"},"finish_reason":"stop"}]}'
    assert (await message(Answer(body=f"data: {raw}\n\n".encode()))).text == "naïve 日本 🎭"


async def test_text_may_come_as_parts() -> None:
    parts = [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]
    assert (await message(sse(piece(content=parts), piece("stop")))).text == "ok"


async def test_half_a_character_in_each_of_two_chunks_is_one() -> None:
    found = await message(sse(piece(content="\ud83c"), piece(content="\udfad"), piece("stop")))
    assert found.text == "🎭"


async def test_a_chunk_that_is_no_json_is_malformed_output() -> None:
    with pytest.raises(ModelError) as caught:
        await asked(Answer(body=b"data: {oops\n\n"))
    assert caught.value.category is ErrorCategory.MALFORMED_OUTPUT


async def test_the_name_of_a_call_counts_once_however_often_it_comes() -> None:
    found = await message(
        sse(
            call_piece("{", id="a", name="add", index=0),
            call_piece("}", id="a", name="add", index=0),
            piece("tool_calls"),
        )
    )
    assert [(c.name, c.arguments) for c in found.calls] == [("add", FrozenDict())]


def test_nothing_is_read_from_the_environment_at_construction() -> None:
    before = dict(os.environ)
    assert "m" in repr(OpenAIChatModel("m"))
    assert dict(os.environ) == before
