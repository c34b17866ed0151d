"""From a model's name in a configuration to the model: "openai:gpt-5", "local", "scripted:FILE".

Kinds are found through the entry points of the group "callboard.models", so that other packages
can add theirs; an entry point is a callable that takes what stands after the colon.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from callboard.errors import ConfigurationError, MissingExtra
from callboard.model import Model

GROUP = "callboard.models"
_HERE = "callboard_providers.models.resolve"
BUILT_IN = {
    "openai": f"{_HERE}:openai_model",
    "local": f"{_HERE}:local_model",
    "scripted": f"{_HERE}:scripted_model",
}
_EXTRAS = {"openai": "openai", "httpx2": "openai", "xllamacpp": "local"}


def resolve_model(name: str) -> Model:
    """The model of a name `KIND:WHAT`, or of a `KIND` alone where it has a default.

    Raises:
        ConfigurationError: no such kind, or the kind does not know the rest of the name.
        MissingExtra: the kind needs a package that is not installed.
    """
    kind, _, what = name.strip().partition(":")
    found = {point.name: point.value for point in entry_points(group=GROUP)}
    target = found.get(kind) or BUILT_IN.get(kind)
    if target is None:
        kinds = ", ".join(sorted({*BUILT_IN, *found}))
        raise ConfigurationError(
            f"no model is called {name!r}: a name is KIND:WHAT, and KIND is one of {kinds}"
        )
    make: Callable[[str], Model] = load(target)
    try:
        return make(what)
    except MissingExtra as missing:
        if kind == "local":  # its extra brings those of the protocol that it speaks
            raise MissingExtra(missing.package, extra="local") from None
        raise


def load(target: str) -> Any:
    """The object at `module:name`; a missing vendor package is a MissingExtra."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in _EXTRAS:
            raise MissingExtra(package, extra=_EXTRAS[package]) from None
        raise


def openai_model(what: str) -> Model:
    """`openai:NAME`."""
    if not what:
        raise ConfigurationError("'openai' needs the name of a model: 'openai:gpt-5' for instance")
    model: Model = load("callboard_providers.models.openai_chat:OpenAIChatModel")(what)
    return model


def local_model(what: str) -> Model:
    """`local` for the default, `local:NAME`, or `local:/path/to/model.gguf`."""
    model: Model = load("callboard_providers.models.local:LocalModel")(what or None)
    return model


def scripted_model(what: str) -> Model:
    """`scripted:FILE`: answers from a file, for tests and demonstrations."""
    if not what:
        raise ConfigurationError("'scripted' needs a file: 'scripted:answers.json' for instance")
    model: Model = load("callboard.testing:load_script")(what)
    return model
