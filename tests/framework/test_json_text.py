"""JSON at the edge: strict parsing, deep freezing, canonical text, text that UTF-8 can hold."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.json_text import (
    MAX_DEPTH,
    FrozenDict,
    Json,
    NotJson,
    canonical,
    cut,
    digest,
    freeze,
    parse,
    sendable,
    thaw,
)

LONE = "\N{REPLACEMENT CHARACTER}"
FACE = "\N{GRINNING FACE}"
HIGH, LOW = "\ud83d", "\ude00"
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
letters = st.text(st.sampled_from(["a", "é", "中", FACE, "\n", '"', "\\"]), max_size=6)
values = st.recursive(
    scalars | letters,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(letters, inner, max_size=4),
    max_leaves=12,
)
broken = st.text(st.sampled_from(["a", "é", FACE, HIGH, LOW]), max_size=10)
law = settings(max_examples=100, deadline=None)


@law
@given(values)
def test_parsing_what_was_written_gives_it_back(value: Json) -> None:
    assert thaw(parse(canonical(value))) == value
    assert thaw(parse(json.dumps(value))) == value


@law
@given(values)
def test_parsed_values_are_frozen_all_the_way_down(value: Json) -> None:
    found = parse(canonical({"value": value}))
    assert found == freeze({"value": value})
    hash(found)


@law
@given(values)
def test_thawing_undoes_freezing(value: Json) -> None:
    assert thaw(freeze(value)) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "Expecting value at character 0"),
        ('{"a": tru', "Expecting value at character 6"),
        ('{"a": 1} {"b": 2}', "Extra data at character"),
        ("NaN", "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("1e999", "1e999 is too large for a number"),
        ("1" * 5000, "integer string"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice in one object"),
        ('{"a": [{"b": 1, "b": 1}]}', "the key 'b' stands twice in one object"),
        ('"a\nb"', "Invalid control character"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 600 + "]" * 600, "nested too deeply"),
        ('{"a":' * 600 + "1" + "}" * 600, "nested too deeply"),
    ],
)
def test_what_is_not_one_json_value_is_refused(text: str, fault: str) -> None:
    with pytest.raises(NotJson, match=fault):
        parse(text)


def test_arrays_may_nest_as_deep_as_the_limit() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert canonical(parse(text)) == text
    with pytest.raises(NotJson, match="nested too deeply"):
        parse(f"[{text}]")


def test_many_values_side_by_side_are_not_deep() -> None:
    assert len(parse(canonical([[]] * 5000))) == 5000


def test_control_characters_are_taken_where_they_are_allowed() -> None:
    assert parse('"a\n\tb"', control_characters=True) == "a\n\tb"


def test_uni_01_escaped_halves_are_joined_or_replaced() -> None:
    assert parse(r'{"\ud83d": ["\ud83d\ude00", "\ude00"]}') == {LONE: (FACE, LONE)}


def test_uni_01_keys_that_become_equal_are_refused() -> None:
    with pytest.raises(NotJson, match="stands twice"):
        parse(r'{"\ud83d": 1, "\ude00": 2}')


@pytest.mark.parametrize(
    "change",
    [
        "frozen['a'] = 2",
        "del frozen['a']",
        "frozen |= {'a': 2}",
        "frozen.clear()",
        "frozen.pop('a')",
        "frozen.popitem()",
        "frozen.update(a=2)",
        "frozen.setdefault('b', 2)",
    ],
)
def test_a_frozen_dict_does_not_change(change: str) -> None:
    frozen = FrozenDict(a=1)
    with pytest.raises(TypeError, match="frozen: build a changed copy"):
        exec(change, {"frozen": frozen})
    assert frozen == {"a": 1}


def test_a_frozen_dict_survives_copies_and_pickling() -> None:
    frozen = freeze({"a": {"b": [1]}})
    assert copy.copy(frozen) is copy.deepcopy(frozen) is frozen
    restored = pickle.loads(pickle.dumps(frozen))
    assert restored == frozen
    assert type(restored["a"]) is FrozenDict


def test_equal_frozen_dicts_hash_alike() -> None:
    assert FrozenDict(a=1, b=2) == FrozenDict(b=2.0, a=True)
    assert hash(FrozenDict(a=1, b=2)) == hash(FrozenDict(b=2.0, a=True))


def test_canonical_text_has_one_form() -> None:
    assert canonical({"b": (1, 2.5), "a": "é"}) == '{"a":"é","b":[1,2.5]}'


def test_canonical_text_refuses_what_is_not_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1})


def test_a_digest_with_a_key_is_another_one() -> None:
    assert len({digest("secret"), digest("secret", key=b"k"), digest("secret", key=b"l")}) == 3


def test_a_digest_takes_any_text() -> None:
    assert digest(HIGH) != digest(LOW)


@law
@given(broken)
def test_uni_01_sendable_text_can_be_encoded_and_stays(text: str) -> None:
    found = sendable(text)
    found.encode()
    assert sendable(found) is found


@law
@given(st.text(st.sampled_from(["a", "é", FACE])))
def test_uni_01_sendable_text_is_kept(text: str) -> None:
    assert sendable(text) is text
    assert sendable(text.replace(FACE, HIGH + LOW)) == text


@pytest.mark.parametrize("limit", range(1000, 1011))
def test_uni_02_a_cut_text_is_valid_and_within_the_limit(limit: int) -> None:
    whole = ("中文" + FACE) * 10_000
    found = cut(whole, limit)
    assert whole.startswith(found)
    assert limit - 4 < len(found.encode()) <= limit


@law
@given(broken, st.integers(-1, 20))
def test_uni_02_a_cut_never_exceeds_its_limit(text: str, limit: int) -> None:
    assert len(cut(text, limit).encode()) <= max(limit, 0)
    assert sendable(text).startswith(cut(text, limit))
