"""File names with `*`, `?`, `[a-z]` and `**`, which stands for any number of folders. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """Whether a path fits. A pattern without `/` is one for the last name, in any folder.

    Takes the product of both lengths, whatever the pattern.
    """
    names = path.split("/")
    if "/" not in pattern:
        return fnmatchcase(names[-1], pattern)
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fitting = _skipped({0}, parts)  # how many parts may be used up by the names so far
    for name in names:
        fitting = _skipped({_next(at, parts) for at in fitting if _fits(name, at, parts)}, parts)
    return len(parts) in fitting


def _fits(name: str, at: int, parts: Sequence[str]) -> bool:
    return at < len(parts) and (parts[at] == "**" or fnmatchcase(name, parts[at]))


def _next(at: int, parts: Sequence[str]) -> int:
    return at if parts[at] == "**" else at + 1


def _skipped(fitting: set[int], parts: Sequence[str]) -> set[int]:
    """With those after a `**` that stands for no folder."""
    found = set(fitting)
    for at in sorted(fitting):
        while at < len(parts) and parts[at] == "**":
            at += 1
            found.add(at)
    return found
