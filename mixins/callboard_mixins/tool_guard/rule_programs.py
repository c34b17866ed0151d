"""Whether a command is one that a rule names by its first words, such as `git push`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from callboard_mixins.tool_guard.shell_script import ShellCommand


def begins(wanted: Sequence[str], command: ShellCommand) -> bool:
    """Whether a command surely begins with these words, and with nothing between them."""
    words = (command.program, *_certain(command))
    if len(words) < len(wanted):
        return False
    pairs = zip(wanted, words, strict=False)
    return all([word is not None and fnmatchcase(word, pattern) for pattern, word in pairs])


def reaches(wanted: Sequence[str], command: ShellCommand) -> bool | None:
    """Whether a command may be this one: `git -C src push` is `git push`. None: it depends.

    An option may take the next word as its value or not, so both are tried. Case is no
    difference, as on some systems it makes none.
    """
    program, words = command.program, _certain(command)
    if program is None:
        return None
    if not fnmatchcase(program.lower(), wanted[0].lower()):
        return False
    found = _follow([word.lower() for word in wanted[1:]], words)
    renames = program.lower() == "git" and any(["alias." in (w or "").lower() for w in words])
    return None if found is False and renames else found


def _certain(command: ShellCommand) -> list[str | None]:
    return [word.one for word in command.words]


def _follow(wanted: Sequence[str], words: Sequence[str | None]) -> bool | None:
    """Whether the wanted words stand there one after the other, only options between them."""
    depends = False
    seen: set[tuple[int, int]] = set()
    ways = [(0, 0)]  # how many are found, and where to look on
    while ways:
        found, at = way = ways.pop()
        if found == len(wanted):
            return True
        if way in seen or at >= len(words):
            continue
        seen.add(way)
        word = words[at]
        if word is None:
            depends = True
            continue
        if fnmatchcase(word.lower(), wanted[found]):
            ways.append((found + 1, at + 1))
        if word.startswith("-"):
            ways += [(found, at + 1), (found, at + 2)]
    return None if depends else False
