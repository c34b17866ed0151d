"""The engine that a test and its workers share, by the words of a command line."""

from __future__ import annotations

from callboard.actors.engine import Engine
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.sqlite import SqliteEngine


def engine_of(spec: str, lease_s: float) -> Engine:
    """The engine of a NATS URL, or of a file."""
    if "://" in spec:
        return NatsEngine(spec, lease_s=lease_s)
    return SqliteEngine(spec, lease_s=lease_s, synchronous="NORMAL")
