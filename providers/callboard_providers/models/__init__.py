"""Language models: OpenAI's and compatible ones, and a model that runs on this machine.

    from callboard_providers.models import resolve_model
    model = resolve_model("openai:gpt-5")  # or "local", "local:NAME", "scripted:FILE"

The names load when they are used, each with the vendor's package it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard_providers.models.resolve import load, resolve_model

if TYPE_CHECKING:  # for checkers; at run time __getattr__ loads them
    from callboard_providers.models.local import LocalModel
    from callboard_providers.models.openai_chat import OpenAIChatModel

__all__ = ["LocalModel", "OpenAIChatModel", "resolve_model"]

_LAZY = {"LocalModel": "local", "OpenAIChatModel": "openai_chat"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return load(f"callboard_providers.models.{_LAZY[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
