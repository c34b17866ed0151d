"""The schema of a function, read from its signature and docstring."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field

from callboard.errors import ToolDefinitionError
from callboard.messages import ToolCall
from callboard.tooling.tools import Tool, ToolContext, as_tool, tool


def schema(function: Callable[..., Any]) -> dict[str, Any]:
    return as_tool(function).parameters


def values(one: Tool, raw: str) -> dict[str, Any]:
    call = one.check(ToolCall(id="c", name=one.name, raw=raw))
    assert isinstance(call, ToolCall), call.text
    start: Any = one.bind(call, ToolContext("c", one.name))
    found: dict[str, Any] = start.keywords
    return found


class Colour(enum.Enum):
    RED = "red"


class Item(BaseModel):
    title: str
    size: Annotated[int, Field(ge=1)] = 1


@dataclass
class Place:
    row: int


def order(
    item: Item, colour: Colour, kind: Literal["a", "b"] = "a", place: Place | None = None
) -> None: ...


def test_types_become_a_closed_schema_without_titles() -> None:
    found = schema(order)
    assert found["additionalProperties"] is False
    assert found["required"] == ["item", "colour"]
    assert found["properties"]["kind"] == {"enum": ["a", "b"], "type": "string", "default": "a"}
    assert "title" in found["$defs"]["Item"]["properties"]
    assert "title" not in found["$defs"]["Item"]


def test_the_function_gets_objects_of_its_types() -> None:
    got = values(as_tool(order), '{"item":{"title":"t"},"colour":"red","place":{"row":1}}')
    assert got == {"item": Item(title="t"), "colour": Colour.RED, "place": Place(1)}


GOOGLE = """Find a thing.

    Looks everywhere.

    Args:
        what: the thing
            to find
    """
NUMPY = """Find a thing.

    Looks everywhere.

    Parameters
    ----------
    what : str
        the thing
        to find
    """
SPHINX = """Find a thing.

    Looks everywhere.

    :param what: the thing
        to find
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX])
def test_docstrings_describe_the_tool_and_its_parameters(text: str) -> None:
    def find(what: str) -> None: ...

    find.__doc__ = text
    assert as_tool(find).description == "Find a thing.\n\nLooks everywhere."
    assert schema(find)["properties"]["what"]["description"] == "the thing to find"


def test_a_field_describes_more_than_the_docstring() -> None:
    def find(what: Annotated[str, Field(description="from the field", min_length=2)]) -> None:
        """Find.

        Args:
            what: from the docstring
        """

    assert schema(find)["properties"]["what"]["description"] == "from the field"
    assert schema(find)["properties"]["what"]["minLength"] == 2


def test_names_of_model_attributes_and_private_names_are_parameters_like_others() -> None:
    def odd(schema: int, json: int, copy: int, model_dump: int, _x: int, self_: int) -> None: ...

    raw = '{"schema":1,"json":2,"copy":3,"model_dump":4,"_x":5,"self_":6}'
    assert list(values(as_tool(odd), raw).values()) == [1, 2, 3, 4, 5, 6]


def test_defaults_stay_the_functions_own() -> None:
    def with_default(names: list[str] = [], limit: int = 3) -> None: ...  # noqa: B006

    assert values(as_tool(with_default), "{}") == {}
    assert schema(with_default)["properties"]["limit"]["default"] == 3


def test_a_field_as_default_is_filled_in() -> None:
    def with_field(limit: int = Field(default=4, le=5), name: str = Field()) -> None: ...

    assert values(as_tool(with_field), '{"name":"n"}') == {"limit": 4, "name": "n"}
    assert schema(with_field)["required"] == ["name"]


def test_none_as_default_allows_null() -> None:
    def find(what: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert values(as_tool(find), '{"what":null}') == {"what": None}


def test_the_context_is_given_and_not_in_the_schema() -> None:
    def look(where: str, by: ToolContext | None = None) -> None: ...

    assert list(schema(look)["properties"]) == ["where"]
    assert isinstance(values(as_tool(look), '{"where":"x"}')["by"], ToolContext)


def test_types_of_an_enclosing_function_are_found() -> None:
    class Local(BaseModel):
        n: int

    def take(local: Local) -> None: ...

    assert values(as_tool(take), '{"local":{"n":1}}') == {"local": Local(n=1)}


def test_parameters_without_annotation_take_anything() -> None:
    def take(x, y=1):  # type: ignore[no-untyped-def]
        ...

    untyped = cast("Any", take)
    assert values(as_tool(untyped), '{"x":[1,"2"]}') == {"x": [1, "2"]}


def test_an_unknown_return_type_is_no_trouble() -> None:
    def make() -> None: ...

    make.__annotations__["return"] = "NotDefinedAnywhere"
    assert schema(make)["properties"] == {}


def test_arguments_bound_by_a_partial_are_not_offered() -> None:
    def add(a: int, b: int, c: int) -> int:
        return a + b + c

    assert list(schema(functools.partial(add, 1, c=3))["properties"]) == ["b"]


class Greeter:
    """Greets."""

    def greet(self, name: str) -> str:
        """Say hello."""
        return f"hello {name}"

    @tool(effect="pure")
    def shout(self, name: str) -> str:
        return name.upper()

    def __call__(self, name: str) -> str:
        return name


def test_bound_methods_are_tools_without_self() -> None:
    made = as_tool(Greeter().greet)
    assert list(made.parameters["properties"]) == ["name"]
    assert made(name="a") == "hello a"


def test_a_callable_object_is_named_by_its_class() -> None:
    made = as_tool(Greeter())
    assert (made.name, made.description) == ("Greeter", "Greets.")


def test_a_tool_in_a_class_body_is_bound_like_a_method() -> None:
    assert list(Greeter.shout.parameters["properties"]) == ["name"]
    assert Greeter().shout("a") == "A"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Decorated:
    @tool()
    @logged
    def shout(self, name: str) -> str:
        return name.upper()

    @tool()
    @staticmethod
    def whisper(name: str) -> str:
        return name.lower()


def test_decorated_and_static_methods_are_tools_like_others() -> None:
    made = Decorated()
    assert list(made.shout.parameters["properties"]) == ["name"]
    assert list(made.whisper.parameters["properties"]) == ["name"]
    assert (made.shout("a"), made.whisper("A")) == ("A", "a")


def star(*args: int) -> None: ...
def stars(**kwargs: int) -> None: ...
def positional(a: int, /) -> None: ...
def no_schema(a: Callable[[], int]) -> None: ...
def unknown(a: int) -> None: ...
def two(a: ToolContext, b: ToolContext) -> None: ...


unknown.__annotations__["a"] = "Nowhere"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (star, "*args: 'int'"),
        (stars, "passes arguments by name"),
        (positional, "use Tool.from_schema"),
        (no_schema, "has no JSON schema|no schema|no JSON schema"),
        (unknown, "'Nowhere' is not defined"),
        (two, "twice"),
        (lambda: 1, "needs a name"),
        (3, "is not callable"),
    ],
)
def test_what_cannot_be_a_tool_says_why(function: Any, says: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        as_tool(function)
    assert any(part in str(caught.value) for part in says.split("|"))
