"""Replacing a piece of a text that must stand in it exactly once, or saying why not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

MOST_SHOWN = 5  # places that an error names
MOST_COMPARED = 5_000  # lines that are searched for something alike


def replaced(text: str, old: str, new: str, *, every: bool = False) -> tuple[str, int]:
    """The text with `old` replaced, and how often. Line ends are those of the text.

    Raises:
        ValueError: `old` is not there (naming what is like it), or more than once without `every`.
    """
    if not old:
        raise ValueError("old_text is empty: give the text to replace, or write the whole file")
    if old == new:
        raise ValueError("old_text and new_text are the same: nothing would change")
    old, new = in_line_ends_of(text, old, new)
    found = text.count(old)
    if not found:
        raise ValueError(f"old_text is not in the file{nearest(text, old)}")
    if found > 1 and not every:
        places = list(places_of(text, old))
        more = ", ..." if found > len(places) else ""
        lines = ", ".join(map(str, places))
        raise ValueError(
            f"old_text stands in the file {found} times (lines {lines}{more}): add lines around it "
            "until it is the only one, or set every"
        )
    return text.replace(old, new), found


def in_line_ends_of(text: str, old: str, new: str) -> tuple[str, str]:
    """Old and new with the line ends of a text that has \\r\\n, where they were given plain."""
    if "\r\n" not in text or "\r" in old or ("\n" in old and old in text):
        return old, new
    return old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")


def places_of(text: str, piece: str) -> Iterator[int]:
    """The lines at which a piece begins, the first few."""
    at = -1
    for _ in range(MOST_SHOWN):
        at = text.find(piece, at + 1)
        if at < 0:
            return
        yield text.count("\n", 0, at) + 1


def nearest(text: str, old: str) -> str:
    """A hint to what was meant: the same lines with other spaces, or a line alike."""
    lines, wanted = text.splitlines(), [line.strip() for line in old.splitlines()]
    stripped = [line.strip() for line in lines]
    for at in range(len(lines) - len(wanted) + 1):
        if stripped[at : at + len(wanted)] == wanted:
            shown = "\n".join(lines[at : at + len(wanted)])[:500]
            return f"; with other spaces it begins at line {at + 1}:\n{shown}"
    first = next(filter(None, wanted), "")
    close = get_close_matches(first, filter(None, stripped[:MOST_COMPARED]), n=1)
    if not close:
        return ": read it again"
    at = stripped.index(close[0])
    return f"; line {at + 1} is like its first line: {lines[at][:300]!r}"
