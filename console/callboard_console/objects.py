"""What users name on the command line: `module:name`, found in the current folder too."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from callboard.errors import CallboardError
from callboard.tooling.tools import Tool, as_tool
from callboard_console.exits import CommandError


def load_object(target: str, *, option: str) -> Any:
    """The object at `module:name`.

    Raises:
        CommandError: it cannot be imported, or has no such name.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise CommandError(f"{option} {target!r}: write module:name, such as weather:forecast")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{option} {target!r}: no module {error.name!r} here or among the installed ones"
        ) from error
    except AttributeError as error:
        raise CommandError(f"{option} {target!r}: {error}") from error
    except Exception as error:  # whatever a user's module does when it is imported
        raise CommandError(f"{option} {target!r}: importing it raised {error!r}") from error
    return found


def load_tools(target: str) -> Sequence[Tool]:
    """The tools at `module:name`: one function or tool, or several in a list or tuple."""
    found = load_object(target, option="--tool")
    several = cast(list[Any], found) if isinstance(found, list | tuple) else [found]
    try:
        return [as_tool(one) for one in several]
    except (CallboardError, TypeError) as error:
        raise CommandError(f"--tool {target!r}: {error}") from error


def takes(factory: Callable[..., Any], name: str) -> bool:
    """Whether a factory can be called with `name=...`."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == name or p.kind is p.VAR_KEYWORD for p in parameters)


def names(factory: object, name: str) -> bool:
    """Whether a factory has a parameter of this name, and not merely `**rest`."""
    try:
        return callable(factory) and name in inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False


def call_factory(
    factory: Callable[..., Any], target: str, offered: Mapping[str, Callable[[], Any]]
) -> Any:
    """What the factory found at `target` makes, given those of the offered arguments it takes."""
    arguments = {name: make() for name, make in offered.items() if takes(factory, name)}
    try:
        return factory(**arguments)
    except CallboardError:
        raise
    except Exception as error:  # whatever a user's factory does
        raise CommandError(f"agent {target!r}: calling it raised {error!r}") from error
