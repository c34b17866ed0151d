"""Server-sent events in every split of their bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard_providers.models.server_events import ServerEvents

EVENTS = ': a comment\n\ndata: {"a": "naïve 🎭"}\n\nevent: x\nid: 1\ndata:two\ndata: lines\n\n'
DATA = ['{"a": "naïve 🎭"}', "two\nlines"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@given(size=st.integers(1, 30))
def test_events_survive_every_split(line_end: str, size: int) -> None:
    text = EVENTS.replace("\n", line_end).encode()
    events = ServerEvents()
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    found = [data for piece in pieces for data in events.feed(piece)]
    assert [*found, *events.flush()] == DATA


def test_a_line_that_was_cut_is_no_event() -> None:
    events = ServerEvents()
    assert list(events.feed(b"data: {}\ndata: {")) == []
    assert list(events.flush()) == ["{}"]
