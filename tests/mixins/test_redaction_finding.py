"""What saves time in redaction hides no less."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from callboard.messages import StopReason, TextBlock, Usage
from callboard.model import StopDelta, TextDelta, UsageDelta, WholeDelta
from callboard_mixins.redaction.cleaning import Cleaner
from callboard_mixins.redaction.patterns import PERSONAL, SECRETS, Pattern
from callboard_mixins.redaction.redactor import KEPT, LONGEST, Redactor, masking
from callboard_mixins.redaction.streaming import RedactedDeltas

ALL = (*SECRETS, *PERSONAL)
BY_CHECK = {"iban": 15, "phone": 8}  # characters that their checks want, beyond the expression
TICKET = Pattern("ticket", r"TCK-\d{6}", shortest=10)


def shortest_match(pattern: Pattern) -> int:
    """As the expression says."""
    parser: Any = importlib.import_module("re._parser")
    return int(parser.parse(pattern.regex).getwidth()[0])


@pytest.mark.parametrize("pattern", ALL, ids=lambda pattern: pattern.regex[:20])
def test_no_match_is_shorter_than_its_pattern_says(pattern: Pattern) -> None:
    assert pattern.shortest <= BY_CHECK.get(pattern.name, shortest_match(pattern))


def test_a_text_as_short_as_can_be_is_hidden() -> None:
    assert Redactor((TICKET,), masking).text("TCK-123456") == "[TICKET hidden]"


def test_a_text_that_was_clean_is_dirty_under_another_key() -> None:
    """What is remembered of a text is not what is remembered of a key with it."""
    redactor = Redactor(SECRETS, masking)
    word = "h7k2p9x4q1"
    assert redactor.json({"name": word, "note": word}) == {"name": word, "note": word}
    assert redactor.json({"password": word}) == {"password": "[SECRET hidden]"}
    assert redactor.text(word) is word


def test_what_is_remembered_is_bounded_and_holds_no_secret() -> None:
    redactor = Redactor(ALL, masking)
    for number in range(3 * KEPT):
        redactor.json({"mail": f"ann{number}@example.org", "note": f"note {number}"})
    redactor.text("x" * (LONGEST + 1))
    assert len(redactor._clean) <= KEPT
    assert not [kept for kept in redactor._clean if "@" in str(kept) or len(kept) > LONGEST]


def test_equal_texts_stay_the_objects_that_they_are() -> None:
    """A copy of what is clean would be taken for a change."""
    redactor = Redactor(ALL, masking)
    one, other = "a text", "".join(["a ", "text"])
    assert one is not other
    assert redactor.text(one) is one
    assert redactor.text(other) is other


@pytest.mark.parametrize(
    "delta",
    [
        WholeDelta((TextBlock(text="hello"),)),
        UsageDelta(Usage(input_tokens=1)),
        StopDelta(StopReason.END),
    ],
)
def test_what_comes_whole_passes_as_it_is(delta: Any) -> None:
    deltas = RedactedDeltas(Cleaner(Redactor(ALL, masking)))
    assert deltas.passes(delta)


def test_nothing_passes_by_what_is_held() -> None:
    deltas = RedactedDeltas(Cleaner(Redactor(ALL, masking)))
    assert not deltas.passes(TextDelta("ann@"))
    assert list(deltas.feed(TextDelta("ann@"))) == []
    assert not deltas.passes(StopDelta(StopReason.END))


def test_a_whole_block_with_something_to_hide_does_not_pass() -> None:
    deltas = RedactedDeltas(Cleaner(Redactor(ALL, masking)))
    whole = WholeDelta((TextBlock(text="write to ann@example.org"),))
    assert not deltas.passes(whole)
    assert list(deltas.feed(whole)) == [WholeDelta((TextBlock(text="write to [EMAIL hidden]"),))]


MARK = "\n[... 4711 bytes left out ...]\n"
KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("secret", "parts"),
    [
        (KEY, [KEY[at : at + 6] for at in range(3, 30)]),
        (PEM, ["IEvQIBADAN", "qhkiG9w0BA"]),
        ("password=h7k2p9x4q1zz", ["h7k2p9", "p9x4q1zz"]),
        ("4111 1111 1111 1111", ["1111 1111", "4111"]),
    ],
)
def test_a_cut_in_the_middle_leaves_no_half_of_a_secret(secret: str, parts: list[str]) -> None:
    """What a program printed keeps its beginning and its end."""
    redactor = Redactor(ALL, masking)
    for at in range(1, len(secret)):
        shown = redactor.text(f"it is {secret[:at]}{MARK}{secret[at:]} or so\n")
        assert shown.startswith("it is")
        assert shown.endswith(" or so\n")
        assert not [part for part in parts if part in shown], (at, shown)


def test_what_was_cut_is_redacted_once() -> None:
    redactor = Redactor(ALL, masking)
    once = redactor.text(f"one two{MARK}three 12 34 four\n[cut: 9 bytes are too many")
    assert once == f"one {MARK} four\n[cut: 9 bytes are too many"
    assert redactor.text(once) == once
