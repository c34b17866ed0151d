"""Reading, listing and searching the files below one folder, as tools. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import BinaryIO

from callboard.tooling.tools import Tool, tool
from callboard.workspace import Entry, OutsideWorkspace, Workspace

MOST_LINES = 200
MOST_CHARACTERS = 20_000
LONGEST_LINE = 2_000
MOST_ENTRIES = 500
MOST_MATCHES = 50
MOST_FILES = 5_000
LARGEST_FILE_BYTES = 2_000_000  # larger ones are not searched
SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache"}
)


def file_tools(root: str | os.PathLike[str]) -> tuple[Tool, Tool, Tool]:
    """The tools `read_file`, `list_files` and `search_files` for what is below `root`."""
    workspace = Workspace(root)

    @tool(effect="pure")
    def read_file(path: str, first_line: int = 1) -> str:
        """Read a text file, 200 lines at a time.

        Args:
            path: The file.
            first_line: Where to begin.
        """
        with workspace.open(path) as file:
            return read(file, max(first_line, 1))

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


def lines_of(file: BinaryIO) -> Iterator[str]:
    """The lines of a text file, each cut where it is very long.

    Raises:
        ValueError: the file is not text.
    """
    while line := file.readline(LONGEST_LINE):
        if b"\0" in line:
            raise ValueError("the file is not text")
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def read(file: BinaryIO, first_line: int) -> str:
    """A bounded part of a file, saying where to go on."""
    taken: list[str] = []
    size = number = 0
    for number, line in enumerate(lines_of(file), 1):
        if number < first_line:
            continue
        size += len(line) + 1
        if len(taken) == MOST_LINES or size > MOST_CHARACTERS:
            taken.append(f"(there is more: go on with first_line={number})")
            break
        taken.append(line)
    if not taken:
        return f"(the file has {number} lines)" if number else "(the file is empty)"
    return "\n".join(taken)


def search(workspace: Workspace, text: str, path: str, file_names: str) -> Iterator[str]:
    """Lines of the form path:number: text, and a last one that says what was left out."""
    wanted = text.casefold()
    found = 0
    for searched, name in enumerate(workspace.walk(path, skip=SKIPPED_FOLDERS), 1):
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
            if os.fstat(file.fileno()).st_size > LARGEST_FILE_BYTES:
                return
            for number, line in enumerate(lines_of(file), 1):
                if wanted in line.casefold():
                    yield number, line
    except (OSError, OutsideWorkspace, ValueError):
        return
