"""Whatever a tool returns becomes content for the model and a payload for programs."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from callboard.messages import (
    AudioBlock,
    FileBlock,
    ImageBlock,
    Media,
    Observation,
    Status,
    TextBlock,
)
from callboard.tooling.results import failure, observe

LIMIT = 50_000
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 8


class Point(BaseModel):
    x: int


@dataclass
class Pair:
    left: int
    right: Any


def seen(value: Any, size_bytes: int = LIMIT) -> Observation:
    return observe(value, size_bytes=size_bytes)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("hello", "hello"),
        (None, "(no output)"),
        (3, "3"),
        (True, "true"),
        (math.nan, '"NaN"'),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Point(x=1), '{"x":1}'),
        (Pair(1, Point(x=2)), '{"left":1,"right":{"x":2}}'),
        ([Point(x=1)], '[{"x":1}]'),
        ({"k": b"\xff"}, '{"k":"_w=="}'),
        (10**400, str(10**400)),
    ],
)
def test_the_text_of_a_value(value: Any, text: str) -> None:
    assert seen(value).text == text


def test_structured_values_are_the_payload_too() -> None:
    assert seen(Pair(1, Point(x=2))).payload == {"left": 1, "right": {"x": 2}}


def test_a_number_too_long_for_python_to_write_is_no_exception() -> None:
    assert seen(10**5000).text == "<int: its repr failed with ValueError>"


def test_text_has_no_payload() -> None:
    assert seen("hello").payload is None


def test_pi_22_empty_text_is_empty_content_and_no_error() -> None:
    assert seen("") == Observation()


def test_an_observation_is_kept_as_it_is() -> None:
    own = Observation(status=Status.FAILED, content=(TextBlock(text="no"),), details="why")
    assert seen(own) == own


@pytest.mark.parametrize(
    ("data", "kind", "media_type"),
    [
        (PNG, ImageBlock, "image/png"),
        (b"\xff\xd8\xff\xe0", ImageBlock, "image/jpeg"),
        (b"GIF89a", ImageBlock, "image/gif"),
        (b"RIFF0000WEBP", ImageBlock, "image/webp"),
        (b"RIFF0000WAVE", AudioBlock, "audio/wav"),
        (b"ID3\x04", AudioBlock, "audio/mpeg"),
        (b"%PDF-1.7", FileBlock, "application/pdf"),
        (b"anything", FileBlock, "application/octet-stream"),
    ],
)
def test_bytes_are_media_of_the_type_they_begin_with(
    data: bytes, kind: type, media_type: str
) -> None:
    (block,) = seen(data).content
    assert isinstance(block, kind)
    assert isinstance(block, Media)
    assert block.media_type == media_type
    assert base64.b64decode(block.data or "") == data


def test_blocks_text_and_bytes_in_one_list_are_blocks() -> None:
    content = seen(["see", TextBlock(text="this"), PNG]).content
    assert [block.type for block in content] == ["text", "text", "image"]


@pytest.mark.parametrize("value", [["see", PNG], [PNG, PNG], ("see", bytearray(PNG))])
def test_med_04_bytes_in_a_list_are_never_base64_as_text(value: Any) -> None:
    found = seen(value)
    assert [type(block) for block in found.content][-1] is ImageBlock
    assert found.text in ("", "see")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_the_last_resort_is_a_repr_that_never_raises() -> None:
    assert "repr failed with RuntimeError" in seen(Unprintable()).text


def test_a_value_that_holds_itself_is_a_repr() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert seen(loop).text == "[[...]]"


@pytest.mark.parametrize("value", ["a\udce9", {"k": "a\udce9"}, {"a\udce9": [1]}])
def test_uni_01_lone_surrogates_are_replaced(value: Any) -> None:
    text = seen(value).text
    assert "a\N{REPLACEMENT CHARACTER}" in text
    text.encode()


@pytest.mark.parametrize("limit", range(1000, 1011))
def test_uni_02_a_cut_is_valid_utf8_within_the_limit_and_says_so(limit: int) -> None:
    text = seen("中文😀" * 10_000, limit).text
    assert limit - 10 < len(text.encode()) <= limit
    assert "[cut: 100000 bytes are too many, the first" in text


def test_text_blocks_share_one_bound() -> None:
    content = seen([TextBlock(text="a" * 900), TextBlock(text="b" * 900), PNG], 1000).content
    assert sum(len(block.text) for block in content if isinstance(block, TextBlock)) <= 1000
    assert content[-1].type == "image"


def test_a_payload_that_is_too_large_is_left_out() -> None:
    assert seen(["x" * 100] * 100, 1000).payload is None


def test_a_failure_shows_what_there_was_first() -> None:
    found = failure("ValueError: boom", Status.FAILED, size_bytes=LIMIT, partial="part")
    assert [block.text for block in found.content if isinstance(block, TextBlock)] == [
        "part",
        "\nValueError: boom",
    ]


def test_terminate_is_for_good_results_only() -> None:
    failed = Observation(status=Status.FAILED)
    assert observe("x", size_bytes=LIMIT, terminate=True).terminate
    assert not observe(failed, size_bytes=LIMIT, terminate=True).terminate


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.text() | st.floats() | st.binary(max_size=5) | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.integers(min_value=1, max_value=200),
)
def test_whatever_is_returned_stays_within_the_bound(value: Any, limit: int) -> None:
    text = seen(value, limit).text
    assert len(text.encode()) <= max(limit, 0)
