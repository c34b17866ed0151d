"""Tools: options, names, and making them of functions once."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard.errors import ToolDefinitionError
from callboard.messages import ToolCall
from callboard.tooling.tools import Effect, Form, Tool, as_tool, tool, wire_name


def plus(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_tool_stays_callable_like_its_function() -> None:
    assert tool(plus)(1, b=2) == 3
    assert tool(plus).function is plus


def test_name_and_description_come_from_the_function() -> None:
    made = tool(plus)
    assert (made.name, made.label, made.description) == ("plus", "plus", "Add two numbers.")


def test_options_say_more() -> None:
    made = tool(name="sum", effect="pure", timeout_s=None, sequential=True, label="Sum")(plus)
    assert (made.name, made.label, made.effect) == ("sum", "Sum", Effect.PURE)
    assert (made.timeout_s, made.sequential) == (None, True)


def test_a_tool_never_changes() -> None:
    with pytest.raises(AttributeError):
        tool(plus).name = "minus"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nmae": "x"}, "unknown option 'nmae'"),
        ({"effect": "none"}, "effect='none' is not one of pure, idempotent, effect"),
        ({"timeout_s": 0}, "timeout_s=0 must be above 0"),
        ({"max_concurrency": -1}, "max_concurrency=-1 must be above 0"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says):
        tool(**options)(plus)


def test_the_schema_of_a_plain_function_is_built_once() -> None:
    assert as_tool(plus) is as_tool(plus)


def test_a_wrapper_is_not_taken_for_what_it_wraps() -> None:
    as_tool(plus)

    @functools.wraps(plus)
    def doubled(*args: Any, **kwargs: Any) -> int:
        return 2 * plus(*args, **kwargs)

    assert as_tool(doubled)(1, 2) == 6
    assert as_tool(doubled).parameters == as_tool(plus).parameters


def test_a_function_that_nobody_holds_is_let_go() -> None:
    def agent_of_a_request() -> weakref.ref[Any]:
        def short_lived(a: int) -> None: ...

        as_tool(short_lived)
        return weakref.ref(short_lived)

    watched = agent_of_a_request()
    gc.collect()
    assert watched() is None


async def coroutine() -> None: ...


async def waiting() -> None:
    await anyio.sleep(1)


async def stream() -> Any:
    yield 1


def generator() -> Any:
    yield 1


class Waiter:
    async def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "form"),
    [
        (plus, Form.SYNC),
        (coroutine, Form.AT_ONCE),
        (waiting, Form.ASYNC),
        (stream, Form.ASYNC_STREAM),
        (generator, Form.SYNC_STREAM),
        (functools.partial(waiting), Form.ASYNC),
        (Waiter(), Form.AT_ONCE),
    ],
)
def test_the_form_of_a_function_is_seen_through_its_wrapping(
    function: Callable[..., Any], form: Form
) -> None:
    assert as_tool(function).form is form


def test_a_fitting_name_is_its_own_wire_name() -> None:
    assert wire_name("read_file-2") == "read_file-2"


@pytest.mark.parametrize("name", ["calendar.create event/2", "天气", "a" * 65, "a.b" * 40])
def test_name_04_other_names_get_one_that_providers_accept(name: str) -> None:
    wire = wire_name(name)
    assert 1 <= len(wire) <= 64
    assert wire.isascii()
    assert wire.replace("_", "").replace("-", "").isalnum()


def test_name_05_similar_names_get_different_wire_names() -> None:
    assert len({wire_name(name) for name in ("a.b", "a_b", "a/b")}) == 3


def raw(parameters: dict[str, Any]) -> Tool:
    return Tool.from_schema(name="raw", description="", parameters=parameters, run=print)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "properties.a.type"),
        ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, "'#/$defs/gone', which is not in it"),
        ({"properties": {"a": {"$ref": "https://example.org/x"}}}, "which is not in it"),
        ({"type": "array"}, "must be of type 'object'"),
        ({"properties": {"a": {"pattern": "("}}}, "properties.a.pattern"),
    ],
)
def test_a_broken_raw_schema_is_a_defect_and_never_an_exception(
    parameters: dict[str, Any], says: str
) -> None:
    made = raw(parameters)
    assert made.defect is not None
    assert says in made.defect
    assert not isinstance(made.check(ToolCall(id="c", name="raw")), ToolCall)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        {"properties": {"$ref": {"type": "string"}, "x": {"enum": [{"$ref": "#/no"}]}}},
    ],
)
def test_a_sound_raw_schema_has_no_defect(parameters: dict[str, Any]) -> None:
    assert raw(parameters).defect is None
