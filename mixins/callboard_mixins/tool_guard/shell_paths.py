"""What a command does with the paths among its words, as findings. Called by `shell_rules`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.place_names import HOOKS, PUBLIC, STARTED
from callboard_mixins.tool_guard.places import Kind, Place, Places
from callboard_mixins.tool_guard.shell_programs import Use
from callboard_mixins.tool_guard.shell_script import ShellCommand
from callboard_mixins.tool_guard.shell_words import Word

_ATTACHED = re.compile(r"^-{1,2}[\w-]*?=?(?=[/~]|\.\.?(?:/|$))")
_ALL = re.compile(r"\[[^\]]*\]|[*?.{},/]")  # what leaves nothing out
_HARMLESS = {
    Use.READ: {Kind.INSIDE, Kind.ROOT, Kind.HOOK, Kind.PUBLIC, Kind.STREAM},
    Use.BUILD: {Kind.INSIDE, Kind.ROOT, Kind.HOOK, Kind.STREAM},
    Use.WRITE: {Kind.INSIDE, Kind.ROOT, Kind.SECRET, Kind.STREAM},
    Use.DELETE: {Kind.INSIDE, Kind.SECRET},
}
_REFUSED = {Kind.CREDENTIALS, Kind.DEVICE, Kind.NETWORK}
_VERBS = {Use.READ: "reads", Use.BUILD: "uses", Use.WRITE: "writes", Use.DELETE: "deletes"}
_CATEGORIES = {
    Kind.CREDENTIALS: "shell.secrets",
    Kind.SECRET: "shell.secrets",
    Kind.DEVICE: "shell.destructive",
    Kind.NETWORK: "shell.network",
    Kind.STARTED: "shell.persistence",
    Kind.HOOK: "shell.persistence",
    Kind.ODD: "shell.odd_path",
}


def ask(category: str, text: str, severity: Severity = Severity.MEDIUM) -> Finding:
    """A finding about which a human is asked."""
    return Finding(f"shell.{category}", severity, text, "", "ask")


def deny(category: str, text: str, severity: Severity = Severity.CRITICAL) -> Finding:
    """A finding for which the call is refused."""
    return Finding(f"shell.{category}", severity, text, "", "deny")


def word_findings(
    word: Word, use: Use, command: ShellCommand, places: Places, *, recursive: bool = False
) -> Iterator[Finding]:
    """What a command does with the path that one of its words is, or holds."""
    if word.value is None:
        yield from _unknown(word, use, command, places, recursive=recursive)
        return
    for path in paths_in(word.value):
        for folder in command.folders:
            if folder is None and not path.startswith(("/", "~")):
                if use is Use.DELETE or ".." in path.split("/"):
                    yield ask("outside", f"where {path!r} is depends on the folder")
                continue
            yield from _path(path, folder or ".", word, use, places, recursive=recursive)


def _path(
    path: str, folder: str, word: Word, use: Use, places: Places, *, recursive: bool
) -> Iterator[Finding]:
    if word.pattern:
        found = places.judge_pattern(path, folder=folder)
    else:
        found = [places.judge(path, folder=folder)]
    if word.source == "{}" and use is Use.DELETE:
        found = found[:1]  # what a search picks out, and not all that is there
    everything = word.pattern and recursive and _ALL.sub("", path) == ""
    root = found[0].kind is Kind.ROOT and word.source != "{}"
    if use is Use.DELETE and everything and root:
        yield ask("destructive", f"{path!r} is all of the workspace", Severity.HIGH)
    for place in found:
        finding = place_finding(place, use, recursive=recursive, pattern=word.pattern)
        if finding is not None:
            yield finding


def place_finding(
    place: Place, use: Use, *, recursive: bool = False, pattern: bool = False
) -> Finding | None:
    """What it means to use a place so; None where it is nothing to speak of."""
    kind = place.kind
    started = kind is Kind.SECRET and use is Use.WRITE and HOOKS.search(place.real)
    if not started and (kind in _HARMLESS[use] or (kind is Kind.ROOT and pattern)):
        return None
    if use is Use.READ and kind is Kind.VITAL and PUBLIC.search(place.real):
        return None
    text = f"{_VERBS[use]} {place.path!r}, {_meaning(place)}"
    category = _CATEGORIES.get(kind, "shell.destructive" if use is Use.DELETE else "shell.outside")
    severe = kind in _REFUSED or _severe(place, use, recursive=recursive)
    if severe:
        return Finding(category, Severity.CRITICAL, text, "", "deny")
    return Finding(category, Severity.MEDIUM, text, "", "ask")


def _severe(place: Place, use: Use, *, recursive: bool) -> bool:
    """Whether no human needs to be asked, for the answer can only be no."""
    kind = place.kind
    if use is Use.DELETE:
        return kind in (Kind.VITAL, Kind.STARTED, Kind.PUBLIC) or (
            kind is Kind.OUTSIDE and recursive
        )
    if use is Use.WRITE:
        starts = kind is Kind.VITAL and STARTED.search(f"{place.real}/") is not None
        vital = kind is Kind.VITAL and recursive
        return kind in (Kind.STARTED, Kind.PUBLIC) or starts or vital
    return False


def _meaning(place: Place) -> str:
    if place.kind is Kind.ODD:
        return f"which cannot be judged: {place.note}"
    if place.kind in (Kind.SECRET, Kind.CREDENTIALS):
        return "which holds credentials"
    if place.kind is Kind.ROOT:
        return "which is the whole workspace"
    if place.kind in (Kind.HOOK, Kind.STARTED):
        return "from where things run by themselves"
    if place.kind in (Kind.DEVICE, Kind.NETWORK):
        return f"which is a {place.kind}"
    return (
        f"outside the workspace ({place.real})"
        if place.real != place.path
        else ("outside the workspace")
    )


def _unknown(
    word: Word, use: Use, command: ShellCommand, places: Places, *, recursive: bool
) -> Iterator[Finding]:
    """A path that only the run can tell: what is known of it may be bad enough."""
    if word.obscured:
        yield ask("obscured", f"{word.source!r} writes letters as numbers", Severity.HIGH)
    if word.known.startswith(("/", "~")):
        place = places.judge(word.known)
        finding = place_finding(place, use, recursive=recursive)
        if finding is not None:
            yield finding
    yield ask("dynamic", f"what {command.written!r} {_VERBS[use]} depends on {word.source!r}")


def paths_in(value: str) -> list[str]:
    """The paths that a word may hold: itself, the value of an option, or parts between signs."""
    if "://" in value and not value.lower().startswith("file:"):
        return []
    found = [] if value.startswith("-") else [value]
    if re.match(r"\w+=.", value):  # `of=file`
        found.append(value.partition("=")[2])
    attached = _ATTACHED.match(value) if value.startswith("-") else None
    if attached:
        return [value[attached.end() :]]
    if value.startswith("-"):
        name, sign, rest = value.partition("=")
        found = [rest] if sign and rest and name else []
    if not value.startswith(("/", "~", "./", "../")):
        parts = re.split(r"[=:,@]", value)[1:]
        found += [part for part in parts if re.match(r"[/~]|\.\.(?:/|$)", part)]
    return list(dict.fromkeys(found))
