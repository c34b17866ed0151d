"""What users name on the command line where an engine is meant: `sqlite:team.db`, or its file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from callboard.actors.address import Address
from callboard.actors.control_lane import go_on
from callboard.actors.engine import Commit, Engine
from callboard.actors.engines import engine_named
from callboard.journaling.records import Record
from callboard.journaling.sqlite_file import opened
from callboard_console.exits import CommandError

SQLITE = "sqlite:"


def journal_file(spec: str) -> Path:
    """The file that holds journals: named by itself, or as the engine on it.

    Raises:
        CommandError: it is an engine that is no file.
    """
    if "://" in spec:
        raise CommandError(f"{spec} is no file; this command reads journal files and sqlite:FILE")
    return Path(spec.removeprefix(SQLITE))


def engine_at(spec: str) -> Engine:
    """An engine that is there already, named by its spec or by its file.

    Raises:
        CommandError: there is no file, or it holds no engine.
        ConfigurationError: there is no engine of that name.
    """
    if spec == "memory":
        raise CommandError("the engine 'memory' ends with its process: nothing can look into it")
    kind, colon, _ = spec.partition(":")
    if kind == "sqlite" or not colon or Path(spec).exists():
        file = journal_file(spec)
        if not holds_engine(file):
            raise CommandError(f"{file} holds journals and no engine: nobody serves it")
        spec = f"{SQLITE}{file}"
    engine = engine_named(spec)
    assert engine is not None  # only "memory" is none
    return engine


class OutsideJournal:
    """The journal of an address in an engine, for who does not own it: a plain log, whose records
    answer no letter. With `wakes`, whoever owns the address goes on when something was appended.
    """

    def __init__(self, engine: Engine, address: str, *, wakes: bool = False) -> None:
        self.address = Address.parse(address)
        self._engine = engine
        self._wakes = wakes

    def __repr__(self) -> str:
        return f"{self.address} in {self._engine.name}"

    async def append(self, records: Sequence[Record], expected: int) -> None:
        """As `Journal.append`."""
        sends = (go_on(self.address),) if self._wakes and records else ()
        await self._engine.commit(Commit(self.address, records, expected, sends=sends))

    async def read(self, start: int = 0) -> Sequence[Record]:
        """As `Journal.read`."""
        return await self._engine.records(self.address, start)


def holds_engine(file: Path) -> bool:
    """Whether a journal file is that of an engine.

    Raises:
        ConfigurationError, JournalDamaged: as `sqlite_file.opened`.
    """
    with closing(opened(file, read_only=True)) as connection:
        query = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'inbox'"
        (count,) = connection.execute(query).fetchone()
    return bool(count)
