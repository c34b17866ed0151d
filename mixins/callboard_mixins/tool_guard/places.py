"""Where a path leads, and what kind of place that is. Called by the path and shell detectors.

`Workspace.locate` resolves what is below the workspace; only what is not there is resolved here.
"""

from __future__ import annotations

import glob
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from callboard.workspace import OutsideWorkspace, Workspace
from callboard_mixins.tool_guard import place_names

MOST_MATCHES = 1000  # of one pattern that are looked at
MOST_BRACES = 4
MOST_CHARACTERS = 4096  # of a path, as Linux has it
_FILE_URL = re.compile(r"file:/{0,2}(?:localhost(?=/))?", re.IGNORECASE)
_HOME = re.compile(r"^(?:\$HOME|\$\{HOME\}|%USERPROFILE%)(?=/|\\|$)")
_VARIABLE = re.compile(r"\$\w|\$\{|%\w+%")
_SLASHES = "\u2044\u2215\u29f8\u29f6"
_ENCODED = re.compile(r"%(?:25)*(?:2e|2f|5c|00|c0%ae|c0%af)", re.IGNORECASE)
_ALPHABETS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")
_SIGNS = re.compile(r"[*?\[{]")


class Kind(StrEnum):
    """What a place is to a guard."""

    INSIDE = "inside"
    ROOT = "root"  # the workspace itself
    SECRET = "secret"  # inside, but a file with credentials by its name
    HOOK = "hook"  # inside, but run by git or meant for it
    PUBLIC = "public"  # outside, for everybody to read
    STREAM = "stream"  # /dev/null and the like
    OUTSIDE = "outside"
    VITAL = "vital"  # /, a home, a folder of the system: whoever deletes it loses all
    CREDENTIALS = "credentials"
    STARTED = "started"  # what is written there runs by itself
    DEVICE = "device"
    NETWORK = "network"  # /dev/tcp/...
    ODD = "odd"  # nobody can tell, or it only looks like another path


@dataclass(frozen=True, slots=True)
class Place:
    """A path as it was given, what kind of place it is, and where it really leads."""

    path: str
    kind: Kind
    real: str
    note: str = ""


