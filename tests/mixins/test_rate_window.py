"""No minute, wherever it begins, holds more than the limit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.errors import ConfigurationError
from callboard_mixins.rate_window import WINDOW_S, RateLimit, Window

GAPS = st.lists(st.floats(0, 40), min_size=1, max_size=30)


@given(GAPS, st.integers(1, 4))
def test_no_minute_holds_more_requests_than_the_limit(gaps: list[float], most: int) -> None:
    window, limit, now, sent = Window(), RateLimit(requests_per_minute=most), 0.0, list[float]()
    for gap in gaps:
        now += gap
        now += window.wait_s(limit, now=now, tokens=0)
        assert window.wait_s(limit, now=now, tokens=0) == 0
        window.add(now=now, tokens=0)
        sent.append(now)
    for first, later in zip(sent, sent[most:], strict=False):
        assert later - first >= WINDOW_S - 1e-5


@given(st.lists(st.tuples(st.floats(0, 40), st.integers(0, 120)), max_size=30))
def test_no_minute_holds_more_tokens_than_the_limit(asked: list[tuple[float, int]]) -> None:
    """A request that is larger than the limit goes alone."""
    window, limit, now = Window(), RateLimit(tokens_per_minute=100), 0.0
    sent: list[tuple[float, int]] = []
    for gap, tokens in asked:
        now += gap
        now += window.wait_s(limit, now=now, tokens=tokens)
        window.add(now=now, tokens=tokens)
        sent.append((now, tokens))
        minute = [t for at, t in sent if at > now - WINDOW_S + 1e-5]
        assert sum(minute) <= 100 or len([t for t in minute if t]) == 1


def test_a_request_counts_what_it_used_once_that_is_known() -> None:
    window, limit = Window(), RateLimit(tokens_per_minute=100)
    sent = window.add(now=0, tokens=90)
    assert window.wait_s(limit, now=1, tokens=20) == 59
    window.correct(sent, 30)
    assert window.wait_s(limit, now=1, tokens=20) == 0


def test_what_is_known_after_its_minute_changes_nothing() -> None:
    window, limit = Window(), RateLimit(tokens_per_minute=100)
    sent = window.add(now=0, tokens=10)
    assert window.wait_s(limit, now=61, tokens=100) == 0
    window.correct(sent, 90)
    window.add(now=61, tokens=10)
    assert window.wait_s(limit, now=61, tokens=90) == 0


def test_a_window_can_move_to_another_clock() -> None:
    window = Window()
    window.add(now=10, tokens=1)
    limit = RateLimit(requests_per_minute=1)
    assert window.moved(1000).wait_s(limit, now=1010, tokens=0) == WINDOW_S


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests_per_minute": 0},
        {"tokens_per_minute": -1},
        {"concurrency": 0},
        {"requests_per_minute": 0.5},
        {"concurrency": True},
        {"longest_wait_s": 0},
        {"pause_s": -1},
        {"held_until": "never"},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name):
        RateLimit(**wrong)
