"""The shell texts among the arguments of a call, and what they come to."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from callboard_mixins.tool_guard.leaves import MOST_DEPTH, TooMany, escape, read_json
from callboard_mixins.tool_guard.shell_parse import Script, parse_shell

COMMAND_PARAMETERS = (
    "command",
    "commands",
    "cmd",
    "cmds",
    "argv",
    "shell_command",
    "bash_command",
    "command_line",
    "cmdline",
)


def folded(name: str) -> str:
    """A name without case and signs: `shellCommand` and `shell-command` are `shell_command`."""
    return re.sub(r"[\W_]", "", name).lower()


_COMMANDS = frozenset(map(folded, COMMAND_PARAMETERS))


def is_command(name: str) -> bool:
    """Whether a parameter holds shell commands by its name."""
    return folded(name) in _COMMANDS


def scripts_in(arguments: Mapping[str, Any], names: Collection[str]) -> list[Script]:
    """The parsed shell texts of a call. Raises MissingExtra without tree-sitter."""
    return [parse_shell(text) for _, text in shell_texts(arguments, names)]


def shell_texts(
    value: Any, names: Collection[str] = COMMAND_PARAMETERS
) -> Iterator[tuple[str, str]]:
    """The shell texts in the arguments, each with the pointer to it.

    At any depth, also in JSON that stands in a text. Raises TooMany where it is too deep.
    """
    yield from _search(value, frozenset(map(folded, names)), "", 0)


def _search(
    value: Any, names: Collection[str], where: str, depth: int
) -> Iterator[tuple[str, str]]:
    if depth > MOST_DEPTH:
        raise TooMany(f"the arguments are nested more than {MOST_DEPTH} deep")
    if isinstance(value, str):
        inner = read_json(value)
        for _, text in () if inner is None else _search(inner, names, where, depth + 1):
            yield where, text
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            below = f"{where}/{escape(key)}"
            if folded(key) in names:
                yield from _texts(item, below, many=key.lower().endswith("s"))
            yield from _search(item, names, below, depth + 1)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(cast("Sequence[Any]", value)):
            yield from _search(item, names, f"{where}/{at}", depth + 1)


def _texts(value: Any, where: str, *, many: bool) -> Iterator[tuple[str, str]]:
    """What one argument holds: a text, the words of a command, or several texts."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):  # `{"program": ..., "args": [...]}`: who knows how it is read
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _texts(item, f"{where}/{escape(key)}", many=False)
    elif isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        if many or len(items) == 1 or any([isinstance(item, list | tuple) for item in items]):
            for at, item in enumerate(items):
                yield from _texts(item, f"{where}/{at}", many=False)
        elif items:
            yield where, " ".join(shlex.quote(str(item)) for item in items)
    elif value is not None:
        yield where, shlex.quote(str(value))
