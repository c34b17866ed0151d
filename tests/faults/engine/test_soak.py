"""Workers die, are stopped past their lease, and come back, while orders come in: none is lost,
no effect happens twice, and each clerk takes its orders in turn.

CALLBOARD_ORDERS says how many (1,500 by default in `make soak`, fewer in CI), CALLBOARD_SEED how.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import anyio
import pytest

from callboard.actors.address import Address
from callboard.actors.engine import Engine
from callboard.actors.system import ActorSystem
from callboard.journaling.records import Prompted, Record
from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.testing import pairing_faults
from tests.faults.engine.crew import SEED, Crew

pytestmark = [
    pytest.mark.faults,
    pytest.mark.real_clock,
    pytest.mark.anyio,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
CLERKS = 40
WORKERS = 3


async def send_all(system: ActorSystem, crew: Crew, chance: random.Random) -> None:
    """Half of the orders go by a relay, half to the clerk; some are sent twice, as by a sender
    that did not hear back.
    """
    for order in range(crew.orders):
        clerk = order % CLERKS
        for _ in range(1 + (chance.random() < 0.1)):
            if clerk % 2:
                payload = {"clerk": clerk, "order": order}
                await system.ref(f"relay/{clerk}").tell(payload, id=f"relay-{order}")
            else:
                await system.ref(f"clerk/{clerk}").tell(f"order {order}", id=f"order-{order}")
        if chance.random() < 0.2:
            await anyio.sleep(0.01)


async def wait_for_all(system: ActorSystem, orders: int) -> None:
    for order in range(orders):
        await system.result(f"order-{order}", timeout_s=300)


def prompts_of(records: list[Record]) -> list[int]:
    said = [m.text for r in records if isinstance(r, Prompted) for m in r.messages]
    return [int(text.removeprefix("order ")) for text in said]


async def test_nothing_is_lost_done_twice_or_out_of_turn(tmp_path: Path) -> None:
    await soaked(Crew(tmp_path), random.Random(SEED))


async def soaked(crew: Crew, chance: random.Random) -> None:
    """All orders are sent, while the crew is harassed; then everything is looked at."""
    print(f"seed {SEED}")
    try:
        async with ActorSystem(crew.engine()) as system, anyio.create_task_group() as group:
            for _ in range(WORKERS):
                crew.start()
            group.start_soon(lambda: crew.harass(chance, workers=WORKERS, pause_s=crew.pause_s))
            await system.ref("relay/bad").tell("poison")
            await system.ref("relay/worse").tell("deadly")
            await send_all(system, crew, chance)
            await wait_for_all(system, crew.orders)
            with anyio.fail_after(120):
                while "bad" not in await dead_in(system.engine):
                    await anyio.sleep(0.2)
            group.cancel_scope.cancel()
        async with crew.engine() as engine:
            await check_all(crew, engine)
    finally:
        crew.close()
    assert crew.did["SIGKILL"] > 0


async def dead_in(engine: Engine | None) -> set[str]:
    """The keys of those whose letters are dead."""
    assert engine is not None
    return {one.letter.to.key for one in await engine.dead()}


async def check_all(crew: Crew, engine: Engine) -> None:
    statuses, twice = Counter[str](), list[str]()
    lines = defaultdict[tuple[str, str], list[str]](list)
    for name, order, key in crew.noted():
        lines[name, order].append(key)
    for clerk in range(CLERKS):
        records = list(await engine.records(Address("clerk", str(clerk))))
        assert prompts_of(records) == list(range(clerk, crew.orders, CLERKS))
        state = fold(records)
        assert pairing_faults(state.messages) == []
        for message in state.messages:
            if isinstance(message, ToolResultMessage):
                statuses[message.status] += 1
                check(message, lines, twice)
    dead = await dead_in(engine)
    print(f"orders {crew.orders}, {dict(crew.did)}, results {dict(statuses)}, dead {dead}")
    assert twice == []
    assert sum(statuses.values()) == 2 * crew.orders
    assert set(statuses) <= {"ok", "unknown_outcome"}
    assert "bad" in dead


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
