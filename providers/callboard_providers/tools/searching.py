"""Finding files by their names and lines by a regular expression, as tools. Nothing is written."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator

from callboard.errors import ConfigurationError
from callboard.tooling.process_functions import ProcessFailed, in_process
from callboard.tooling.processes import ProcessLimits
from callboard.tooling.tools import Tool, tool
from callboard.workspace import OutsideWorkspace, Workspace
from callboard_providers.tools.files import paths_below
from callboard_providers.tools.globs import matches
from callboard_providers.tools.texts import LARGEST_TEXT_BYTES, lines_of

MOST_NAMES = 500
MOST_MATCHES = 100
MOST_FILES = 50_000
MOST_CONTEXT = 10
LONGEST_SHOWN = 300
SEARCH_S = 10  # of computing: what a regular expression that runs wild gets


def searching_tools(root: str | os.PathLike[str]) -> tuple[Tool, Tool]:
    """The tools `glob_files` and `grep_files` for what is below `root`."""
    workspace = Workspace(root)

    @tool(effect="pure")
    def glob_files(pattern: str, path: str = ".") -> str:
        """Find files by their names.

        Args:
            pattern: Such as "*.py", "src/*.c" or "docs/**/*.md".
            path: The folder to look in.
        """
        return "\n".join(named(workspace, pattern, path)) or f"(no file is named {pattern!r})"

    @tool(effect="pure")
    async def grep_files(
        pattern: str, path: str = ".", file_names: str = "*", context: int = 0
    ) -> str:
        """Find the lines that a regular expression matches, in all files below a folder.

        Args:
            pattern: A regular expression as Python has them; (?i) at its beginning ignores case.
            path: The folder, or one file.
            file_names: Such as "*.py" or "src/**/*.c".
            context: How many lines to show before and after each.
        """
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        workspace.locate(path)  # an error of the path is raised here and not elsewhere
        around = min(max(context, 0), MOST_CONTEXT)
        try:
            lines = await grep(str(workspace.root), pattern, path, file_names, around)
        except ProcessFailed as failed:
            if failed.signal is None:
                raise
            raise ValueError(
                f"the search for {pattern!r} took too long: search fewer files, or use a pattern "
                "without one repetition inside another"
            ) from None
        return "\n".join(lines) or f"(no line matches {pattern!r})"

    return glob_files, grep_files


def named(workspace: Workspace, pattern: str, path: str) -> Iterator[str]:
    """Paths that fit a pattern below a folder, and a last line that says what was left out."""
    above = os.path.relpath(workspace.locate(path), workspace.root)
    found = 0
    for looked, name in enumerate(paths_below(workspace, path), 1):
        if looked > MOST_FILES or found == MOST_NAMES:
            yield f"(stopped after {looked - 1} files: look in a folder further down)"
            return
        if matches(name if above == "." else os.path.relpath(name, above), pattern):
            found += 1
            yield name


@in_process(limits=ProcessLimits(cpu_s=SEARCH_S, output_bytes=10_000_000))
def grep(root: str, pattern: str, path: str, file_names: str, context: int) -> list[str]:
    """Matching lines as path:number: text, those around them as path-number- text.

    Runs in a process of its own: Python cannot stop a regular expression that runs wild.
    """
    workspace, regex = Workspace(root), re.compile(pattern)
    shown: list[str] = []
    found = 0
    for looked, name in enumerate(_files(workspace, path), 1):
        if looked > MOST_FILES:
            return [*shown, f"(stopped after {MOST_FILES} files: search a folder further down)"]
        if not matches(name, file_names):
            continue
        for line, is_match in _lines(workspace, name, regex, context):
            if is_match and found == MOST_MATCHES:
                return [*shown, f"(stopped after {MOST_MATCHES} lines: be more exact)"]
            found += is_match
            shown.append(line)
    return shown


def _files(workspace: Workspace, path: str) -> Iterator[str]:
    place = workspace.locate(path)
    if place.is_file():
        return iter((os.path.relpath(place, workspace.root),))
    return paths_below(workspace, path)


def _lines(
    workspace: Workspace, name: str, regex: re.Pattern[str], context: int
) -> Iterator[tuple[str, bool]]:
    """The matching lines of one file; none of one that is large, unreadable or not text."""
    before: deque[tuple[int, str]] = deque(maxlen=context)
    after = 0
    try:
        with workspace.open(name) as file:
            if os.fstat(file.fileno()).st_size > LARGEST_TEXT_BYTES:
                return
            for number, line in enumerate(lines_of(file), 1):
                if regex.search(line):
                    yield from ((_shown(name, "-", *one), False) for one in before)
                    yield _shown(name, ":", number, line), True
                    before.clear()
                    after = context
                elif after:
                    yield _shown(name, "-", number, line), False
                    after -= 1
                else:
                    before.append((number, line))
    except (OSError, OutsideWorkspace, ConfigurationError, ValueError):
        return


def _shown(name: str, sign: str, number: int, line: str) -> str:
    return f"{name}{sign}{number}{sign} {line[:LONGEST_SHOWN]}"
