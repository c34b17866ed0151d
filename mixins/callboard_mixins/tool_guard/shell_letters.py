"""What the letters of a shell text alone give away, before it is parsed. Called by `shell_walk`."""

from __future__ import annotations

import re
import unicodedata

from callboard_mixins.tool_guard.shell_tree import MOST_BYTES, NotParsed

_JOINED_LINE = re.compile(r"[^\s\\]\\\n[^\s]|(?:^|\n)[ \t]*\\\n")
_HIDDEN_CODE = re.compile(
    r"\w\[[^\]\s]{0,200}\\?(?:\$\(|`)"
)  # an array index that arithmetic would run
_HIDDEN_LETTERS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def check_letters(text: str) -> None:
    """Refuse what a reader cannot see, or takes for something else. Raises NotParsed."""
    if len(text) > MOST_BYTES:
        raise NotParsed(f"the text has more than {MOST_BYTES} bytes")
    for letter in set(text):
        if letter in "\n\t" or " " <= letter <= "~":
            continue
        if unicodedata.category(letter) in _HIDDEN_LETTERS:
            raise NotParsed(f"the text holds the invisible letter U+{ord(letter):04X}")
    if _JOINED_LINE.search(text):
        raise NotParsed("a word, or nothing, is continued on the next line")
    if _HIDDEN_CODE.search(text):
        raise NotParsed("an array index runs a command")