class Places:
    """Judges paths against one workspace. Looks at the file system and keeps nothing."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._root = str(workspace.root)
        self._home = os.path.expanduser("~")

    def judge(self, path: str, *, folder: str = ".") -> Place:
        """The place of one path, relative to a folder of the workspace or an absolute one."""
        note = oddity(path)
        if note:
            return Place(path, Kind.ODD, path, note)
        plain = self.expand(path)
        if plain.startswith("~"):
            return Place(path, Kind.OUTSIDE, plain, "the home of another user")
        if not plain.startswith("/"):
            plain = os.path.join(self.expand(folder), plain)
        try:
            real = self._locate(plain)
        except OSError as error:
            return Place(path, Kind.ODD, plain, error.strerror or "it cannot be resolved")
        return Place(path, self._kind(plain, real), real)

    def judge_pattern(self, pattern: str, *, folder: str = ".") -> list[Place]:
        """The places that a shell pattern may lead to: the folder it begins in, and matches."""
        if pattern.count("{") > MOST_BRACES or pattern.count(",") > MOST_MATCHES:
            return [Place(pattern, Kind.ODD, pattern, "it has too many braces")]
        found: list[Place] = []
        for plain in islice(_braces(pattern), MOST_MATCHES):
            start = _SIGNS.split(plain, maxsplit=1)[0]
            if ".." in plain[len(start) :].split("/"):
                return [Place(pattern, Kind.ODD, plain, "a pattern goes up")]
            if not _SIGNS.search(plain):
                found.append(self.judge(plain, folder=folder))
                continue
            above = start.rpartition("/")[0] + "/" * ("/" in start) or "."
            place = self.judge(above, folder=folder)
            found.append(replace(place, path=pattern))
            if place.kind in (Kind.INSIDE, Kind.ROOT):
                matches = self._matches(plain, folder)
                found += [self.judge(match, folder=folder) for match in matches]
                if len(matches) == MOST_MATCHES:
                    found.append(Place(pattern, Kind.ODD, plain, "it has too many matches"))
        return found

    def expand(self, path: str) -> str:
        """A path with `~`, `$HOME` and `file://` read as programs do."""
        url = _FILE_URL.match(path)
        if url:
            path = "/" + unquote(path[url.end() :]).lstrip("/")
        path = _HOME.sub("~", path)
        if path == "~" or path.startswith("~/"):
            return self._home + path[1:]
        return path

    def _matches(self, pattern: str, folder: str) -> list[str]:
        start = os.path.join(self._root, self.expand(folder))
        return list(islice(glob.iglob(pattern, root_dir=start, include_hidden=True), MOST_MATCHES))

    def _locate(self, path: str) -> str:
        if "\0" in path:
            raise OSError(0, "it holds a null character")
        if not os.path.isabs(path) or path.startswith(self._root + "/"):
            try:
                return str(self.workspace.locate(path))
            except (OutsideWorkspace, FileNotFoundError, NotADirectoryError):
                pass
        real = os.path.realpath(os.path.join(self._root, path))
        return real.replace("//", "/")

    def _kind(self, path: str, real: str) -> Kind:
        if real == self._root:
            return Kind.ROOT
        if real.startswith(self._root.rstrip("/") + "/"):
            inside = real[len(self._root) :]
            if place_names.SECRETS.search(inside):
                return Kind.SECRET
            return Kind.HOOK if place_names.HOOKS.search(inside) else Kind.INSIDE
        for text in (os.path.normpath(os.path.join(self._root, path)), real):
            kind = self._outside(text)
            if kind is not Kind.OUTSIDE:
                return kind
        return Kind.OUTSIDE

    def _outside(self, real: str) -> Kind:
        for pattern, kind in (
            (place_names.STREAMS, Kind.STREAM),
            (place_names.NETWORK, Kind.NETWORK),
            (place_names.DEVICES, Kind.DEVICE),
        ):
            if pattern.search(real):
                return kind
        if self._vital(real):
            return Kind.VITAL
        if place_names.CREDENTIALS.search(real):
            return Kind.CREDENTIALS
        if place_names.PUBLIC.search(real):
            return Kind.PUBLIC
        return Kind.STARTED if place_names.STARTED.search(real) else Kind.OUTSIDE

    def _vital(self, real: str) -> bool:
        parts = Path(real).parts[1:]
        if len(parts) <= 1 or real == self._home or self._root.startswith(real + "/"):
            return True
        return len(parts) == 2 and parts[0] in ("home", "Users", "usr", "var", "Library")


def oddity(path: str) -> str:
    """Why a path may not be what it looks like; nothing for a plain one."""
    if len(path) > MOST_CHARACTERS:
        return f"it has more than {MOST_CHARACTERS} characters"
    return _odd_letters(path) or _odd_names(path)


def _odd_letters(path: str) -> str:
    for letter in path:
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            return f"it holds the invisible letter U+{ord(letter):04X}"
    for letter in path:
        if letter > "\x7f" and (plain := unicodedata.normalize("NFKC", letter)).isascii():
            return f"{letter!r} can be read as {plain!r}"
    if any(sign in path for sign in _SLASHES):
        return "it holds a sign that looks like a slash"
    if any(_mixes_alphabets(part) for part in path.split("/")):
        return "letters of several alphabets stand in one name"
    return ""


def _odd_names(path: str) -> str:
    if _ENCODED.search(path) and not _FILE_URL.match(path):
        return f"decoded it would be {unquote(path)!r}"
    if re.search(r"(?:^|[\\/])\.\.\\|\\\.\.(?:[\\/]|$)|^[A-Za-z]:[\\/]|^\\\\", path):
        return "it is a path of another system"
    if _VARIABLE.match(path) and not _HOME.match(path):
        return "a variable stands in it"
    if any(part != part.strip(" ") for part in path.split("/")):
        return "a blank stands at the edge of a name"
    if any(len(part) > 3 and not part.strip(". ") for part in path.split("/")):
        return "a name is only dots"
    return ""


def _mixes_alphabets(name: str) -> bool:
    if name.isascii() or not any("a" <= letter.lower() <= "z" for letter in name):
        return False
    return any(unicodedata.name(letter, "").startswith(_ALPHABETS) for letter in name)


def _braces(pattern: str) -> Iterator[str]:
    """`a{b,c}` as `ab` and `ac`, as shells have it."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from _braces(pattern[: found.start()] + choice + pattern[found.end() :])
