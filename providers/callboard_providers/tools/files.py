"""Reading, listing and searching the files below one folder, as tools. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import BinaryIO

from callboard.tooling.tools import Tool, tool
from callboard.workspace import Entry, OutsideWorkspace, Workspace
from callboard_providers.tools.git_ignore import GitIgnore
from callboard_providers.tools.texts import LARGEST_TEXT_BYTES, lines_of

MOST_LINES = 200
MOST_CHARACTERS = 20_000
MOST_ENTRIES = 500
MOST_MATCHES = 50
MOST_FILES = 5_000
SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache"}
)


def file_tools(root: str | os.PathLike[str]) -> tuple[Tool, Tool, Tool]:
    """The tools `read_file`, `list_files` and `search_files` for what is below `root`."""
    workspace = Workspace(root)

    @tool(effect="pure")
    def read_file(path: str, first_line: int = 1, lines: int = MOST_LINES) -> str:
        """Read a text file, 200 lines at a time.

        Args:
            path: The file.
            first_line: Where to begin.
            lines: How many, at most 200.
        """
        with workspace.open(path) as file:
            return read(file, max(first_line, 1), lines=min(max(lines, 1), MOST_LINES))

    @tool(effect="pure")
    def list_files(path: str = ".") -> str:
        """List the files and folders in a folder.

        Args:
            path: The folder.
        """
        entries = workspace.entries(path)
        lines = [describe(entry) for entry in entries[:MOST_ENTRIES]]
        if len(entries) > MOST_ENTRIES:
            lines.append(f"... and {len(entries) - MOST_ENTRIES} more")
        return "\n".join(lines) or "(the folder is empty)"

    @tool(effect="pure")
    def search_files(text: str, path: str = ".", file_names: str = "*") -> str:
        """Find the lines that hold a text, in all files below a folder.

        Args:
            text: What to look for, in any case.
            path: The folder.
            file_names: Such as "*.py".
        """
        if not text:
            raise ValueError("the text to look for is empty")
        return "\n".join(search(workspace, text, path, file_names)) or f"(no file holds {text!r})"

    return read_file, list_files, search_files


def describe(entry: Entry) -> str:
    """One line for one entry of a folder."""
    if entry.size_bytes is not None:
        return f"{entry.name}  {entry.size_bytes} bytes"
    return f"{entry.name}/" if entry.kind == "folder" else f"{entry.name}  ({entry.kind})"


def read(file: BinaryIO, first_line: int, *, lines: int = MOST_LINES) -> str:
    """A bounded part of a file, saying where to go on."""
    taken: list[str] = []
    size = number = 0
    for number, line in enumerate(lines_of(file), 1):
        if number < first_line:
            continue
        size += len(line) + 1
        if len(taken) == lines or size > MOST_CHARACTERS:
            taken.append(f"(there is more: go on with first_line={number})")
            break
        taken.append(line)
    if any(["\ufffd" in line for line in taken]):
        taken.append("(what is not UTF-8 is shown as \ufffd)")
    if not taken:
        return f"(the file has {number} lines)" if number else "(the file is empty)"
    return "\n".join(taken)


def paths_below(workspace: Workspace, path: str) -> Iterator[str]:
    """The files below a folder that are worth a search: not those that git ignores."""
    return workspace.walk(path, skip=SKIPPED_FOLDERS, ignores=GitIgnore(workspace))


def search(workspace: Workspace, text: str, path: str, file_names: str) -> Iterator[str]:
    """Lines of the form path:number: text, and a last one that says what was left out."""
    wanted = text.casefold()
    found = 0
    for searched, name in enumerate(paths_below(workspace, path), 1):
        if searched > MOST_FILES:
            yield f"(stopped after {MOST_FILES} files: search a folder further down)"
            return
        if not fnmatch(os.path.basename(name), file_names):
            continue
        for number, line in matches(workspace, name, wanted):
            yield f"{name}:{number}: {line.strip()[:200]}"
            found += 1
            if found == MOST_MATCHES:
                yield f"(stopped after {MOST_MATCHES} lines: look for a longer text)"
                return


def matches(workspace: Workspace, name: str, wanted: str) -> Iterator[tuple[int, str]]:
    """The matching lines of one file; none of one that is large, unreadable or not text."""
    try:
        with workspace.open(name) as file:
            if os.fstat(file.fileno()).st_size > LARGEST_TEXT_BYTES:
                return
            for number, line in enumerate(lines_of(file), 1):
                if wanted in line.casefold():
                    yield number, line
    except (OSError, OutsideWorkspace, ValueError):
        return
