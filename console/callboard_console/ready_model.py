"""A model that can answer: found by its name, its file fetched where it is missing."""

from __future__ import annotations

from callboard.model import Model
from callboard_console.fetching import fetch_shown
from callboard_providers.models import resolve_model
from callboard_providers.models.local_files import MODELS, path

DEFAULT = "local"


def ready_model(name: str | None, *, quiet: bool = False) -> Model:
    """The model of a name, "local" without one.

    Raises:
        ConfigurationError: the name is wrong, or a package is missing (MissingExtra).
        CommandError: the file of a local model cannot be had.
    """
    model = resolve_model(name or DEFAULT)
    kind, _, what = model.name.partition(":")
    if kind == "local" and what in MODELS and path(what) is None:
        fetch_shown(what, quiet=quiet)
    return model
