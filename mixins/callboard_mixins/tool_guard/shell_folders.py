"""In which folders a command may run: what `cd` does, as far as the text tells."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from callboard_mixins.tool_guard.shell_words import Word

MOST_FOLDERS = 8
Folders = tuple[str | None, ...]  # relative to the start or absolute; None is anywhere


@dataclass(frozen=True, slots=True)
class After:
    """Where the next command may run: if this one went well, and whatever came of it."""

    good: Folders
    any: Folders


def either(*many: Folders) -> Folders:
    """All folders of several, each once; too many are anywhere."""
    found = tuple(dict.fromkeys(folder for folders in many for folder in folders))
    return found if len(found) <= MOST_FOLDERS else (None,)


def change_folder(words: tuple[Word, ...], folders: Folders) -> After:
    """What `cd WORDS` leaves: if it fails, the folder stays."""
    operands = [word for word in words if word.one not in ("-P", "-L", "-e", "-@", "--")]
    if not operands:
        return After(("~",), either(("~",), folders))
    target = operands[0].one
    if target is None or target == "-" or len(operands) > 1:
        return After((None,), either((None,), folders))
    moved = either(tuple(_below(folder, target) for folder in folders))
    return After(moved, either(moved, folders))


def _below(folder: str | None, target: str) -> str | None:
    if target.startswith(("/", "~")):
        return target
    # Not normalised: `a/..` is elsewhere where `a` is a link, and who resolves it looks.
    return None if folder is None else target if folder == "." else posixpath.join(folder, target)
