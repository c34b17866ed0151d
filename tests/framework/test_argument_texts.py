"""What a model wrote, what is checked, what is digested and what runs are the same values.

The text of a call is checked as it stands where that says the same as the parsed arguments; these
laws hold the two ways against each other, on texts with all that JSON leaves open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from callboard.json_text import MAX_DEPTH, canonical, digest, parse, thaw
from callboard.messages import ToolCall
from callboard.tooling.arguments import Invalid, Misfit, fit, values_of
from callboard.tooling.tools import Tool, ToolContext, tool

LAW = settings(max_examples=150, deadline=None)


@tool
async def take(
    n: int = 0,
    f: float = 0.0,
    s: str = "",
    b: bool = False,
    ns: list[int] | None = None,
    fs: dict[str, float] | None = None,
    any: Any = None,
) -> None:
    """Take anything."""


def ignore(arguments: Mapping[str, Any], context: ToolContext) -> None:
    """Do nothing."""


RAW = Tool.from_schema(
    name="raw",
    description="Takes anything.",
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}},
    run=ignore,
)
NUMBERS = (
    *("0", "-0", "1", "-1", "1.0", "-0.0", "1e2", "1E+2", "1e-7", "0.1", "1e400", "-1e400"),
    *("9007199254740993", "9007199254740993.0", "18446744073709551616", "1" + "0" * 40),
    *("1.7976931348623157e308", "5e-324", "2.5e-324", "1e16", "123456789012345680.0", "NaN"),
    *("Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1_0"),
)
STRINGS = (
    *('""', '"a"', '"\\u0061"', '"\\n"', '"\n"', '"\\/"', '"\\ud800"', '"\\ud83d\\ude00"'),
    *('"😀"', '"é"', '"e\\u0301"', '"\\u0000"', '"\\u2028"', '"\ud800"', '"\\x41"', "'a'"),
    *('"1"', '"1.0"', '"true"', '"null"', '"[1]"', '"{\\"x\\": 1}"'),
)
SPACES = ("", "", " ", "\n\t", "\r", "\x0b", "\u00a0")
KEYS = ("n", "f", "s", "b", "ns", "fs", "any", "other", "\\u006e", "é")
scalars = st.sampled_from((*NUMBERS, *STRINGS, "true", "false", "null", "True", "None"))


def _array(items: Sequence[str]) -> str:
    return f"[{','.join(items)}]"


def _object(pairs: Sequence[tuple[str, str]]) -> str:
    return "{" + ",".join([f'"{key}":{value}' for key, value in pairs]) + "}"


keys = st.sampled_from(KEYS)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(_array)
        | st.lists(st.tuples(keys, inner), max_size=3).map(_object)
    ),
    max_leaves=6,
)
around = st.sampled_from(SPACES)
objects = st.lists(st.tuples(keys, values), max_size=4).map(_object)
texts = st.tuples(around, objects | values | objects.map(json.dumps), around).map("".join)


def exactly(value: Any) -> str:
    """The value as text that tells 1 from 1.0 from True, and 0.0 from -0.0."""
    return canonical(thaw(value))


def outcome_of(call: ToolCall, of: Tool) -> str:
    """What the tool would get, exactly; or that it would not run."""
    fitting = fit(call, of.validator, tool_name=of.name)
    return "invalid" if isinstance(fitting, Invalid) else exactly(values_of(fitting, of.validator))


@LAW
@given(texts)
@example('{"n":1,"n":2}')
@example('{"any":{"a":1,"a":1}}')
@example('{"any":-0.0}')
@example('{"n":1e2}')
@example('{"any":1' + "0" * 5_000 + "}")
@pytest.mark.parametrize("of", [take, RAW], ids=["typed", "schema"])
def test_a_text_and_what_it_says_are_checked_alike(of: Tool, raw: str) -> None:
    call = ToolCall(id="a", name=of.name, raw=raw)
    arguments, problem = call.parsed
    if problem is not None:
        assert outcome_of(call, of) == "invalid"
        return
    again = ToolCall(id="a", name=of.name, raw=canonical(arguments))
    assert again.parsed == (arguments, None)
    assert exactly(again.arguments) == exactly(arguments)
    assert outcome_of(call, of) == outcome_of(again, of)
    assert digest(call.arguments) == digest(again.arguments)


@LAW
@given(texts)
def test_what_is_digested_is_what_runs(raw: str) -> None:
    """A tool without types gets the very values of the digest."""
    fitting = fit(ToolCall(id="a", name="raw", raw=raw), RAW.validator, tool_name="raw")
    if isinstance(fitting, Invalid):
        return
    ran = values_of(fitting, RAW.validator)
    assert exactly(ran) == exactly(fitting.arguments)
    assert digest(ran) == digest(fitting.arguments)


@LAW
@given(values)
def test_a_parameter_of_any_type_gets_what_the_text_says(value: str) -> None:
    raw = f'{{"any":{value}}}'
    fitting = fit(ToolCall(id="a", name="take", raw=raw), take.validator, tool_name="take")
    if not isinstance(fitting, Invalid):
        said = parse(raw)["any"]
        assert exactly(values_of(fitting, take.validator)["any"]) == exactly(said)


@LAW
@given(st.integers(MAX_DEPTH - 5, MAX_DEPTH + 5), st.sampled_from(["[", '{"x":']))
@pytest.mark.parametrize("of", [take, RAW], ids=["typed", "schema"])
def test_depth_is_bounded_alike_for_the_text_and_the_values(
    of: Tool, depth: int, opens: str
) -> None:
    """What is parsed is also checked: no depth passes one and fails in the other."""
    closes = "]" if opens == "[" else "}"
    raw = f'{{"any":{opens * depth}1{closes * depth}}}'
    call = ToolCall(id="a", name=of.name, raw=raw)
    assert (outcome_of(call, of) == "invalid") == (call.parsed[1] is not None)


def test_a_checked_value_is_given_out_once() -> None:
    """A second run is checked anew and gets fresh values."""
    call = ToolCall(id="a", name="take", raw='{"any":[1]}')
    assert fit(call, take.validator, tool_name="take") is call
    first, second = values_of(call, take.validator), values_of(call, take.validator)
    first["any"].append(2)
    assert second["any"] == [1]


def test_what_does_not_fit_is_refused_in_both_ways() -> None:
    call = ToolCall(id="a", name="take", raw='{"n":1.5}')
    assert isinstance(fit(call, take.validator, tool_name="take"), Invalid)
    with pytest.raises(Misfit):
        take.validator.validate(call.arguments)
