"""The scripted model: it plays what is written, and is strict about what it is asked."""

from __future__ import annotations

from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from callboard.assembler import Complete, Incomplete
from callboard.errors import ConfigurationError, ErrorCategory, ModelError, ScriptError
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    UserMessage,
)
from callboard.model import ModelRequest, WholeDelta
from callboard.testing import (
    ScriptedModel,
    ScriptItem,
    ask_model,
    call,
    call_piece,
    drop,
    eof,
    error,
    finish,
    make_request,
    make_result,
    pause,
    raw_call,
    say,
    stream,
    think,
    usage,
)

pytestmark = pytest.mark.anyio


async def play(*script: ScriptItem) -> AssistantMessage:
    """The last complete answer of a script."""
    model = ScriptedModel(script)
    *_, last = [await ask_model(make_request(model)) for _ in script]
    assert isinstance(last, Complete)
    return last.message


async def test_a_text_is_an_answer() -> None:
    message = await play("hello")
    assert (message.text, message.stop_reason) == ("hello", StopReason.END)


async def test_say_stops_for_tool_use_where_it_calls() -> None:
    message = await play(say("let me", call("add", a=1, b=2)))
    assert message.stop_reason is StopReason.TOOL_USE
    assert message.content[1] == ToolCall(id="call_1", name="add", raw='{"a":1,"b":2}')


async def test_say_takes_stop_detail_and_usage() -> None:
    message = await play(say("no", stop="refusal", detail="policy", usage=usage(8, 4).usage))
    assert (message.stop_reason, message.stop_detail) == (StopReason.REFUSAL, "policy")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (8, 4)


async def test_an_empty_text_is_no_block() -> None:
    assert (await play(say(""))).content == ()


async def test_say_takes_thoughts_and_blocks() -> None:
    message = await play(say(think("hm", signature="S"), TextBlock(text="so")))
    assert message.content == (ThinkingBlock(text="hm", signature="S"), TextBlock(text="so"))


async def test_a_bare_call_is_an_answer() -> None:
    assert (await play(call("now"))).calls[0].name == "now"


async def test_calls_without_ids_are_counted_over_the_answers() -> None:
    message = await play(
        call("now"), say(call("now"), call("now", _id="mine"), call("now", _id=""))
    )
    assert [call.id for call in message.calls] == ["call_2", "mine", ""]


async def test_raw_calls_keep_their_text() -> None:
    assert (await play(raw_call("add", '{"a": tru'))).calls[0].raw == '{"a": tru'


async def test_a_stream_comes_in_pieces() -> None:
    pieces = stream(think("hm"), "he", "llo", call_piece('{"a"', id="x", name="add", index=0),
                    call_piece(":1}", index=0), usage(1, 2), finish("tool_use"))  # fmt: skip
    message = await play(pieces)
    assert message.text == "hello"
    assert message.calls == (ToolCall(id="x", name="add", raw='{"a":1}'),)


async def test_a_stream_stops_properly_where_it_does_not_say_otherwise() -> None:
    assert (await play(stream("a", call("now")))).stop_reason is StopReason.TOOL_USE


async def test_eof_leaves_the_message_incomplete() -> None:
    result = await ask_model(make_request(ScriptedModel([stream("he", eof(), "llo")])))
    assert isinstance(result, Incomplete)
    assert result.message.text == "he"


async def test_drop_is_a_network_error() -> None:
    with pytest.raises(ModelError, match="reset") as raised:
        await play(stream("he", drop()))
    assert raised.value.category is ErrorCategory.NETWORK


async def test_an_error_carries_what_the_provider_said() -> None:
    with pytest.raises(ModelError, match="slow down") as raised:
        await play(stream(error("slow down", category="rate_limited", status=429, retry_after_s=2)))
    found = raised.value
    assert (found.category, found.status, found.retry_after_s) == ("rate_limited", 429, 2)


async def test_an_exception_in_a_script_is_raised() -> None:
    with pytest.raises(KeyError):
        await play(KeyError("x"))


async def test_a_pause_takes_its_time() -> None:
    begin = anyio.current_time()
    await play(stream("a", pause(30), "b"))
    assert anyio.current_time() - begin == pytest.approx(30)


async def test_a_function_answers_by_the_request() -> None:
    async def later(request: ModelRequest) -> ScriptItem:
        await anyio.lowlevel.checkpoint()
        return lambda again: say(f"{request.messages[0].text} and {again.messages[0].text}")

    assert (await play(later)).text == "hello and hello"


async def test_requests_keep_the_messages_of_their_moment() -> None:
    history: list[ConversationMessage] = [UserMessage.of("one")]
    model = ScriptedModel(["ok"])
    await ask_model(ModelRequest(model=model, messages=history))
    history.append(UserMessage.of("two"))
    assert [message.text for message in model.requests[0].messages] == ["one"]


