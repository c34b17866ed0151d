"""Loss-free repair of arguments, led by the schema. Used by `arguments.py`.

Models send numbers, booleans, arrays and objects as text. Such text is decoded where the schema
wants the decoded kind and no text, and only if nothing is lost or guessed.
"""

from __future__ import annotations

import re
from typing import Any, TypeGuard

from callboard.json_text import FrozenDict, Json, NotJson, parse

_INTEGER = re.compile(r"-?[1-9][0-9]{0,308}|0")
_EXACT = 2**53  # floats up to here hold every integer exactly
_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (dict, "object"),
    (list, "array"),
    (tuple, "array"),
    (type(None), "null"),
)
_ANY = frozenset(name for _, name in _NAMES)
_Schema = dict[str, Any]


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether this is a JSON array, frozen or not."""
    return isinstance(value, (list, tuple))


def repaired(value: Json, schema: Any) -> Json:
    """The value with its text decoded as the schema wants; the same object if nothing changed."""
    try:
        return _repair(value, schema, schema)
    except RecursionError:  # too deep for this stack, so it is not repaired
        return value


def resolved(schema: Any, root: _Schema) -> _Schema:
    """The schema behind local references; {} (which allows everything) where there is none."""
    for _ in range(32):
        if not is_object(schema):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _pointed(reference, root)
    return {}


def _pointed(reference: str, root: _Schema) -> Any:
    if not reference.startswith("#"):
        return {}
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if is_object(node) else None
    return node


def _repair(value: Json, schema: Any, root: _Schema) -> Json:
    schema = resolved(schema, root)
    kinds = _kinds(schema, root)
    if isinstance(value, str):
        decoded = _decoded(value, kinds)
        return value if decoded is value else _repair(decoded, schema, root)
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) <= _EXACT and str(value) != "-0.0"
        return int(value) if whole and "integer" in kinds and "number" not in kinds else value
    if is_object(value):
        return _repair_object(value, _branch(schema, "object", root), root)
    if is_array(value):
        return _repair_array(value, _branch(schema, "array", root), root)
    return value


def _decoded(text: str, kinds: frozenset[str]) -> Json:
    if "string" in kinds:
        return text
    if _INTEGER.fullmatch(text) and kinds & {"integer", "number"}:
        return int(text)
    if text in ("true", "false") and "boolean" in kinds:
        return text == "true"
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        value: Json = parse(text, control_characters=True)
    except NotJson:
        return text
    return value if ("object" if type(value) is FrozenDict else "array") in kinds else text


def _repair_object(value: dict[str, Json], schema: _Schema, root: _Schema) -> Json:
    known = _properties(schema, root)
    other = schema.get("additionalProperties")
    changed = {key: _repair(item, known.get(key, other), root) for key, item in value.items()}
    if all(changed[key] is item for key, item in value.items()):
        return value
    return FrozenDict(changed)


def _repair_array(value: Any, schema: _Schema, root: _Schema) -> Json:
    first, rest = schema.get("prefixItems") or (), schema.get("items")
    changed = tuple(
        _repair(item, first[place] if place < len(first) else rest, root)
        for place, item in enumerate(value)
    )
    return value if all(new is old for new, old in zip(changed, value, strict=True)) else changed


def _properties(schema: _Schema, root: _Schema) -> dict[str, Any]:
    found: dict[str, Any] = dict(schema.get("properties") or {})
    for part in schema.get("allOf") or ():
        for name, wanted in _properties(resolved(part, root), root).items():
            found.setdefault(name, wanted)
    return found


def _branch(schema: _Schema, kind: str, root: _Schema) -> _Schema:
    """The part of a union that takes this kind, if exactly one does; else nothing is known."""
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            parts = [resolved(part, root) for part in schema[key]]
            fitting = [part for part in parts if kind in _kinds(part, root)]
            return _branch(fitting[0], kind, root) if len(fitting) == 1 else {}
    return schema


def _kinds(schema: _Schema, root: _Schema, depth: int = 0) -> frozenset[str]:
    """The kinds of value that a schema allows; everything where it does not say."""
    if depth > 32:
        return _ANY
    kinds = _stated(schema)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            parts = [_kinds(resolved(p, root), root, depth + 1) for p in schema[key]]
            kinds &= frozenset().union(*parts)
    for part in schema.get("allOf") or ():
        kinds &= _kinds(resolved(part, root), root, depth + 1)
    return kinds


def _stated(schema: _Schema) -> frozenset[str]:
    stated = schema.get("type")
    if isinstance(stated, str):
        return frozenset((stated,))
    if is_array(stated):
        return frozenset(stated)
    values = schema["enum"] if isinstance(schema.get("enum"), list) else None
    if "const" in schema:
        values = [schema["const"]]
    if values is None:
        return _ANY
    return frozenset(name for value in values for kind, name in _NAMES if type(value) is kind)
