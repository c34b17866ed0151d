"""A stream is redacted as its whole text would be, however it is cut into deltas."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.assembler import Assembler
from callboard.messages import AssistantMessage, StopReason, TextBlock, ThinkingBlock, Usage
from callboard.model import (
    AttemptDiscarded,
    Delta,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)
from callboard_mixins.redaction.cleaning import Cleaner
from callboard_mixins.redaction.patterns import PERSONAL, SECRETS, Pattern
from callboard_mixins.redaction.redactor import Redactor, masking
from callboard_mixins.redaction.streaming import HeldText, RedactedDeltas

KEY = "sk-a1b2c3d4e5f6g7h8i9j0k1l2"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+abc/def=\nqwerty==\n-----END RSA PRIVATE KEY-----"
HIDDEN = (
    KEY,
    PEM,
    "ada@example.org",
    "4111 1111 1111 1111",
    "5500-0000-0000-0004",
    "DE89 3704 0044 0532 0130 00",
    "+49 30 1234567",
    "(555) 123-4567",
    "Bearer abcdef.1234567890-xyz",
    'password = "hunter2-x9!"',
    "postgres://ada:s3cr3t@db/x",
    "AKIAIOSFODNN7EXAMPLE",
    "case of Smith vs Jones",
)
WORDS = ("hello", "the", "12", "a-b", "I", "token", "password", "0", "+1", "DE89", "Bearer", "sk-")
GAPS = (" ", "\n", ", ", ": ", ". ", " (", ") ", '"', "=", "")
CASE = Pattern("case", r"case of \w+ vs \w+", reach=60)
REDACTOR = Redactor((*SECRETS, *PERSONAL, CASE), masking)

texts = st.lists(
    st.tuples(st.sampled_from(HIDDEN + WORDS), st.sampled_from(GAPS)), min_size=1, max_size=8
).map(lambda parts: "".join([part for pair in parts for part in pair]))


def pieces(text: str, sizes: Sequence[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    made, at = list[str](), 0
    while at < len(text):
        size = sizes[len(made) % len(sizes)]
        made.append(text[at : at + size])
        at += size
    return made


@settings(max_examples=400, deadline=None)
@given(texts, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_a_stream_shows_what_the_whole_redacted_text_is(text: str, sizes: list[int]) -> None:
    held = HeldText(REDACTOR)
    shown = [held.add(piece) for piece in pieces(text, sizes)]
    assert "".join([*shown, held.rest()]) == REDACTOR.text(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(HIDDEN + WORDS), max_size=6).map(" ; ".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


def assembled(deltas: Sequence[Delta]) -> tuple[Sequence[Delta], AssistantMessage]:
    """What is shown of these deltas, and the message that it makes."""
    redacted = RedactedDeltas(Cleaner(REDACTOR))
    shown = [piece for delta in deltas for piece in redacted.feed(delta)]
    assembler = Assembler()
    for piece in (*shown, *redacted.end()):
        assembler.feed(piece)
    return shown, assembler.result().message


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.booleans())
def test_the_arguments_of_calls_side_by_side_are_redacted(sizes: list[int], ids: bool) -> None:
    """Their pieces come mixed, with their ids in each piece or in the first only."""
    raw = f'{{"key":"{KEY}","note":"hello"}}'
    parts = pieces(raw, sizes)
    mixed = [
        ToolCallDelta(part, f"c{index}" if ids or not at else None, None if at else "send", index)
        for at, part in enumerate(parts)
        for index in (0, 1)
    ]
    shown, message = assembled([*mixed, StopDelta(StopReason.TOOL_USE)])
    assert [call.raw for call in message.calls] == [REDACTOR.text(raw)] * 2
    assert "a1b2" not in repr(shown)


def test_text_that_is_held_comes_before_the_call_that_follows_it() -> None:
    _, message = assembled(
        [TextDelta("my mail "), TextDelta("ada@example.org"), ToolCallDelta("{}", "c", "send")]
    )
    assert [getattr(block, "text", "call") for block in message.content] == [
        "my mail [EMAIL hidden]",
        "call",
    ]


def test_calls_without_an_index_are_told_apart() -> None:
    first, second = ToolCallDelta('{"a":1}', "c1", "send"), ToolCallDelta("{}", "c2", "send")
    _, message = assembled([first, second, StopDelta(StopReason.TOOL_USE)])
    assert [(call.id, call.raw) for call in message.calls] == [("c1", '{"a":1}'), ("c2", "{}")]


@pytest.mark.parametrize(("text", "signature"), [("nothing here", "s1g"), (f"it is {KEY}", None)])
def test_a_signature_goes_where_its_thinking_was_changed(text: str, signature: str | None) -> None:
    halves = [
        ThinkingDelta(text[:9]),
        ThinkingDelta(text[9:]),
        ThinkingDelta("", "s1"),
        ThinkingDelta("", "g"),
    ]
    _, message = assembled([*halves, TextDelta("so"), StopDelta(StopReason.END)])
    thought = message.content[0]
    assert isinstance(thought, ThinkingBlock)
    assert (thought.text, thought.signature) == (REDACTOR.text(text), signature)


def test_what_was_held_of_a_discarded_attempt_never_comes() -> None:
    _, message = assembled([TextDelta("ada@exam"), AttemptDiscarded("again"), TextDelta("hello")])
    assert message.text == "hello"


def test_whole_blocks_are_redacted() -> None:
    _, message = assembled([WholeDelta((TextBlock(text=KEY),)), StopDelta(StopReason.END)])
    assert message.text == "[API_KEY hidden]"


def test_usage_passes() -> None:
    _, message = assembled([UsageDelta(Usage(output_tokens=3)), StopDelta(StopReason.END)])
    assert message.usage.output_tokens == 3


def test_prose_is_shown_word_by_word() -> None:
    """Nothing is held but the word that is being written, unless a pattern of one's own asks."""
    held = HeldText(Redactor((*SECRETS, *PERSONAL), masking))
    shown = [held.add(word) for word in ("The ", "cat ", "sat ", "on ", "a ", "mat.")]
    assert shown == ["The ", "cat ", "sat ", "on ", "a ", ""]
