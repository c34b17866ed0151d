"""What of a conversation is sent, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from callboard.errors import ConfigurationError
from callboard.messages import (
    AssistantMessage,
    AudioBlock,
    ConversationMessage,
    FileBlock,
    ImageBlock,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import ModelRequest, ModelSettings, ToolOffer
from callboard.testing import ScriptedModel, make_result
from callboard.tooling.tools import Tool
from callboard_providers.models.chat_messages import EMPTY_RESULT, ChatMessages
from callboard_providers.models.chat_request import chat_body, true_names

PNG = ImageBlock(media_type="image/png", data="AAAA")
ADD = ToolCall(id="c1", name="add", raw='{"a": 1}')


def sent(*messages: ConversationMessage, system: str = "") -> list[dict[str, Any]]:
    return ChatMessages().wire(messages, system=system)


def test_msg_04_leading_system_messages_are_one_and_later_ones_are_tagged() -> None:
    history = (
        SystemMessage.of("A"),
        SystemMessage.of("B"),
        UserMessage.of("hi"),
        SystemMessage.of("C"),
    )
    assert sent(*history, system="S") == [
        {"role": "system", "content": "S\n\nA\n\nB"},
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "<system>\nC\n</system>"},
    ]


def test_msg_04_a_provider_that_takes_system_anywhere_gets_it_there() -> None:
    history = (UserMessage.of("hi"), SystemMessage.of("C"))
    assert ChatMessages(system_anywhere=True).wire(history)[1] == {"role": "system", "content": "C"}


@pytest.mark.parametrize(
    "empty",
    [
        AssistantMessage(),
        AssistantMessage(content=(TextBlock(text=""),)),
        AssistantMessage(content=(ThinkingBlock(text="hm"),)),
        UserMessage(content=()),
        SystemMessage(content=()),
    ],
)
def test_msg_01_what_is_empty_is_not_sent(empty: ConversationMessage) -> None:
    assert sent(UserMessage.of("hi"), empty) == [{"role": "user", "content": "hi"}]


def test_msg_01_a_message_of_calls_has_no_content() -> None:
    (message,) = sent(AssistantMessage(content=(TextBlock(text=""), ADD)))
    assert "content" not in message
    assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}


@pytest.mark.parametrize("raw", ["", '{"a": "tru', "[1]", "null", '{"a": NaN}'])
def test_arg_02_broken_arguments_are_sent_as_an_empty_object(raw: str) -> None:
    (message,) = sent(AssistantMessage.of("", ToolCall(id="c", name="ping", raw=raw)))
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_thk_01_thinking_is_not_sent() -> None:
    thinking = ThinkingBlock(text="secret", signature=None)
    assert "secret" not in str(sent(AssistantMessage(content=(thinking, TextBlock(text="x"), ADD))))


def test_name_04_the_wire_name_is_used_and_read_back() -> None:
    tool = make_tool("calendar.create event/2")
    call = ToolCall(id="c", name=tool.name)
    (message,) = sent(AssistantMessage.of("", call))
    assert message["tool_calls"][0]["function"]["name"] == tool.wire_name != tool.name
    assert true_names(ToolOffer(tools=[tool])) == {tool.wire_name: tool.name}


def test_images_are_parts_and_text_alone_is_a_string() -> None:
    (message,) = sent(UserMessage(content=(TextBlock(text="look"), PNG)))
    assert message["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    assert sent(UserMessage(content=(ImageBlock(url="https://x/y.png"),)))[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    ]


def test_sound_and_files_are_parts() -> None:
    sound = AudioBlock(media_type="audio/mpeg", data="AA")
    file = FileBlock(media_type="application/pdf", data="BB", name="a.pdf")
    first, second = sent(UserMessage(content=(sound, file)))[0]["content"]
    assert first["input_audio"] == {"data": "AA", "format": "mp3"}
    assert second["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BB"}


def test_media_that_cannot_be_sent_leave_a_word() -> None:
    (message,) = sent(UserMessage(content=(ImageBlock(media_type="image/png", blob="0a"),)))
    assert message["content"] == "[image (image/png) that is not shown here]"
    (answer,) = sent(AssistantMessage(content=(PNG,)))
    assert answer["content"] == "[image (image/png) that is not shown here]"


def test_images_of_results_follow_the_whole_round() -> None:
    """A message between the results of one round would part calls from their results."""
    results = (
        ToolResultMessage(call_id="a", tool_name="shot", content=(PNG,)),
        make_result(ToolCall(id="b", name="add"), "3"),
    )
    wire = sent(*results, UserMessage.of("next"))
    assert [message["role"] for message in wire] == ["tool", "tool", "user", "user"]
    assert wire[2]["content"][0]["text"] == "From the result of shot (a):"
    assert wire[0]["content"]


def test_an_empty_result_has_words() -> None:
    assert sent(make_result(ADD, ""))[0]["content"] == EMPTY_RESULT


def test_a_message_is_converted_once() -> None:
    messages, said = ChatMessages(), UserMessage.of("hi")
    assert messages.wire([said])[0] is messages.wire([said])[0]


def test_lim_02_no_tools_means_no_options() -> None:
    body = body_of(offer=ToolOffer(tools=(), choice="required", parallel=True))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_a_named_choice_sends_that_tool_alone() -> None:
    offer = ToolOffer(tools=[make_tool("add"), make_tool("time")], choice="time", parallel=False)
    body = body_of(offer=offer)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["time"]
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)


def test_a_choice_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'nope'"):
        body_of(offer=ToolOffer(tools=[make_tool("add")], choice="nope"))


def test_settings_are_sent_where_they_are_set() -> None:
    settings = ModelSettings(temperature=0.0, max_tokens=5, stop=("x",), extra={"top_k": 3})
    body = body_of(settings=settings)
    assert (body["temperature"], body["max_tokens"], body["stop"]) == (0.0, 5, ["x"])
    assert body["top_k"] == 3
    assert "seed" not in body


@pytest.mark.parametrize(("closed", "strict"), [(False, True), (True, False)])
def test_a_closed_schema_is_strict(closed: bool, strict: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": closed,
    }
    wanted = body_of(output_schema=schema)["response_format"]["json_schema"]
    assert (wanted["schema"], wanted["strict"]) == (schema, strict)


def body_of(messages: Sequence[ConversationMessage] = (), **options: Any) -> dict[str, Any]:
    request = ModelRequest(model=ScriptedModel([]), messages=messages, **options)
    return chat_body(request, model="m", messages=ChatMessages(), max_tokens_field="max_tokens")


def make_tool(name: str) -> Tool:
    async def run(arguments: Any, context: object) -> str:
        return "done"

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    return Tool.from_schema(name=name, description="A tool.", parameters=schema, run=run)
