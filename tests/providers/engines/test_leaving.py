"""Leaving an engine: what ends the block goes on to whoever opened it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.engine import Letter
from callboard.actors.envelope import Envelope
from callboard.actors.system import ActorSystem
from callboard.errors import CommitFailed
from callboard_providers.engines.sqlite import SqliteEngine
from callboard_providers.engines.sqlite_term import WorkerTerm

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]


class Sleeper(Actor):
    """Never ends what it begins."""

    def __init__(self, begun: anyio.Event) -> None:
        self.begun = begun

    async def receive(self, letter: Envelope) -> Any:
        self.begun.set()
        await anyio.sleep_forever()


async def test_what_is_raised_inside_the_block_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with SqliteEngine(tmp_path / "team.db"):
            raise ValueError("mine")


async def test_a_system_that_is_cancelled_gives_its_addresses_back(tmp_path: Path) -> None:
    begun = anyio.Event()
    with anyio.CancelScope() as scope:
        async with ActorSystem(SqliteEngine(tmp_path / "team.db")) as system:
            system.register("sleeper", lambda seat: Sleeper(begun))
            await system.ref("sleeper/a").tell("x")
            await begun.wait()
            scope.cancel()
            await anyio.sleep_forever()
    async with SqliteEngine(tmp_path / "team.db") as engine:
        (entry,) = await engine.actors()
        assert (entry.unread, entry.owner) == (1, None)


async def test_what_is_written_behind_a_shield_is_kept_though_all_is_cancelled(
    tmp_path: Path,
) -> None:
    letter = Letter("1", Address("sleeper", "a"), {"value": "the end"})
    with anyio.CancelScope() as scope:
        async with SqliteEngine(tmp_path / "team.db") as engine:
            scope.cancel()
            with anyio.CancelScope(shield=True):
                for _ in range(10):  # all that can be cancelled is
                    await checkpoint()
                await engine.send(letter)
    async with SqliteEngine(tmp_path / "team.db") as engine:
        assert [one.unread for one in await engine.actors()] == [1]


class Unworkable(SqliteEngine):
    """An engine whose workers cannot begin."""

    def worker(self, kinds: Sequence[str] = (), **more: Any) -> WorkerTerm:
        del kinds, more
        raise CommitFailed("no work today")


async def test_a_system_that_cannot_begin_closes_its_engine(tmp_path: Path) -> None:
    engine = Unworkable(tmp_path / "team.db")
    with pytest.raises(CommitFailed, match="no work"):
        async with ActorSystem(engine):
            pytest.fail("it began")
    async with engine:  # it could not be entered twice
        assert await engine.actors() == []
