"""Whatever a program prints, its two ends are kept, the rest is counted, and memory is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from callboard.tooling.outputs import Output, OutputKeeper

PIECES = st.lists(st.binary(max_size=40), max_size=20)


@given(PIECES, st.integers(1, 60))
def test_the_two_ends_are_kept_and_the_rest_is_counted(pieces: list[bytes], size: int) -> None:
    keeper = OutputKeeper(size)
    for piece in pieces:
        keeper.add(piece)
    whole, found = b"".join(pieces), keeper.output()
    assert whole.startswith(found.head)
    assert whole.endswith(found.tail)
    kept = len(found.head) + len(found.tail)
    assert kept == min(size, len(whole))
    assert found.left_out_bytes == len(whole) - kept


@given(PIECES, st.integers(1, 60), st.integers(0, 20))
def test_a_look_in_between_changes_nothing(pieces: list[bytes], size: int, at: int) -> None:
    looked, plain = OutputKeeper(size), OutputKeeper(size)
    for number, piece in enumerate(pieces):
        looked.add(piece)
        plain.add(piece)
        if number == at:
            looked.output()
    assert looked.output() == plain.output()


def test_a_character_is_not_shown_cut_in_two() -> None:
    keeper = OutputKeeper(6)
    keeper.add("ääää".encode())
    assert keeper.output().text == "ä\n[... 2 bytes left out ...]\nä"


def test_what_is_no_text_is_replaced() -> None:
    assert Output(b"a\xff", b"b").text == "a\ufffdb"
