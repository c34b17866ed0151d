"""The engines keep what the port promises: each case of the conformance kit by itself."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, StoredAnswer
from callboard.actors.memory_engine import MemoryEngine
from callboard.testing import check_engine
from callboard.testing.engine_check import CASES
from callboard.testing.engine_kit import Open
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.nats_server import NatsServers
from callboard_providers.engines.sqlite import SqliteEngine
from tests.providers.engines.conftest import wiped

pytestmark = pytest.mark.anyio
LEASE_S = 0.8


@pytest.mark.parametrize("case", CASES)
async def test_the_memory_engine_conforms(case: str) -> None:
    def store() -> Open:
        engine = MemoryEngine(lease_s=LEASE_S, mailbox_bound=300)
        return lambda: engine

    await check_engine(store, cases=[case], lease_s=LEASE_S, pause=lambda worker: worker.pause())


@pytest.mark.parametrize("case", CASES)
async def test_the_sqlite_engine_conforms(case: str, tmp_path: Path) -> None:
    numbers = count()

    def store() -> Open:
        path = tmp_path / f"{next(numbers)}.db"
        return lambda: SqliteEngine(path, lease_s=LEASE_S, mailbox_bound=300, synchronous="NORMAL")

    await check_engine(store, cases=[case], lease_s=LEASE_S, pause=lambda worker: worker.pause())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_nats_engine_conforms(case: str, nats_servers: NatsServers) -> None:
    await wiped(nats_servers.url)

    def store() -> Open:
        return lambda: NatsEngine(nats_servers.url, lease_s=2.0, mailbox_bound=300)

    await check_engine(store, cases=[case], lease_s=2.0, pause=lambda worker: worker.pause())


class Forgetful(MemoryEngine):
    """Takes an id in again."""

    async def send(self, *letters: Letter) -> None:
        self._seen.clear()
        await super().send(*letters)


class Hasty(MemoryEngine):
    """Takes letters out of a mailbox before it looks at the journal."""

    def commit_now(self, commit: Commit) -> None:
        super().commit_now(replace(commit, records=(), sends=(), answers=()))
        super().commit_now(commit)


class Careless(MemoryEngine):
    """Appends whatever the journal holds."""

    def commit_now(self, commit: Commit) -> None:
        held = len(self.stored(commit.address).records)
        super().commit_now(replace(commit, expected=held))


class Impatient(MemoryEngine):
    """Gives an interim answer as the final one."""

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        return await super().answer(letter_id, timeout_s=timeout_s)


class Unfenced(MemoryEngine):
    """Lets anybody write who has a worker."""

    def worker(self, kinds: Any = (), *, on_lost: Any) -> Any:
        def unchecked(_: Address) -> None:
            return

        term = super().worker(kinds, on_lost=on_lost)
        setattr(term._worker, "_check", unchecked)  # noqa: B010  # a planted defect
        return term


@pytest.mark.parametrize(
    ("engine", "case"),
    [
        (Forgetful, "the same id is taken in once, also after it was done"),
        (Hasty, "a commit that conflicts keeps nothing"),
        (Careless, "of two racing writers exactly one writes"),
        (Impatient, "interim answers are told from final ones"),
        (Unfenced, "without the lease nothing is written"),
    ],
)
async def test_the_kit_finds_a_broken_engine(engine: type[MemoryEngine], case: str) -> None:
    def store() -> Open:
        broken = engine(lease_s=LEASE_S, mailbox_bound=300)
        return lambda: broken

    with pytest.raises(AssertionError, match="does not conform"):
        await check_engine(store, cases=[case], lease_s=LEASE_S)
