"""Workers die, are stopped past their lease, and come back, while orders come in: none is lost,
no effect happens twice, and each clerk takes its orders in turn.

CALLBOARD_ORDERS says how many (1,500 by default in `make soak`, fewer in CI), CALLBOARD_SEED how.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from pathlib import Path

import anyio
import pytest

from callboard.actors.address import Address
from callboard.actors.system import ActorSystem
from callboard.journaling.records import Prompted, Record
from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.testing import pairing_faults
from callboard_providers.engines.sqlite import SqliteEngine
from tests.faults.engine.crew import SEED, Crew

pytestmark = [
    pytest.mark.faults,
    pytest.mark.real_clock,
    pytest.mark.anyio,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
ORDERS = int(os.environ.get("CALLBOARD_ORDERS", "300"))
CLERKS = 20
WORKERS = 3


async def send_all(system: ActorSystem, chance: random.Random) -> None:
    """Half of the orders go by a relay, half to the clerk; some are sent twice, as by a sender
    that did not hear back.
    """
    for order in range(ORDERS):
        clerk = order % CLERKS
        for _ in range(1 + (chance.random() < 0.1)):
            if clerk % 2:
                payload = {"clerk": clerk, "order": order}
                await system.ref(f"relay/{clerk}").tell(payload, id=f"relay-{order}")
            else:
                await system.ref(f"clerk/{clerk}").tell(f"order {order}", id=f"order-{order}")
        if chance.random() < 0.2:
            await anyio.sleep(0.01)


async def wait_for_all(system: ActorSystem) -> None:
    for order in range(ORDERS):
        await system.result(f"order-{order}", timeout_s=300)


def prompts_of(records: list[Record]) -> list[int]:
    said = [m.text for r in records if isinstance(r, Prompted) for m in r.messages]
    return [int(text.removeprefix("order ")) for text in said]


async def test_nothing_is_lost_done_twice_or_out_of_turn(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    chance, crew = random.Random(SEED), Crew(tmp_path)
    engine = SqliteEngine(crew.file, synchronous="NORMAL")
    statuses, twice = Counter[str](), list[str]()
    lines = defaultdict[tuple[str, str], list[str]](list)
    try:
        async with ActorSystem(engine) as system, anyio.create_task_group() as group:
            for _ in range(WORKERS):
                crew.start()
            group.start_soon(lambda: crew.harass(chance, workers=WORKERS, pause_s=0.8))
            await system.ref("relay/bad").tell("poison")
            await system.ref("relay/worse").tell("deadly")
            await send_all(system, chance)
            await wait_for_all(system)
            group.cancel_scope.cancel()
        async with SqliteEngine(crew.file) as engine:
            for name, order, key in crew.noted():
                lines[name, order].append(key)
            for clerk in range(CLERKS):
                records = list(await engine.records(Address("clerk", str(clerk))))
                assert prompts_of(records) == list(range(clerk, ORDERS, CLERKS))
                state = fold(records)
                assert pairing_faults(state.messages) == []
                for message in state.messages:
                    if isinstance(message, ToolResultMessage):
                        statuses[message.status] += 1
                        check(message, lines, twice)
            dead = {one.letter.to.key for one in await engine.dead()}
    finally:
        crew.close()
    print(f"orders {ORDERS}, {dict(crew.did)}, results {dict(statuses)}, dead {dead}")
    assert twice == []
    assert sum(statuses.values()) == 2 * ORDERS
    assert set(statuses) <= {"ok", "unknown_outcome"}
    assert "bad" in dead
    assert crew.did["SIGKILL"] > 0


def check(
    message: ToolResultMessage, lines: dict[tuple[str, str], list[str]], twice: list[str]
) -> None:
    """The ledger against what the clerk was told of one call."""
    name, order = message.tool_name, message.call_id.rpartition("-")[2]
    keys = lines.get((name, order), [])
    if name == "effect_note":
        if len(keys) > 1:
            twice.append(f"{name} {order}")
        if message.status == "ok":
            assert len(keys) == 1, (name, order, keys)
    else:
        assert keys, (name, order)
        assert len(set(keys)) == 1
