"""The JSON schema of one action: a branch for each tool, and one for the answer.

Used by `json_action`. The engine makes a grammar of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.json_text import Json
from callboard.model import ToolOffer
from callboard.tooling.tools import Tool
from callboard_providers.models.json_shape import is_array, is_object, object_in

# Left out: the engine refuses some of them, and validation asks for them again anyway.
_LOOSENED = frozenset(
    {"pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
)
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})  # of names


def action_schema(offer: ToolOffer, output: Mapping[str, Json] | None) -> dict[str, Json]:
    """A tool call or an answer, as far as the offer's choice lets the model choose."""
    definitions: dict[str, Json] = {}
    chosen = [tool for tool in offer.tools if offer.choice in ("auto", "required", tool.name)]
    branches = [_call_branch(tool, definitions) for tool in chosen]
    if offer.choice == "auto":
        branches.append(_answer_branch(output, definitions))
    schema: dict[str, Json] = branches[0] if len(branches) == 1 else {"anyOf": branches}
    return {**schema, "$defs": definitions} if definitions else schema


def answer_schema(output: Mapping[str, Json] | None) -> dict[str, Json]:
    """An answer and nothing else."""
    definitions: dict[str, Json] = {}
    schema = _answer_branch(output, definitions)
    return {**schema, "$defs": definitions} if definitions else schema


def _call_branch(tool: Tool, definitions: dict[str, Json]) -> dict[str, Json]:
    arguments = _hoisted(tool.parameters, tool.wire_name, definitions)
    return _object({"tool": {"const": tool.name}, "arguments": arguments})


def _answer_branch(
    output: Mapping[str, Json] | None, definitions: dict[str, Json]
) -> dict[str, Json]:
    schema = {"type": "string"} if output is None else _hoisted(output, "answer", definitions)
    return _object({"answer": schema})


def _object(properties: dict[str, Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _hoisted(schema: Mapping[str, Json], owner: str, definitions: dict[str, Json]) -> Json:
    """The schema as a part of another: its definitions move to the root, under its owner's name."""
    for key in ("$defs", "definitions"):
        for name, part in object_in(schema, key).items():
            definitions[f"{owner}.{name}"] = _walked(part, owner)
    return _walked({k: v for k, v in schema.items() if k not in ("$defs", "definitions")}, owner)


def _walked(schema: Json, owner: str) -> Any:
    if is_object(schema):
        return {
            key: _walked_key(key, value, owner)
            for key, value in schema.items()
            if key not in _LOOSENED
        }
    if is_array(schema):
        return [_walked(item, owner) for item in schema]
    return schema


def _walked_key(key: str, value: Json, owner: str) -> Any:
    if key == "$ref" and isinstance(value, str):
        return f"#/$defs/{owner}.{value.rpartition('/')[2]}"
    if key in _MAPS and is_object(value):
        return {name: _walked(part, owner) for name, part in value.items()}
    if key in ("enum", "const", "default", "examples", "required"):
        return list(value) if is_array(value) else value
    return _walked(value, owner)
