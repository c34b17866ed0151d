"""A JSON schema from outside, compiled once. Used by `arguments.py`; jsonschema is loaded late."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from callboard.errors import ToolDefinitionError
from callboard.json_text import FrozenDict
from callboard.tooling.argument_repair import is_array, is_object

_NO_SCHEMA = frozenset({"const", "default", "enum", "example", "examples"})


class RawSchema:
    """A schema that was found to be sound. Nothing is ever fetched for a reference.

    Raises:
        ToolDefinitionError: the schema breaks its meta-schema, is not about an object, or refers
            to something that is not in it.
    """

    __slots__ = ("_validator",)

    def __init__(self, schema: dict[str, Any]) -> None:
        from jsonschema import SchemaError, validators  # 60 ms, wanted for such tools only
        from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

        _check_text(schema)
        kind: Any = validators.validator_for(schema, default=validators.validator_for({}))
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            path = ".".join([str(step) for step in error.absolute_path]) or "(schema)"
            raise ToolDefinitionError(
                f"the schema is not valid at {path}: {error.message[:300]}"
            ) from None
        if schema.get("type", "object") != "object":
            raise ToolDefinitionError(
                f"the schema must be of type 'object', not {schema['type']!r}: "
                "arguments are passed by name"
            )
        checker = kind.TYPE_CHECKER.redefine("array", _is_array)
        extend: Any = getattr(validators, "extend")  # noqa: B009  # untyped
        extended = extend(kind, type_checker=checker)
        self._validator = extended(schema, registry=REGISTRY, format_checker=kind.FORMAT_CHECKER)
        self._check_references(schema)

    def problems(self, arguments: FrozenDict, most: int) -> list[tuple[list[Any], str]]:
        """Where and why the arguments do not fit: at most `most` places."""
        found: list[tuple[list[Any], str]] = []
        for error in self._validator.iter_errors(arguments):
            found.append((list(error.absolute_path), error.message))
            if len(found) == most:
                break
        return found

    def _check_references(self, schema: dict[str, Any]) -> None:
        from referencing.exceptions import Unresolvable  # comes with jsonschema

        nodes = list(_nodes(schema))
        if any("$id" in node for node in nodes):
            return  # references may be relative to it: the validator knows better
        for node in nodes:
            reference = node.get("$ref")
            if not isinstance(reference, str):
                continue
            try:
                self._validator._resolver.lookup(reference)
            except Unresolvable:
                raise ToolDefinitionError(
                    f"the schema refers to {reference!r}, which is not in it"
                ) from None


def _check_text(schema: dict[str, Any]) -> None:
    """One schema that cannot be written would spoil the request with all other tools in it."""
    try:
        json.dumps(schema, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolDefinitionError("the schema holds half a character (a lone surrogate)") from None
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"the schema is not JSON: {error}") from None


def _is_array(_: object, value: object) -> bool:
    return is_array(value)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if is_object(schema):
        yield schema
        for key, item in schema.items():
            if key not in _NO_SCHEMA:
                yield from _nodes(item)
    elif is_array(schema):
        for item in schema:
            yield from _nodes(item)