async def test_one_question_too_many_names_the_last_message() -> None:
    model = ScriptedModel(["ok"], name="tiny")
    await ask_model(make_request(model))
    with pytest.raises(ScriptError, match=r"'tiny' has 1 answers.*user message 'more'.*then="):
        await ask_model(make_request(model, messages="more"))


async def test_then_answers_for_ever() -> None:
    model = ScriptedModel(["ok"], then="done")
    texts = [await ask_model(make_request(model)) for _ in range(3)]
    assert [text.message.text for text in texts if isinstance(text, Complete)] == [
        "ok",
        "done",
        "done",
    ]


async def test_assert_complete_tells_what_is_left() -> None:
    model = ScriptedModel(["one", "two"])
    await ask_model(make_request(model))
    with pytest.raises(ScriptError, match=r"asked 1 times and has 1 answers left.*'two'"):
        model.assert_complete()
    await ask_model(make_request(model))
    model.assert_complete()


async def test_two_requests_at_once_get_two_answers() -> None:
    model = ScriptedModel([stream("a", pause(2)), stream("b", pause(1))])
    texts: list[str] = []

    async def ask() -> None:
        result = await ask_model(make_request(model))
        assert isinstance(result, Complete)
        texts.append(result.message.text)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(ask)
    assert sorted(texts) == ["a", "b"]


async def test_a_cancelled_answer_is_no_longer_open() -> None:
    model = ScriptedModel([stream("a", pause(100))])
    with anyio.move_on_after(1):
        await ask_model(make_request(model))
    assert model.open_streams == 0


CALL = ToolCall(id="x", name="add", raw="{}")
ASKED: list[ConversationMessage] = [UserMessage.of("hi"), AssistantMessage(content=(CALL,))]
RESULT = make_result(CALL, "3")


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "no messages"),
        (ASKED, "the call 'x' of 'add' has no result"),
        ([*ASKED, UserMessage.of("and?"), RESULT], "before message 2: the call 'x'"),
        ([*ASKED, RESULT, RESULT], "a second result"),
        ([ASKED[0], RESULT], "which no call before it asked for"),
        ([AssistantMessage(content=(CALL, CALL)), RESULT], "two calls have the id 'x'"),
        ([AssistantMessage(content=(CALL.with_id(""),))], "has no id"),
        ([*ASKED, replace(RESULT, tool_name="sub")], "says it is of 'sub'"),
        ([UserMessage.of("")], "this user message is empty"),
        ([UserMessage(content=(TextBlock(text=""),))], "an empty text block"),
    ],
)
async def test_a_request_that_no_provider_takes_is_refused(
    messages: list[ConversationMessage], fault: str
) -> None:
    with pytest.raises(ScriptError, match=fault):
        await ask_model(make_request(ScriptedModel(["ok"]), messages=messages))


async def test_a_paired_request_is_taken() -> None:
    answer = await ask_model(make_request(ScriptedModel(["ok"]), messages=[*ASKED, RESULT]))
    assert answer.message.text == "ok"


async def test_a_conversation_that_grows_is_checked_where_it_grew() -> None:
    model = ScriptedModel(then="ok")
    paired = [*ASKED, RESULT]
    await ask_model(make_request(model, messages=paired))
    await ask_model(make_request(model, messages=[*paired, UserMessage.of("and?")]))
    with pytest.raises(ScriptError, match="before message 4: the call 'x'"):
        await ask_model(make_request(model, messages=[*paired, ASKED[1]]))


async def test_a_second_result_in_a_later_request_is_refused() -> None:
    model = ScriptedModel(then="ok")
    await ask_model(make_request(model, messages=[*ASKED, RESULT]))
    with pytest.raises(ScriptError, match="message 3: a result for 'x'"):
        await ask_model(make_request(model, messages=[*ASKED, RESULT, RESULT]))


async def test_another_conversation_is_checked_whole() -> None:
    model = ScriptedModel(then="ok")
    await ask_model(make_request(model, messages=[*ASKED, RESULT]))
    with pytest.raises(ScriptError, match="before message 2: the call 'x'"):
        await ask_model(make_request(model, messages=[*ASKED, UserMessage.of("and?"), RESULT]))


async def test_strict_false_takes_any_request() -> None:
    answer = await ask_model(make_request(ScriptedModel(["ok"], strict=False), messages=ASKED))
    assert answer.message.text == "ok"


def test_a_script_that_is_no_list_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a script is a list"):
        ScriptedModel("hello")


def test_an_unknown_stop_reason_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="'stop' is no stop reason; there are end, "):
        say("x", stop="stop")


def test_what_is_no_step_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="is no step of a stream"):
        stream(WholeDelta)  # type: ignore[arg-type]
