"""Halves of secrets, where a text was cut before it was redacted: no pattern knows them.

Results are cut at their end, and what a program printed in its middle (`tooling/outputs.py`).
Pure; used by `redactor.py`.
"""

from __future__ import annotations

import re

from callboard_mixins.redaction.finding import Finder

_MARKS = ("\n[cut: ", "\n[... ")
_MARK = re.compile(
    r"\n\[(?:cut: \d+ bytes are too many, the first \d+ are shown"
    r"|\.\.\. (?P<middle>\d+) bytes left out \.\.\.\]\n)"
)
_FIRST_WORD = re.compile(r"\S*(?: [\d()./-]+)*")  # and the groups of a number that was cut
_KEY_END = re.compile(r"END [A-Z ]*PRIVATE KEY[A-Z ]*-----")


def without_halves(text: str, finder: Finder) -> str:
    """The text without what may be a part of something, on either side of where it was cut; the
    same object where it was not.
    """
    if not (_MARKS[0] in text or _MARKS[1] in text):
        return text
    parts: list[str] = []
    at = 0
    for mark in _MARK.finditer(text):
        before = text[at : mark.start()]
        parts += [before[: finder.open_from(before)], mark[0]]
        at = mark.end() if mark["middle"] is None else _tail_from(text, mark.end())
    return "".join([*parts, text[at:]]) if parts else text


def _tail_from(text: str, at: int) -> int:
    """Where the part behind a cut in the middle may be shown from."""
    key = _KEY_END.search(text, at)
    if key is not None and "-----BEGIN " not in text[at : key.start()]:
        return key.end()
    word = _FIRST_WORD.match(text, at)
    return at if word is None else word.end()
