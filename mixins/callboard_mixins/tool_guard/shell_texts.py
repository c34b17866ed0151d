"""The shell texts among the arguments of a call, and what they come to."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from callboard_mixins.tool_guard.leaves import escape
from callboard_mixins.tool_guard.shell_parse import Script, parse_shell

COMMAND_PARAMETERS = ("command", "commands", "cmd", "argv", "shell_command")


def scripts_in(arguments: Mapping[str, Any], names: Collection[str]) -> list[Script]:
    """The parsed shell texts of a call. Raises MissingExtra without tree-sitter."""
    return [parse_shell(text) for _, text in shell_texts(arguments, names)]


def shell_texts(
    value: Any, names: Collection[str] = COMMAND_PARAMETERS, where: str = ""
) -> Iterator[tuple[str, str]]:
    """The shell texts in the arguments, at any depth, each with the pointer to it."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            below = f"{where}/{escape(key)}"
            if key in names:
                yield from _texts(item, key, below)
            yield from shell_texts(item, names, below)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(cast("Sequence[Any]", value)):
            yield from shell_texts(item, names, f"{where}/{at}")


def _texts(value: Any, name: str, where: str) -> Iterator[tuple[str, str]]:
    """What one argument holds: a text, the words of a command, or several texts."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        if name.endswith("s"):
            for at, item in enumerate(items):
                yield from _texts(item, "", f"{where}/{at}")
        elif items:
            yield where, " ".join(shlex.quote(str(item)) for item in items)
    elif value is not None and not isinstance(value, Mapping):
        yield where, shlex.quote(str(value))
