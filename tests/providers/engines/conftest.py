"""Engines of every kind for the same tests: `opened()` gives one more handle on one fresh store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from callboard.actors.engine import Engine
from callboard.actors.memory_engine import MemoryEngine
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.nats_access import connected
from callboard_providers.engines.nats_line import JetStream
from callboard_providers.engines.nats_server import NatsServers
from callboard_providers.engines.sqlite import SqliteEngine

Opened = Callable[[], Engine]
LEASE_S = 2.0


@pytest.fixture(scope="session")
def nats_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """A real server on loopback, for all tests of a session."""
    with NatsServers(tmp_path_factory.mktemp("nats")) as servers:
        yield servers


async def wiped(url: str) -> None:
    """Remove all that earlier tests left in a server."""
    client = await connected(url, {})
    context = JetStream(client).context
    for info in await context.streams_info():
        await context.delete_stream(info.config.name or "")
    await client.close()


@pytest.fixture(params=["memory", "sqlite", "nats"])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend_name: str
) -> Callable[[], Engine]:
    """Opens one more handle on a store that is empty at first."""
    if request.param == "sqlite":
        return lambda: SqliteEngine(tmp_path / "team.db", lease_s=LEASE_S)
    if request.param == "nats":
        if anyio_backend_name != "asyncio":
            pytest.skip("nats-py runs on asyncio only")
        servers: NatsServers = request.getfixturevalue("nats_servers")
        anyio.run(wiped, servers.url)
        return lambda: NatsEngine(servers.url, lease_s=LEASE_S)
    engine = MemoryEngine(lease_s=LEASE_S)
    return lambda: engine
