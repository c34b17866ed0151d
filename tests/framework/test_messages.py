"""Blocks, messages and tool calls: frozen, parsed once, the same after a round trip."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    FileBlock,
    ImageBlock,
    Message,
    Observation,
    Status,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
    text_of,
)

codec: TypeAdapter[ConversationMessage] = TypeAdapter(Message)
HIGH = "\ud83d"
LONE = "\N{REPLACEMENT CHARACTER}"


def call(raw: str) -> ToolCall:
    return ToolCall(id="c", name="echo", raw=raw)


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('{"x": "1"}', {"x": "1"}),
        ('{"x": [1, {"y": 2}]}', {"x": (1, {"y": 2})}),
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ('"{\\"x\\": 1}"', {"x": 1}),
        ('"{\\"x\\": \\"a\\nb\\"}"', {"x": "a\nb"}),
    ],
)
def test_arguments_are_parsed(raw: str, arguments: object) -> None:
    assert call(raw).arguments == arguments
    assert call(raw).problem is None


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ('{"x": ', "are not one JSON object: Expecting value"),
        ('{"x": 1}{"x": 2}', "are not one JSON object: Extra data"),
        ('{"x": 1, "x": 2}', "the key 'x' stands twice"),
        ("[1]", "must be an object, not an array"),
        ("7", "must be an object, not a number"),
        ('"hello"', "are not one JSON object"),
        ('"\\"{}\\""', "must be an object, not text"),
    ],
)
def test_arguments_that_are_no_object_have_a_problem(raw: str, problem: str) -> None:
    assert problem in str(call(raw).problem)
    assert call(raw).arguments == {}


def test_arguments_are_parsed_once() -> None:
    parsed = call('{"x": 1}')
    assert parsed.arguments is parsed.arguments


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{ "x" : 1 }', '{ "x" : 1 }'),
        ('{"x": ', "{}"),
        ("", "{}"),
        ("null", "{}"),
        ("[1]", "{}"),
        ('"{\\"x\\": 1}"', '{"x":1}'),
        (r'{"k": "\ud83d"}', f'{{"k":"{LONE}"}}'),
        (r'{"k": "\u00e9"}', r'{"k": "\u00e9"}'),
    ],
)
def test_what_is_sent_is_always_an_object(raw: str, sent: str) -> None:
    assert call(raw).sendable_raw == sent


def test_a_changed_call_keeps_its_id() -> None:
    changed = call('{"x": 1}').with_arguments({"y": ("é", None)})
    assert changed == ToolCall(id="c", name="echo", raw='{"y":["é",null]}')
    assert changed.arguments == {"y": ("é", None)}


def test_a_call_under_another_id_keeps_its_text() -> None:
    assert call('{"x":  1}').with_id("d") == ToolCall(id="d", name="echo", raw='{"x":  1}')


def test_uni_01_changed_arguments_can_be_sent() -> None:
    assert call("{}").with_arguments({"k": HIGH}).raw.encode()


def test_a_copy_with_another_text_has_the_arguments_of_that_text() -> None:
    parsed = call('{"x": 1}')
    assert parsed.arguments == {"x": 1}
    assert replace(parsed, raw='{"x": 2}').arguments == {"x": 2}


def test_equal_calls_stay_equal_after_parsing() -> None:
    one, other = call('{"x": 1}'), call('{"x": 1}')
    assert one.arguments == {"x": 1}
    assert (one, hash(one), repr(one)) == (other, hash(other), repr(other))


def test_text_is_one_block_and_no_text_is_none() -> None:
    assert UserMessage.of("a").content == (TextBlock(text="a"),)
    assert SystemMessage.of("").content == ()
    assert UserMessage(content="a").content == (TextBlock(text="a"),)  # type: ignore[arg-type]


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="Unexpected keyword argument"):
        codec.validate_python({"role": "user", "content": (), "contnt": "b"})


def test_the_text_of_a_message_is_that_of_its_text_blocks() -> None:
    blocks = ThinkingBlock(text="hm"), TextBlock(text="a"), call("{}"), TextBlock(text="b")
    assert AssistantMessage(content=blocks).text == text_of(blocks) == "ab"


def test_calls_keep_their_order_and_can_be_left_out() -> None:
    one, two = call("1"), call("2")
    message = AssistantMessage(content=(one, TextBlock(text="a"), two))
    assert message.calls == (one, two)
    assert message.without_calls().content == (TextBlock(text="a"),)
    assert message.without_calls().id == message.id


@pytest.mark.parametrize("status", list(Status))
def test_every_status_but_ok_is_an_error(status: Status) -> None:
    message = ToolResultMessage(call_id="c", tool_name="echo", status=status)
    assert message.is_error is (status is not Status.OK)


def test_usage_that_is_unknown_adds_nothing_and_is_not_zero() -> None:
    total = Usage(input_tokens=3) + Usage(input_tokens=5, output_tokens=1)
    assert total == Usage(input_tokens=8, output_tokens=1)
    assert total.cached_tokens is None


def test_ids_are_never_the_same() -> None:
    assert len({new_id("m") for _ in range(1000)}) == 1000


def test_an_observation_of_a_text_has_one_block() -> None:
    assert Observation.of("boom", Status.FAILED).content == (TextBlock(text="boom"),)
    assert Observation.of("").content == ()
    assert Observation.of("boom").text == "boom"


@pytest.mark.parametrize("block", [TextBlock(text=HIGH), ThinkingBlock(text=HIGH)])
def test_uni_01_every_text_can_be_stored(block: TextBlock | ThinkingBlock) -> None:
    assert block.text.encode() == b"\xef\xbf\xbd"


def test_uni_01_halves_that_meet_in_a_block_are_joined() -> None:
    assert UserMessage.of("\ud83d\ude00").text == "\N{GRINNING FACE}"


texts = st.text(st.sampled_from(["a", "é", "\N{GRINNING FACE}", HIGH, "\x00", "\n"]), max_size=5)
names = st.text(
    st.sampled_from(["a", "é", "\x00", '"']), max_size=5
)  # made sendable where they arise
contents = st.lists(
    st.builds(TextBlock, text=texts)
    | st.builds(ImageBlock, data=st.just("aGk="), media_type=st.just("image/png"))
    | st.builds(FileBlock, url=st.just("https://x.test/a.pdf"), name=st.none() | texts),
    max_size=3,
).map(tuple)
thoughts = st.builds(ThinkingBlock, text=texts, signature=st.none() | st.just("AAA+/="))
answers = st.lists(
    thoughts | st.builds(TextBlock, text=texts) | st.builds(call, names), max_size=4
).map(tuple)
messages = st.one_of(
    st.builds(UserMessage, content=contents),
    st.builds(SystemMessage, content=contents),
    st.builds(AssistantMessage, content=answers, stop_reason=st.sampled_from(StopReason)),
    st.builds(ToolResultMessage, call_id=names, tool_name=names, content=contents,
              status=st.sampled_from(Status), payload=st.none() | st.just({"a": [1]})),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(messages)
def test_thk_01_every_message_survives_the_store(message: ConversationMessage) -> None:
    stored = codec.dump_json(message)
    assert codec.validate_json(stored) == message
    assert codec.dump_json(codec.validate_json(stored)) == stored


def test_a_copy_of_a_message_is_equal() -> None:
    message = AssistantMessage(content=(call('{"x": 1}'),))
    assert copy.deepcopy(message) == message
