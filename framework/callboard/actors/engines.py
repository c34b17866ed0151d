"""Engines by name: `sqlite:team.db` is the engine `sqlite` with the place `team.db`."""

from __future__ import annotations

from importlib.metadata import entry_points

from callboard.actors.engine import Engine
from callboard.errors import ConfigurationError

GROUP = "callboard.engines"  # entry points: a function from the place to an Engine


def engine_named(spec: str) -> Engine | None:
    """The engine of a spec; None for "memory", which keeps nothing.

    Raises:
        ConfigurationError: there is no such engine; names those there are.
    """
    if spec == "memory":
        return None
    name, colon, _ = spec.partition(":")
    found = {point.name: point for point in entry_points(group=GROUP)}
    if not colon or name not in found:
        known = ", ".join(sorted([*[f"{one}:..." for one in found], "memory"]))
        raise ConfigurationError(f"there is no engine {spec!r}; there are: {known}")
    make = found[name].load()
    engine: Engine = make(spec if name == "nats" else spec.removeprefix(f"{name}:"))
    return engine
