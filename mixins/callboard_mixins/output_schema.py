"""The schema of an answer's form: an object around every schema, and only types that come back.

Pure; used by `output_form.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from callboard.errors import ConfigurationError

WRAPPED = "answer"  # the only property of an object around a schema that is no object's
_SHARED = ("$defs", "definitions", "$schema")  # what stays at the root of a schema
_TEXTS = frozenset({"const", "default", "enum", "example", "examples"})  # no schema below these


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with the one property `answer`; references keep their meaning."""
    inner = {key: value for key, value in schema.items() if key not in (*_SHARED, "$id")}
    shared = {key: _moved(schema[key]) for key in _SHARED if key in schema}
    return {
        "type": "object",
        "properties": {WRAPPED: _moved(inner)},
        "required": [WRAPPED],
        "additionalProperties": False,
        **shared,
    }


def _moved(value: Any) -> Any:
    """The same with references to the schema itself changed to where it stands now."""
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return {
            key: _place(item) if key == "$ref" else item if key in _TEXTS else _moved(item)
            for key, item in pairs
        }
    if isinstance(value, list):
        return [_moved(item) for item in cast("Sequence[Any]", value)]
    return value


def _place(reference: Any) -> Any:
    is_own = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    if not is_own or reference.startswith(("#/$defs/", "#/definitions/")):
        return reference
    return f"#/properties/{WRAPPED}{reference[1:]}"


def check_comes_back(wanted: object, adapter: TypeAdapter[Any]) -> None:
    """A journal keeps an answer as JSON, and a restart reads it back: refuse types that lose some.

    Raises:
        ConfigurationError: names the fields that are hidden, left out, or renamed when written.
    """
    asked = adapter.json_schema()
    written = adapter.json_schema(mode="serialization")
    lost = sorted({*_hidden(wrapped(asked)), *_left_out(asked, written)})
    if lost:
        raise ConfigurationError(
            f"output={wanted!r} would not come back from the journal, which holds JSON: {lost} is a"
            " secret, excluded, or has another alias when written; use str, drop exclude=True, or"
            " give one alias for both"
        )


def _hidden(schema: Any) -> Iterator[str]:
    """The properties that pydantic writes as stars."""
    for node in _nodes(schema):
        for name, item in _properties(node).items():
            if any([one.get("writeOnly") and "format" in one for one in _nodes(item)]):
                yield name


def _left_out(asked: Mapping[str, Any], written: Mapping[str, Any]) -> Iterator[str]:
    """The properties that are read and not written, of the type and of those that it is made of."""
    yield from _properties(asked).keys() - _properties(written).keys()
    others = written.get("$defs", {})
    for name, definition in asked.get("$defs", {}).items():
        if name in others:
            yield from _properties(definition).keys() - _properties(others[name]).keys()


def _properties(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found = node.get("properties")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        node = cast("Mapping[str, Any]", value)
        yield node
        for key, item in node.items():
            if key not in _TEXTS:
                yield from _nodes(item)
    elif isinstance(value, list):
        for item in cast("Sequence[Any]", value):
            yield from _nodes(item)
