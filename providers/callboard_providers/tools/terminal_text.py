"""What a program printed for a terminal, as plain text. Pure."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links, and other strings
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(printed: str) -> str:
    """Without escape sequences and control characters; of a line that was written over (a
    progress bar), what stood there last.
    """
    text = _SEQUENCE.sub("", printed)
    lines = [_last(line) for line in text.split("\n")] if "\r" in text else [text]
    return _CONTROLS.sub("", "\n".join(lines))


def _last(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
