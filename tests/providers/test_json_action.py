"""Tool use by constrained JSON: what the engine is sent, and what its text becomes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.assembler import Assembler, Complete
from callboard.json_text import thaw
from callboard.messages import AssistantMessage, StopReason, ToolCall, UserMessage
from callboard.model import ModelRequest, StopDelta, ToolOffer
from callboard.testing import ScriptedModel, make_request, make_result
from callboard.tooling.tools import Tool, tool
from callboard_providers.models.action_schema import action_schema
from callboard_providers.models.action_stream import ActionStream
from callboard_providers.models.json_action import EXAMPLES, JsonAction

MODEL = ScriptedModel([])


@tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def read(*pieces: str, stop: StopReason = StopReason.END) -> AssistantMessage:
    stream, assembler = ActionStream(), Assembler()
    for text in pieces:
        for delta in stream.feed(text):
            assembler.feed(delta)
    for delta in stream.stopped(StopDelta(stop)):
        assembler.feed(delta)
    result = assembler.result()
    assert isinstance(result, Complete)
    return result.message


@st.composite
def split(draw: st.DrawFn, text: str) -> list[str]:
    """Any way to cut a text in pieces."""
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    bounds = [0, *cuts, len(text)]
    return [text[start:end] for start, end in pairwise(bounds)]


@given(st.data(), st.text(max_size=40), st.booleans())
def test_an_answer_survives_every_split(data: st.DataObject, answer: str, ascii_only: bool) -> None:
    text = json.dumps({"answer": answer}, ensure_ascii=ascii_only)
    assert read(*data.draw(split(text))).text == answer


ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@given(st.data(), st.dictionaries(st.text(max_size=5), ARGUMENTS, max_size=3))
def test_a_call_survives_every_split(data: st.DataObject, arguments: dict[str, Any]) -> None:
    text = json.dumps({"tool": 'a "b"', "arguments": arguments}, ensure_ascii=False)
    message = read(*data.draw(split(text)))
    assert [call.name for call in message.calls] == ['a "b"']
    assert thaw(message.calls[0].arguments) == arguments
    assert message.stop_reason is StopReason.TOOL_USE


def test_an_answer_is_shown_as_it_arrives() -> None:
    stream = ActionStream()
    shown = [stream.feed(text) for text in ('{"answer": "', "one ", "two\\", 'n"', "}")]
    assert [len(deltas) for deltas in shown] == [0, 1, 1, 1, 0]


def test_a_call_that_was_cut_says_length() -> None:
    message = read('{"tool": "add", "arguments": {"a": 1', stop=StopReason.LENGTH)
    assert message.stop_reason is StopReason.LENGTH
    assert message.calls[0].problem is not None


def test_text_that_is_no_action_is_text() -> None:
    assert read("Good ", "morning").text == "Good morning"


def test_an_answer_that_is_data_is_its_json() -> None:
    assert json.loads(read('{"answer": {"n": [1, ', '"}"]}}').text) == {"n": [1, "}"]}


def rewritten(request: ModelRequest) -> ModelRequest:
    return JsonAction().rewritten(request)[0]


def branches(schema: Any) -> list[str]:
    return [next(iter(branch["properties"])) for branch in schema.get("anyOf", [schema])]


def test_the_engine_is_offered_no_tools_but_a_schema_and_examples() -> None:
    request = rewritten(make_request(MODEL, system="Be brief.", tools=[add]))
    assert request.offer is None
    assert request.output_schema is not None
    assert branches(request.output_schema) == ["tool", "answer"]
    assert request.messages[: len(EXAMPLES)] == EXAMPLES
    assert request.system.startswith("Be brief.")
    assert "add: Add two integers." in request.system


def test_without_tools_nothing_is_changed() -> None:
    request = make_request(MODEL)
    assert JsonAction().rewritten(request) == (request, False)


@pytest.mark.parametrize(("choice", "wanted"), [("required", ["tool"]), ("add", ["tool"])])
def test_a_choice_leaves_no_answer(choice: str, wanted: list[str]) -> None:
    request = rewritten(make_request(MODEL, tools=[add], choice=choice))
    assert branches(request.output_schema) == wanted


def round_of(*calls: ToolCall) -> list[Any]:
    return [AssistantMessage.of("", *calls), *(make_result(call, "3") for call in calls)]


def test_history_is_told_in_the_same_notation() -> None:
    history = [
        UserMessage.of("hi"),
        *round_of(ToolCall(id="a", name="add", raw='{"a": 1, "b": 2}')),
    ]
    *_, call, result = rewritten(make_request(MODEL, messages=history, tools=[add])).messages
    assert call.text == '{"tool": "add", "arguments": {"a": 1, "b": 2}}'
    assert (result.role, result.text) == ("user", "Result of add: 3")


def test_a_summary_of_calls_can_only_answer() -> None:
    history = [UserMessage.of("hi"), *round_of(ToolCall(id="a", name="add"))]
    assert branches(rewritten(make_request(MODEL, messages=history)).output_schema) == ["answer"]


def test_the_same_call_twice_leaves_only_an_answer() -> None:
    once = round_of(ToolCall(id="a", name="add", raw='{"a":1}'))
    twice = [*once, *round_of(ToolCall(id="b", name="add", raw='{ "a": 1 }'))]
    told = [
        branches(rewritten(make_request(MODEL, messages=history, tools=[add])).output_schema)
        for history in (once, twice, [*twice, UserMessage.of("again")])
    ]
    assert told == [["tool", "answer"], ["answer"], ["tool", "answer"]]


def test_definitions_move_to_the_root_and_keep_apart() -> None:
    def schema_of(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/T"}, "pattern": {"type": "string"}},
            "$defs": {"T": {"type": kind, "pattern": "^a$"}},
        }

    async def run(arguments: Any, context: object) -> str:
        return ""

    tools = [
        Tool.from_schema(name=name, description="", parameters=schema_of(kind), run=run)
        for name, kind in (("one", "string"), ("two", "integer"))
    ]
    schema = action_schema(ToolOffer(tools=tools), None)
    assert schema["$defs"] == {"one.T": {"type": "string"}, "two.T": {"type": "integer"}}
    properties = schema["anyOf"][1]["properties"]["arguments"]["properties"]
    assert properties == {"x": {"$ref": "#/$defs/two.T"}, "pattern": {"type": "string"}}
