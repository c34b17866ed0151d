"""Which texts among the arguments of a call are paths, and what it means that they are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from callboard.tooling.tools import Effect, Tool
from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.leaves import Leaf
from callboard_mixins.tool_guard.places import Kind, Place, Places
from callboard_mixins.tool_guard.shell_paths import paths_in, place_finding
from callboard_mixins.tool_guard.shell_programs import Use

PATH_NAMES = frozenset(
    "path paths file files filename filenames filepath file_path dir dirs directory directories "
    "folder folders root cwd workdir working_directory src dst destination new_path p".split()
)
_PATH_ENDINGS = ("_path", "_paths", "_file", "_files", "_dir", "_folder", "_directory", "path")
_FORMATS = frozenset({"path", "file-path", "directory-path", "file", "uri-reference"})
_SHAPE = re.compile(
    r"\s*(?:[/~]|\.{1,2}(?:[/\\]|\s*$)|file:|\$HOME|\$\{HOME\}|%USERPROFILE%|[A-Za-z]:\\|\\\\)"
    r"|.*(?:^|[/\\])\.\.(?:[/\\]|\s*$)",
    re.IGNORECASE,
)
_OPENED = re.compile(r"/(?:fd/|std)")
_NAME = re.compile(r"[^\s\0]{1,255}")
MOST_SHAPED = 4096  # characters of a text that can be a path by its shape


def declared_paths(tool: Tool) -> frozenset[str]:
    """The parameters that a tool's schema declares to be paths."""
    properties = _object(tool.parameters.get("properties"))
    return frozenset(name.lower() for name, schema in properties.items() if _declares(schema))


def _declares(schema: object) -> bool:
    found = _object(schema)
    if found.get("format") in _FORMATS:
        return True
    inner = [found.get("items"), *(found.get("anyOf") or ())]
    return any(_declares(schema) for schema in inner if schema)


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def may_be_path(leaf: Leaf, declared: frozenset[str]) -> bool:
    """Whether a text is surely a path: by the name or format of its parameter, or by its shape."""
    named = leaf.name in PATH_NAMES or leaf.name in declared or leaf.name.endswith(_PATH_ENDINGS)
    if named and "://" not in leaf.text:
        return leaf.text != ""
    if leaf.prose and not leaf.in_text:
        return False
    return len(leaf.text) <= MOST_SHAPED and _shaped(leaf.text)


def _shaped(text: str) -> bool:
    if "\n" in text.strip():
        return False
    seen = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc"))
    seen = unicodedata.normalize("NFKC", seen)
    for _ in range(3):
        seen = unquote(seen)
    return _SHAPE.match(seen) is not None


def path_finding(
    leaf: Leaf, tool: Tool, places: Places, declared: frozenset[str]
) -> Finding | None:
    """What it means that a tool is given this text; None where nothing leads out of the workspace.

    A text that only could be a path is looked at too, for it may name a link.
    """
    sure = may_be_path(leaf, declared)
    if not sure and (leaf.prose or not _NAME.fullmatch(leaf.text)):
        return None
    inner = [] if sure else [part for part in paths_in(leaf.text) if _SHAPE.match(part)]
    found: list[Finding | None] = []
    for path in dict.fromkeys((leaf.text, *inner)):
        place = places.judge(path)
        if sure or path in inner or place.kind not in (Kind.ODD, Kind.SECRET, Kind.HOOK):
            found.append(_finding(place, leaf, tool))
    told = [finding for finding in found if finding is not None]
    return next((one for one in told if one.advice == "deny"), told[0] if told else None)


def _finding(place: Place, leaf: Leaf, tool: Tool) -> Finding | None:
    found = place_finding(place, Use.READ if tool.effect is Effect.PURE else Use.WRITE)
    if found is None and place.kind is Kind.SECRET:  # whether the tool only writes is not known
        text = f"touches {leaf.text!r}, which holds credentials"
        found = Finding("shell.secrets", Severity.MEDIUM, text, "", "ask")
    if found is None and place.kind is Kind.STREAM and _OPENED.search(place.path):
        text = f"uses {place.path!r}, which this process has open"
        found = Finding("shell.outside", Severity.HIGH, text, "", "ask")
    if found is None:
        return None
    advice = "ask" if place.kind is Kind.PUBLIC else found.advice
    category = found.category.replace("shell.", "path.")
    return Finding(category, found.severity, found.text, leaf.where, advice)
