"""What the `.gitignore` files below a folder name, so that searches pass it by.

As gitignore(5) has it, but for what stands outside the folder: `.git/info/exclude` and the user's
own file are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath

from callboard.workspace import OutsideWorkspace, Workspace
from callboard_providers.tools.globs import matches

MOST_BYTES = 100_000  # that are read of one file


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a file. A pattern with a `/` before its end counts from the file's folder."""

    glob: str
    ignores: bool  # False for a line with `!`, which takes back what one before it says
    only_folders: bool

    @staticmethod
    def of(line: str) -> Pattern | None:
        """What a line says; None for a comment and for what fits nothing."""
        line = re.sub(r"(?<!\\) +$", "", line)
        ignores = not line.startswith("!")
        line = line.removeprefix("!")
        glob = line.rstrip("/")
        if not glob or "//" in line or (line.startswith("#") and ignores):
            return None
        if "/" in glob:
            glob = f"./{glob.lstrip('/')}"
        if glob.endswith("/**"):
            glob += "/*"  # what is inside, not the folder itself
        return Pattern(_plain(glob), ignores, line.endswith("/"))

    def fits(self, path: str, *, is_folder: bool) -> bool:
        """Whether it speaks of a path, relative to the folder of its file."""
        return (is_folder or not self.only_folders) and matches(path, self.glob)


class GitIgnore:
    """Tells whether a path below a workspace is ignored, that above it being not."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._patterns_of = cache(self._read)

    def __call__(self, path: str, is_folder: bool) -> bool:  # noqa: FBT001  # called by `walk`
        place = PurePosixPath(path)
        for folder in place.parents:  # the nearest file has the last word
            below = str(place.relative_to(folder))
            for pattern in reversed(self._patterns_of(str(folder))):
                if pattern.fits(below, is_folder=is_folder):
                    return pattern.ignores
        return False

    def _read(self, folder: str) -> tuple[Pattern, ...]:
        try:
            with self._workspace.open(f"{folder}/.gitignore") as file:
                text = file.read(MOST_BYTES).decode("utf-8", "replace")
        except (OSError, OutsideWorkspace):
            return ()
        return tuple(filter(None, map(Pattern.of, _lines(text))))


def _lines(text: str) -> Iterator[str]:
    for line in text.removeprefix("\ufeff").split("\n"):
        yield line.removesuffix("\r")


def _plain(glob: str) -> str:
    """With escapes and negated sets as fnmatch has them."""
    glob = re.sub(r"\\(.)", lambda found: _literal(found[1]), glob)
    return glob.replace("[^", "[!")


def _literal(character: str) -> str:
    return f"[{character}]" if character in "*?[" else character
