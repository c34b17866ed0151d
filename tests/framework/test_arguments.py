"""What a model writes as arguments, and what a tool gets of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from callboard.json_text import FrozenDict
from callboard.messages import ToolCall
from callboard.tooling.argument_repair import repaired
from callboard.tooling.tools import Invalid, Tool, ToolContext, as_tool


def ping() -> str:
    return "pong"


def add(a: int, b: int = 2) -> int:
    return a + b


def plan(steps: list[dict[str, Any]], note: str) -> None: ...


def mixed(
    count: int = 0,
    ratio: float = 0.0,
    flag: bool = False,
    either: int | str = 0,
    when: datetime.date | None = None,
    rows: list[list[int]] | None = None,
) -> None: ...


def transfer(to: str, amount: float) -> None: ...


def a_call(raw: str, name: str = "tool") -> ToolCall:
    return ToolCall(id="c1", name=name, raw=raw)


def given(tool: Tool, raw: str) -> dict[str, Any]:
    """What the function would get."""
    call = tool.check(a_call(raw))
    assert isinstance(call, ToolCall), call.text
    start: Any = tool.bind(call, ToolContext("c1", tool.name))
    values: dict[str, Any] = start.keywords
    return values


def refused(tool: Tool, raw: str) -> str:
    invalid = tool.check(a_call(raw))
    assert isinstance(invalid, Invalid)
    return invalid.text


@pytest.mark.parametrize("raw", ["", "  \n", "null", "{}"])
def test_arg_01_blank_text_and_null_are_no_arguments(raw: str) -> None:
    assert given(as_tool(ping), raw) == {}


def test_arg_02_cut_text_is_refused_and_what_is_sent_stays_an_object() -> None:
    call = a_call('{"a": "tru')
    assert "not one JSON object" in refused(as_tool(add), call.raw)
    assert call.sendable_raw == "{}"


def test_arg_03_an_object_sent_as_text_is_unwrapped_once() -> None:
    assert given(as_tool(transfer), r'"{\"to\":\"A店\",\"amount\":1}"') == {
        "to": "A店",
        "amount": 1,
    }


def test_arg_03_an_object_wrapped_twice_is_refused() -> None:
    assert "must be an object" in refused(as_tool(ping), r'"\"{}\""')


def test_arg_04_text_is_decoded_only_where_the_schema_wants_no_text() -> None:
    raw = r'{"steps":"[{\"s\":\"a\nb\"}]","note":"[1,2]"}'
    assert given(as_tool(plan), raw) == {"steps": [{"s": "a\nb"}], "note": "[1,2]"}


@pytest.mark.parametrize("raw", ["[]", "1", '"x"', "true"])
def test_arg_05_what_is_no_object_is_refused(raw: str) -> None:
    assert "was not run" in refused(as_tool(ping), raw)


def test_arg_05_null_for_a_tool_with_parameters_names_what_is_missing() -> None:
    assert "- a: missing; wanted integer" in refused(as_tool(add), "null")


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ('{"count":"42"}', {"count": 42}),
        ('{"count":42.0}', {"count": 42}),
        ('{"ratio":"42"}', {"ratio": 42.0}),
        ('{"ratio":3}', {"ratio": 3.0}),
        ('{"flag":"true"}', {"flag": True}),
        ('{"either":"42"}', {"either": "42"}),
        ('{"when":"2026-11-30"}', {"when": datetime.date(2026, 11, 30)}),
        (r'{"rows":"[[\"1\"],\"[2]\"]"}', {"rows": [[1], [2]]}),
    ],
)
def test_arg_06_repair_loses_nothing(raw: str, wanted: dict[str, Any]) -> None:
    assert given(as_tool(mixed), raw) == wanted


@pytest.mark.parametrize(
    "raw",
    [
        '{"count":"42.1"}',
        '{"count":42.5}',
        '{"count":"3.7"}',
        '{"count":" 42"}',
        '{"count":"042"}',
        '{"count":true}',
        '{"flag":"yes"}',
        '{"flag":1}',
        '{"rows":"[1] [2]"}',
        '{"unknown":1}',
    ],
)
def test_arg_06_nothing_is_guessed(raw: str) -> None:
    assert "do not fit the tool 'mixed'" in refused(as_tool(mixed), raw)


@pytest.mark.parametrize("raw", ['{"a":1}{"a":2}', '{"a":1', "a=1"])
def test_arg_07_joined_and_cut_values_never_run(raw: str) -> None:
    assert "was not run" in refused(as_tool(add), raw)


@pytest.mark.parametrize(
    "raw",
    ['{"to":"a","amount":NaN}', '{"to":"a","amount":1e999}', '{"to":"b","to":"e","amount":1}'],
)
def test_arg_09_what_is_json_for_python_only_is_refused(raw: str) -> None:
    assert "was not run" in refused(as_tool(transfer), raw)


def test_arg_09_the_tool_gets_what_the_guard_saw() -> None:
    call = a_call(r'{"to":"\ud83d","amount":1}')
    checked = as_tool(transfer).check(call)
    assert isinstance(checked, ToolCall)
    assert checked.arguments == {"to": "\N{REPLACEMENT CHARACTER}", "amount": 1}
    assert given(as_tool(transfer), call.raw)["to"] == checked.arguments["to"]


def test_arguments_that_fit_are_the_same_call() -> None:
    call = a_call('{"a":1}')
    assert as_tool(add).check(call) is call


def test_pi_14_a_refusal_names_tool_path_type_value_and_what_was_received() -> None:
    text = refused(as_tool(transfer), '{"to":3}')
    for part in ("'transfer'", "- to:", "got 3", "amount: missing; wanted number", '{"to":3}'):
        assert part in text


def test_qwenpaw_8_an_unknown_parameter_is_answered_with_the_known_ones() -> None:
    assert "y: not a parameter; the tool takes a, b" in refused(as_tool(add), '{"a":1,"y":1}')


def test_a_refusal_is_bounded() -> None:
    assert len(refused(as_tool(add), f'{{"a":"{"x" * 100_000}"}}')) < 2_000


def test_a_second_run_never_sees_values_that_the_first_one_changed() -> None:
    tool, call = as_tool(plan), a_call('{"steps":[],"note":""}')
    tool.check(call)
    first: Any = tool.bind(call, ToolContext("c1", "plan"))
    first.keywords["steps"].append({})
    second: Any = tool.bind(call, ToolContext("c1", "plan"))
    assert second.keywords["steps"] == []


def test_a_call_that_was_never_checked_is_checked_when_it_is_bound() -> None:
    assert isinstance(as_tool(add).bind(a_call("{}"), ToolContext("c1", "add")), Invalid)


EDITS: dict[str, Any] = {
    "type": "object",
    "properties": {"edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}}},
    "required": ["edits"],
    "$defs": {"edit": {"type": "object", "properties": {"line": {"type": "integer"}}}},
}


def raw_tool(parameters: dict[str, Any] = EDITS, **options: Any) -> Tool:
    def run(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return arguments

    return Tool.from_schema(name="edit", description="", parameters=parameters, run=run, **options)


def test_a_raw_schema_repairs_below_references() -> None:
    call = raw_tool().check(a_call(r'{"edits":"[{\"line\":\"3\"}]"}'))
    assert isinstance(call, ToolCall)
    assert call.arguments == {"edits": ({"line": 3},)}


def test_a_raw_tool_gets_plain_dicts_and_lists() -> None:
    start: Any = raw_tool().bind(a_call('{"edits":[{"line":3}]}'), ToolContext("c1", "edit"))
    arguments = start.args[0]
    assert type(arguments["edits"]) is list
    assert type(arguments["edits"][0]) is dict


def test_a_raw_tool_refuses_with_the_path() -> None:
    assert "edits.0.line: 'x' is not of type 'integer'" in refused(
        raw_tool(), '{"edits":[{"line":"x"}]}'
    )


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        ({"type": ["integer", "null"]}, "3", 3),
        ({"enum": [1, 2]}, "2", 2),
        ({"const": True}, "true", True),
        ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "3", 3),
        (
            {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
            "[1]",
            (1,),
        ),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, '["3"]', (3,)),
        (
            {"allOf": [{"type": "object", "properties": {"n": {"type": "integer"}}}]},
            '{"n":"3"}',
            {"n": 3},
        ),
        ({"$ref": "#/$defs/a~1b"}, "3", 3),
    ],
)
def test_text_is_decoded_as_the_schema_says_in_its_own_way(
    wanted: dict[str, Any], text: str, value: Any
) -> None:
    root = {"properties": {"v": wanted}, "$defs": {"a/b": {"type": "integer"}}}
    assert repaired(FrozenDict(v=text), root) == {"v": value}


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": ["integer", "string"]},
        {"enum": ["2", 2]},
        {"$ref": "#/$defs/loop"},
        {"$ref": "https://example.org/elsewhere"},
        True,
    ],
)
def test_text_is_left_alone_where_text_is_allowed_or_nothing_is_known(wanted: Any) -> None:
    root = {"properties": {"v": wanted}, "$defs": {"loop": {"$ref": "#/$defs/loop"}}}
    arguments = FrozenDict(v="2")
    assert repaired(arguments, root) is arguments


@pytest.mark.parametrize("depth", [190, 5_000])
def test_deep_nesting_is_refused_and_never_an_exception(depth: int) -> None:
    tree = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/tree"}}, {"type": "integer"}]}
    tool = raw_tool({"$defs": {"tree": tree}, "properties": {"a": {"$ref": "#/$defs/tree"}}})
    nested = "[" * depth + "]" * depth
    assert "nested too deeply" in refused(tool, f'{{"a":{nested}}}')


def old_to_new(arguments: dict[str, Any]) -> dict[str, Any]:
    if "line" in arguments:
        return {"edits": [{"line": arguments["line"]}]}
    return arguments


def test_pi_16_prepare_turns_an_old_shape_into_the_new_one() -> None:
    call = raw_tool(prepare=old_to_new).check(a_call('{"line":3}'))
    assert isinstance(call, ToolCall)
    assert call.arguments == {"edits": ({"line": 3},)}


def test_prepare_leaves_a_call_of_the_new_shape_alone() -> None:
    call = a_call('{"edits":[]}')
    assert raw_tool(prepare=old_to_new).check(call) is call


def broken(arguments: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("gone")


def nothing(arguments: dict[str, Any]) -> None: ...


def no_json(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"x": {1}}


@pytest.mark.parametrize("prepare", [broken, nothing, no_json])
def test_prepare_that_fails_is_a_refusal(prepare: Callable[..., Any]) -> None:
    assert "was not run" in refused(raw_tool(prepare=prepare), "{}")


def test_checked_arguments_stay_frozen() -> None:
    call = raw_tool().check(a_call(r'{"edits":"[]"}'))
    assert isinstance(call, ToolCall)
    assert type(call.arguments) is FrozenDict
