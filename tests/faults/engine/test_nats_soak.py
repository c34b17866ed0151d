"""As test_soak, over NATS: servers die as well, and workers are cut off from them.

CALLBOARD_ORDERS says how many orders (1,500 in `make soak`, fewer in CI), CALLBOARD_SEED how.
"""

from __future__ import annotations

import gc
import os
import random
from pathlib import Path

import anyio
import pytest

from callboard_providers.engines.nats_server import NatsServers
from tests.faults.engine.crew import SEED
from tests.faults.engine.nats_crew import NatsCrew
from tests.faults.engine.test_soak import soaked

pytestmark = [
    pytest.mark.faults,
    pytest.mark.real_clock,
    pytest.mark.anyio,
    pytest.mark.timeout(1_800),
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    # nats-py does not close what a connection leaves that a server broke.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


ON_DEMAND = pytest.mark.skipif(
    "CALLBOARD_ORDERS" not in os.environ, reason="takes minutes: make soak"
)


@pytest.mark.parametrize(("servers", "pause_s"), [(1, 3.0), pytest.param(3, 10.0, marks=ON_DEMAND)])
async def test_nothing_is_lost_done_twice_or_out_of_turn(
    tmp_path: Path, servers: int, pause_s: float
) -> None:
    chance = random.Random(SEED)
    with NatsServers(tmp_path / "nats", servers=servers) as started:
        crew = NatsCrew.at(tmp_path, started)
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: crew.harass_servers(chance, pause_s=pause_s))
            await soaked(crew, chance)
            group.cancel_scope.cancel()
    gc.collect()  # so that what nats-py left open is told here
    assert crew.did["server killed"] > 0
