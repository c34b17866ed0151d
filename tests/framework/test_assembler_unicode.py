"""Characters that come in halves, and the law that the cuts of a stream make no difference."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.assembler import Assembler, Complete, Incomplete
from callboard.messages import AssistantContent, StopReason, TextBlock, ThinkingBlock, ToolCall
from callboard.model import Delta, StopDelta, TextDelta, WholeDelta
from callboard.testing import call_piece, think

END = StopDelta(StopReason.END)
LONE = "\N{REPLACEMENT CHARACTER}"
HIGH, LOW = "\ud83d", "\ude00"


def content_of(*deltas: Delta) -> tuple[AssistantContent, ...]:
    assembler = Assembler()
    for delta in (*deltas, END):
        assembler.feed(delta)
    result = assembler.result()
    assert isinstance(result, Complete)
    return result.message.content


def shown_of(*texts: str) -> list[str]:
    """What a watcher sees while these texts come."""
    assembler = Assembler()
    shown = [assembler.feed(TextDelta(text)) for text in texts]
    return [delta.text for delta in shown if isinstance(delta, TextDelta)]


def text(value: str) -> tuple[TextBlock, ...]:
    return (TextBlock(text=value),)


def test_uni_01_halves_in_neighbouring_deltas_are_joined() -> None:
    found = content_of(TextDelta(HIGH), TextDelta(f"{LOW} hi {HIGH}"))
    assert found == text(f"\N{GRINNING FACE} hi {LONE}")


def test_uni_01_a_watcher_is_never_shown_half_a_character() -> None:
    assert shown_of("a" + HIGH, LOW + "b") == ["a", "\N{GRINNING FACE}b"]


def test_uni_01_a_half_that_stays_alone_is_shown_when_the_next_text_comes() -> None:
    assert shown_of(HIGH, "b", LOW) == [LONE + "b", LONE]


def test_uni_01_an_empty_delta_between_two_halves_changes_nothing() -> None:
    assert content_of(TextDelta(HIGH), TextDelta(""), TextDelta(LOW)) == text("\N{GRINNING FACE}")


def test_uni_01_a_half_before_a_call_stays_before_it() -> None:
    pieces = TextDelta("a"), TextDelta(HIGH), call_piece("{}", id="c", name="now"), TextDelta("b")
    found = content_of(*pieces)
    assert [block.type for block in found] == ["text", "tool_call", "text"]
    assert found[0] == TextBlock(text="a" + LONE)


def test_uni_01_a_half_alone_before_a_call_stays_before_it() -> None:
    found = content_of(TextDelta(HIGH), call_piece("{}", id="c", name="now"))
    assert [block.type for block in found] == ["text", "tool_call"]


def test_uni_01_halves_of_interleaved_calls_find_each_other() -> None:
    a = call_piece(HIGH, id="a", name="echo", index=0), call_piece(LOW, index=0)
    b = call_piece("b", id="b", name="echo", index=1)
    assert content_of(a[0], b, a[1])[0] == ToolCall(id="a", name="echo", raw="\N{GRINNING FACE}")


def test_uni_01_a_watcher_of_thinking_and_calls_is_never_shown_half_a_character() -> None:
    assembler = Assembler()
    deltas = think("a" + HIGH), think(LOW), call_piece(HIGH, id="c", name="x"), call_piece(LOW)
    shown = [repr(assembler.feed(delta)) for delta in deltas]
    assert shown == list(map(repr, [
        think("a"), think("\N{GRINNING FACE}"),
        call_piece("", id="c", name="x"), call_piece("\N{GRINNING FACE}"),
    ]))  # fmt: skip


def test_uni_01_halves_in_thinking_and_arguments_are_joined() -> None:
    thought = think(HIGH), think(LOW)
    call = call_piece('{"x":"' + HIGH, id="c", name="echo"), call_piece(LOW + '"}')
    assert content_of(*thought, *call) == (
        ThinkingBlock(text="\N{GRINNING FACE}"),
        ToolCall(id="c", name="echo", raw='{"x":"\N{GRINNING FACE}"}'),
    )


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(text=HIGH),
        ThinkingBlock(text=HIGH),
        ToolCall(id=HIGH, name="a" + HIGH, raw=f'"{HIGH}"'),
    ],
)
def test_uni_01_finished_blocks_are_made_sendable(block: AssistantContent) -> None:
    assert "\\ud8" not in repr(content_of(WholeDelta((block,)))[0]).lower()


def test_uni_01_the_stop_detail_is_made_sendable() -> None:
    assembler = Assembler()
    assembler.feed(StopDelta(StopReason.REFUSAL, HIGH))
    result = assembler.result()
    assert isinstance(result, Complete)
    assert result.message.stop_detail == LONE


# Halves of surrogate pairs, whole emoji, wide characters, and what JSON escapes.
letters = st.sampled_from(["a", '"', "\\", "\n", "é", "中", "\N{GRINNING FACE}", HIGH, LOW])
texts = st.lists(letters, min_size=1, max_size=8).map("".join)
blocks = st.one_of(
    st.builds(TextBlock, text=texts),
    st.builds(ThinkingBlock, text=texts, signature=st.none() | st.text("AB", min_size=1)),
    st.builds(ThinkingBlock, redacted=st.text("XY", min_size=1)),
    st.builds(ToolCall, id=st.just("?"), name=st.just("echo"), raw=texts),
)


@st.composite
def messages(draw: st.DrawFn) -> list[AssistantContent]:
    """Blocks that a stream can tell apart: no two texts or open thoughts side by side."""
    drawn = draw(st.lists(blocks, min_size=1, max_size=5))
    kept = [drawn[0]]
    for before, block in pairwise(drawn):
        if before.type != block.type or isinstance(block, ToolCall):
            kept.append(block)
    return [
        block.with_id(f"c{at}") if isinstance(block, ToolCall) else block
        for at, block in enumerate(kept)
    ]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Delta], list[Delta]]:
    """The deltas of one message, unsplit and split somewhere."""
    content = draw(messages())
    indexed = draw(st.booleans())
    plain: list[Delta] = []
    split: list[Delta] = []
    for at, block in enumerate(content):
        index = at if indexed else None
        plain += _pieces(block, [_whole_text(block)], index)
        split += _pieces(block, draw(cuts(_whole_text(block))), index)
    return plain, split


@st.composite
def cuts(draw: st.DrawFn, whole: str) -> list[str]:
    places = draw(st.lists(st.integers(0, len(whole)), max_size=4))
    return [whole[a:b] for a, b in pairwise([0, *sorted(places), len(whole)])]


def _whole_text(block: AssistantContent) -> str:
    return block.raw if isinstance(block, ToolCall) else getattr(block, "text", "")


def _pieces(block: AssistantContent, parts: list[str], index: int | None) -> list[Delta]:
    match block:
        case TextBlock():
            return [TextDelta(part) for part in parts]
        case ThinkingBlock(redacted=str() as redacted):
            return [think(redacted=redacted)]
        case ThinkingBlock():
            ends = [think(signature=letter) for letter in block.signature or ""]
            return [*map(think, parts), *ends]
        case ToolCall():
            opened = call_piece(id=block.id, name=block.name, index=index)
            return [opened, *[call_piece(part, index=index) for part in parts]]
        case _:
            raise AssertionError(block)


@settings(max_examples=200, deadline=None)
@given(streams())
def test_the_cuts_of_a_stream_make_no_difference(pair: tuple[list[Delta], list[Delta]]) -> None:
    plain, split = pair
    assert content_of(*split) == content_of(*plain)


@settings(max_examples=200, deadline=None)
@given(st.lists(letters | st.just(""), max_size=12))
def test_what_is_shown_adds_up_to_the_message(parts: list[str]) -> None:
    assembler = Assembler()
    shown = [assembler.feed(TextDelta(part)) for part in parts]
    seen = "".join([delta.text for delta in shown if isinstance(delta, TextDelta)])
    result = assembler.result()
    assert isinstance(result, Incomplete)
    assert result.message.text in {seen, seen + LONE}
    seen.encode()
