"""Laws of argument repair: it never loses and never invents a value."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.json_text import canonical, freeze
from callboard.tooling.argument_repair import is_array, is_object, repaired

LAW = settings(max_examples=100, deadline=None)

SCHEMAS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "array": {"type": "array", "items": {"type": "integer"}},
    "object": {"type": "object", "additionalProperties": {"type": "integer"}},
}
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers() | finite | st.text(max_size=20)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
fitting = {
    "string": st.text(),
    "integer": st.integers(),
    "number": st.integers() | finite.filter(lambda number: not number.is_integer()),
    "boolean": st.booleans(),
    "array": st.lists(st.integers()),
    "object": st.dictionaries(st.text(), st.integers()),
}


@LAW
@given(st.data(), st.sampled_from(sorted(SCHEMAS)))
def test_a_value_that_fits_is_returned_as_it_is(data: st.DataObject, kind: str) -> None:
    value = freeze(data.draw(fitting[kind]))
    assert repaired(value, SCHEMAS[kind]) is value


@LAW
@given(st.data(), st.sampled_from(sorted(SCHEMAS.keys() - {"string"})))
def test_a_decoded_value_is_what_its_text_says(data: st.DataObject, kind: str) -> None:
    value = freeze(data.draw(fitting[kind]))
    text = canonical(value)
    decoded = repaired(text, SCHEMAS[kind])
    assert canonical(decoded) == text if decoded is not text else isinstance(value, float)


@LAW
@given(values, st.sampled_from(sorted(SCHEMAS)))
def test_whatever_comes_in_its_text_comes_out(value: Any, kind: str) -> None:
    frozen = freeze(value)
    found = repaired(frozen, SCHEMAS[kind])
    assert unquoted(found) == unquoted(frozen)


@LAW
@given(values)
def test_a_schema_that_allows_text_decodes_none(value: Any) -> None:
    text = canonical(value)
    union = {"anyOf": [{"type": "string"}, *SCHEMAS.values()]}
    assert repaired(text, union) is text
    assert repaired(text, {}) is text


def unquoted(value: Any) -> str:
    """Without what repair may change: quotes around values, spaces, and the .0 of whole floats."""
    if is_object(value):
        items = sorted((key, unquoted(item)) for key, item in value.items())
        return "".join(["{", *[f'"{key}":{text},' for key, text in items], "}"])
    if is_array(value):
        return "".join(["[", *[f"{unquoted(item)}," for item in value], "]"])
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        return str(int(value))
    return value if isinstance(value, str) else canonical(value)
