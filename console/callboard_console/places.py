"""Where journals stand: a journal file, the file of an engine, or an engine that is a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import ActorEntry, Engine
from callboard.errors import ConfigurationError
from callboard.journaling import sqlite_file
from callboard.journaling.record_codec import encode
from callboard.journaling.sqlite_file import Entry
from callboard_console.agents_commands import entries as actors_of
from callboard_console.engine_files import engine_at, holds_engine, journal_file
from callboard_console.exits import CommandError

FORM = "A journal file, or an engine: sqlite:FILE, nats://TOKEN@HOST:PORT."


@dataclass(frozen=True, slots=True)
class Place:
    """What a user named. `spec` may hold a secret: show `str(place)`."""

    spec: str

    def __str__(self) -> str:
        return self.engine().name if self.is_server else str(self.file)

    @property
    def is_server(self) -> bool:
        return "://" in self.spec

    @property
    def file(self) -> Path:
        """The file. Raises CommandError: it is a server."""
        return journal_file(self.spec)

    @property
    def has_engine(self) -> bool:
        return self.is_server or holds_engine(self.file)

    def engine(self) -> Engine:
        """The engine here. Raises CommandError, ConfigurationError: there is none."""
        return engine_at(self.spec)

    def addresses(self) -> dict[str, int]:
        """The agents that have records here, and how many."""
        if not self.is_server:
            return sqlite_file.addresses(self.file)
        return anyio.run(_addresses, self.engine())

    def entries(self, address: str) -> Iterator[Entry]:
        """The records of an agent. A server does not tell their times: they are 0 then."""
        if not self.is_server:
            return sqlite_file.entries(self.file, address)
        return iter(anyio.run(_entries, self.engine(), address))


def place_at(spec: str) -> Place:
    """The place that a user names, which is looked at when it is used.

    Raises:
        CommandError: its URL is none.
    """
    place = Place(spec)
    try:
        str(place)
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    return place


async def _addresses(engine: Engine) -> dict[str, int]:
    async with engine:
        found: list[ActorEntry] = [one async for one in actors_of(engine, None)]
    return {str(one.address): one.records for one in found if one.records}


async def _entries(engine: Engine, address: str) -> list[Entry]:
    async with engine:
        records = await engine.records(Address.parse(address))
    return [Entry(n, 0.0, record.kind, encode(record)) for n, record in enumerate(records)]
