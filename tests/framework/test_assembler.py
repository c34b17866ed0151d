"""Deltas become one message: fragments of calls, unterminated streams, unique ids, empty blocks."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import pytest

from callboard.assembler import Assembler, Complete, Incomplete, with_unique_ids
from callboard.messages import (
    NO_USAGE,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)
from callboard.model import (
    AttemptDiscarded,
    Delta,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)
from callboard.testing import call_piece, think, usage

END = StopDelta(StopReason.END)
EXECUTE = StopDelta(StopReason.TOOL_USE)


def result_of(*deltas: Delta) -> Complete | Incomplete:
    assembler = Assembler()
    for delta in deltas:
        assembler.feed(delta)
    return assembler.result()


def message_of(*deltas: Delta) -> AssistantMessage:
    result = result_of(*deltas)
    assert isinstance(result, Complete)
    return result.message


def calls_of(*deltas: Delta) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.raw) for call in message_of(*deltas, EXECUTE).calls]


def piece(x: str, id: str | None, index: int | None = None) -> ToolCallDelta:
    return call_piece(f'{{"x":"{x}"}}', id=id, name="echo", index=index)


def test_str_01_usage_behind_the_stop_reason_counts() -> None:
    message = message_of(TextDelta("he"), TextDelta("llo"), END, usage(8, 4))
    assert message.text == "hello"
    assert message.usage == Usage(input_tokens=8, output_tokens=4)


def test_the_last_usage_counts() -> None:
    assert message_of(usage(8, 1), TextDelta("a"), usage(8, 4), END).usage.output_tokens == 4


def test_usage_that_nobody_told_is_unknown() -> None:
    assert message_of(TextDelta("a"), END).usage == NO_USAGE


def test_str_02_fragments_without_index_belong_to_the_last_opened_call() -> None:
    opened = call_piece('{"x":', id="a", name="echo")
    found = calls_of(opened, call_piece('"1"}'), piece("2", "b"), piece("3", "c", index=5))
    assert found == [(id, "echo", f'{{"x":"{x}"}}') for id, x in zip("abc", "123", strict=True)]


def test_str_02_interleaved_fragments_go_to_the_call_of_their_index() -> None:
    a = call_piece('{"x":', id="a", name="echo", index=0)
    b = call_piece('{"x":', id="b", name="echo", index=7)
    rest = call_piece('"1"}', index=0), call_piece('"2"}', index=7)
    assert calls_of(a, b, *rest) == [("a", "echo", '{"x":"1"}'), ("b", "echo", '{"x":"2"}')]


def test_str_03_a_new_id_under_the_same_index_is_a_new_call() -> None:
    found = calls_of(piece("1", "a", index=0), piece("2", "b", index=0))
    assert found == [("a", "echo", '{"x":"1"}'), ("b", "echo", '{"x":"2"}')]


def test_str_03_the_same_id_under_the_same_index_continues() -> None:
    opened = call_piece('{"x":', id="a", name="echo", index=0)
    assert calls_of(opened, call_piece('"1"}', id="a", index=0)) == [("a", "echo", '{"x":"1"}')]


def test_str_03_a_fragment_without_id_continues_the_newest_call_of_its_index() -> None:
    again = call_piece('{"x":', id="b", name="echo", index=0), call_piece('"2"}', index=0)
    found = calls_of(piece("1", "a", index=0), *again)
    assert found == [("a", "echo", '{"x":"1"}'), ("b", "echo", '{"x":"2"}')]


def test_the_same_id_under_another_index_is_a_new_call() -> None:
    found = calls_of(piece("1", "a", index=0), piece("2", "a", index=1))
    assert [raw for _, _, raw in found] == ['{"x":"1"}', '{"x":"2"}']


def test_calls_without_ids_and_indexes_open_by_their_names() -> None:
    found = calls_of(piece("1", None), piece("2", None))
    assert [raw for _, _, raw in found] == ['{"x":"1"}', '{"x":"2"}']


def test_a_call_whose_index_comes_later_is_continued_by_id() -> None:
    opened = call_piece('{"x":', id="a", name="echo")
    assert calls_of(opened, call_piece('"1"}', id="a")) == [("a", "echo", '{"x":"1"}')]


def test_a_name_that_is_repeated_with_its_id_is_taken_once() -> None:
    opened = call_piece('{"x":', id="a", name="echo", index=0)
    again = call_piece('"1"}', id="a", name="echo", index=0)
    assert calls_of(opened, again) == [("a", "echo", '{"x":"1"}')]


def test_a_call_without_arguments_has_none() -> None:
    call = message_of(call_piece(id="a", name="now"), EXECUTE).calls[0]
    assert (call.arguments, call.problem) == ({}, None)


def test_str_07_a_stream_without_a_stop_reason_is_incomplete() -> None:
    result = result_of(call_piece('{"n":1}', index=0, id="a", name="pay"))
    assert isinstance(result, Incomplete)
    assert "without a stop reason" in result.reason
    assert result.message.calls[0].name == "pay"


def test_a_broken_stream_is_incomplete_even_behind_its_stop_reason() -> None:
    assembler = Assembler()
    assembler.feed(TextDelta("he"))
    assembler.feed(END)
    result = assembler.result(broken="reset")
    assert isinstance(result, Incomplete)
    assert (result.message.text, result.reason) == ("he", "reset")


def test_str_10_a_discarded_attempt_leaves_nothing() -> None:
    pieces = TextDelta("Here is "), usage(8, 1), END, AttemptDiscarded("reset")
    message = message_of(*pieces, TextDelta("Here is the plan"), END)
    assert (message.text, message.usage) == ("Here is the plan", NO_USAGE)


def test_str_12_whole_and_streamed_answers_are_the_same_message() -> None:
    call = ToolCall(id="a", name="echo", raw='{"x":"1"}')
    whole = message_of(WholeDelta((TextBlock(text="so"), call)), usage(3, 2), EXECUTE)
    parts = TextDelta("s"), TextDelta("o"), piece("1", "a"), EXECUTE, usage(3, 2)
    assert replace(message_of(*parts), id=whole.id) == whole


def test_thk_01_a_signature_in_pieces_is_joined() -> None:
    pieces = think("I need "), think("echo"), think(signature="AAA"), think(signature="BBB")
    message = message_of(*pieces, piece("1", "a", index=0), EXECUTE)
    assert message.content[0] == ThinkingBlock(text="I need echo", signature="AAABBB")


def test_thk_01_thinking_behind_a_signature_is_a_block_of_its_own() -> None:
    message = message_of(think("a", signature="A"), think("b"), think(signature="B"), END)
    assert message.content == (
        ThinkingBlock(text="a", signature="A"),
        ThinkingBlock(text="b", signature="B"),
    )


def test_redacted_thinking_stands_alone() -> None:
    message = message_of(think("a"), think(redacted="X"), think(redacted="Y"), think("b"), END)
    assert message.content == (
        ThinkingBlock(text="a"),
        ThinkingBlock(redacted="X"),
        ThinkingBlock(redacted="Y"),
        ThinkingBlock(text="b"),
    )


def test_blocks_keep_the_order_in_which_they_came() -> None:
    message = message_of(think("a"), TextDelta("b"), piece("1", "a"), TextDelta("c"), EXECUTE)
    assert [block.type for block in message.content] == ["thinking", "text", "tool_call", "text"]


@pytest.mark.parametrize(
    "delta",
    [
        TextDelta(""),
        ThinkingDelta(),
        WholeDelta((TextBlock(text=""),)),
        WholeDelta((ThinkingBlock(),)),
        WholeDelta(()),
    ],
)
def test_msg_01_nothing_is_no_block(delta: Delta) -> None:
    assert message_of(delta, END).content == ()
    assert (
        message_of(delta, piece("1", "a"), EXECUTE).content
        == message_of(piece("1", "a"), EXECUTE).content
    )


def test_empty_text_does_not_split_a_thought() -> None:
    assert message_of(think("a"), TextDelta(""), think("b"), END).content == (
        ThinkingBlock(text="ab"),
    )


@pytest.mark.parametrize("nothing", [ThinkingDelta(""), ToolCallDelta(index=0), WholeDelta(())])
def test_an_empty_delta_does_not_split_a_text(nothing: Delta) -> None:
    found = message_of(TextDelta("a"), nothing, TextDelta("b"), END)
    assert found.content == (TextBlock(text="ab"),)


def test_the_stop_detail_is_kept() -> None:
    message = message_of(StopDelta(StopReason.REFUSAL, "policy"))
    assert (message.stop_reason, message.stop_detail) == (StopReason.REFUSAL, "policy")


def test_the_message_knows_its_model_and_id() -> None:
    assembler = Assembler(model="openai:x", id="m_1")
    assembler.feed(END)
    result = assembler.result()
    assert isinstance(result, Complete)
    assert (result.message.id, result.message.model) == ("m_1", "openai:x")


def test_what_is_no_delta_is_refused() -> None:
    with pytest.raises(TypeError, match="'hello' is not a delta"):
        Assembler().feed("hello")  # type: ignore[arg-type]


def test_a_watcher_is_shown_every_delta() -> None:
    assembler = Assembler()
    deltas: list[Delta] = [TextDelta("a"), think("b"), piece("1", "a"), UsageDelta(NO_USAGE), END]
    assert [assembler.feed(delta) for delta in deltas] == deltas


def echoes(*ids: str) -> AssistantMessage:
    return AssistantMessage(content=tuple([ToolCall(id=id, name="echo") for id in ids]))


def ids_of(message: AssistantMessage, taken: Container[str] = ()) -> list[str]:
    return [call.id for call in with_unique_ids(message, taken).calls]


def test_id_01_missing_and_repeated_ids_become_unique() -> None:
    ids = ids_of(echoes("", "", "k", "k"))
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids[2] == "k"


def test_id_01_ids_of_earlier_messages_are_not_used_again() -> None:
    assert ids_of(echoes("a", "b"), taken={"a"})[0] not in {"a", "b"}


def test_id_01_a_fresh_id_does_not_take_a_given_one() -> None:
    assert ids_of(echoes("", "k"))[1] == "k"


def test_id_01_a_message_with_unique_ids_is_the_same_object() -> None:
    message = echoes("a", "b")
    assert with_unique_ids(message, {"c"}) is message
