"""The tools of an agent, by name."""

from __future__ import annotations

from typing import Any

import pytest

from callboard.errors import ToolDefinitionError
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Tool, tool


def echo(x: str) -> str:
    return x


def read_file(path: str) -> str:
    return path


def named(name: str, parameters: dict[str, Any] | None = None) -> Tool:
    return Tool.from_schema(name=name, description="", parameters=parameters or {}, run=print)


def test_functions_become_tools_in_their_order() -> None:
    box = Toolbox([read_file, tool(echo)])
    assert list(box) == ["read_file", "echo"]
    assert box["echo"](x="a") == "a"


def test_two_tools_with_one_name_are_refused_naming_both() -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        Toolbox([echo, tool(name="echo")(read_file)])
    assert "test_toolbox.echo and " in str(caught.value)
    assert "read_file" in str(caught.value)


def test_name_01_near_names_of_an_unknown_one() -> None:
    box = Toolbox([echo, read_file])
    assert box.near("ecco") == ["echo"]
    assert box.near("ReadFile") == ["read_file"]
    assert box.near("zzz") == []


@pytest.mark.parametrize("names", [("a.b", "a_b", "a/b"), ("a/b", "a_b", "a.b")])
def test_name_05_wire_names_do_not_depend_on_the_order(names: tuple[str, ...]) -> None:
    box = Toolbox([named(name) for name in names])
    assert {name: one.wire_name for name, one in box.items()} == {
        "a.b": named("a.b").wire_name,
        "a_b": "a_b",
        "a/b": named("a/b").wire_name,
    }


def test_name_05_a_name_that_is_another_ones_wire_name_is_refused() -> None:
    first = named("a.b")
    with pytest.raises(ToolDefinitionError, match="both become"):
        Toolbox([first, named(first.wire_name)])


def test_a_tool_with_a_broken_schema_is_put_aside_with_its_reason() -> None:
    box = Toolbox([echo, named("bad", {"properties": {"a": {"$ref": "#/gone"}}})])
    assert list(box) == ["echo"]
    assert box.quarantined == (("bad", "the schema refers to '#/gone', which is not in it"),)


class Greeter:
    def greet(self, name: str) -> str:
        return f"hello {name}"


def test_a_method_without_its_instance_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"Greeter.greet is a method without"):
        Toolbox([Greeter.greet])
    assert list(Toolbox([Greeter().greet])) == ["greet"]


def test_nothing_in_it_is_false() -> None:
    assert not Toolbox()


def test_uni_01_a_schema_that_cannot_be_sent_is_put_aside_and_the_others_stay() -> None:
    half = named("half", {"type": "object", "description": "\ud83d"})
    box = Toolbox([half, echo])
    assert list(box) == ["echo"]
    assert "surrogate" in box.quarantined[0][1]


def test_uni_01_name_and_description_are_sendable() -> None:
    odd = Tool.from_schema(name="a\ud83d", description="b\ud83d", parameters={}, run=print)
    assert (odd.name, odd.description) == (
        "a\N{REPLACEMENT CHARACTER}",
        "b\N{REPLACEMENT CHARACTER}",
    )


def test_a_schema_that_is_not_json_is_put_aside() -> None:
    box = Toolbox([named("odd", {"type": "object", "default": object()})])
    assert "not JSON" in box.quarantined[0][1]
