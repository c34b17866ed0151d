"""`ActorSystem(concurrency=)`: how many letters from outside are handled at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.memory_engine import MemoryEngine
from callboard.actors.system import ActorSystem
from callboard.errors import AskTimeout, ConfigurationError

pytestmark = pytest.mark.anyio
Systems = Callable[[int], ActorSystem]


class Slow(Actor):
    """Takes a second for each letter; notes how many do at a time."""

    now = most = 0

    async def receive(self, letter: Envelope) -> Any:
        Slow.now += 1
        Slow.most = max(Slow.most, Slow.now)
        try:
            await anyio.sleep(1)
        finally:
            Slow.now -= 1
        return letter.payload


class Asking(Actor):
    """Asks a slow one."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system

    async def receive(self, letter: Envelope) -> Any:
        return await self._system.ref("slow/below").ask(letter.payload)


@pytest.fixture(params=["none", "memory"])
def made(request: pytest.FixtureRequest) -> Systems:
    def system(concurrency: int) -> ActorSystem:
        engine = MemoryEngine() if request.param == "memory" else None
        system = ActorSystem(engine, concurrency=concurrency)
        system.register("slow", lambda seat: Slow())
        system.register("asking", lambda seat: Asking(system))
        return system

    Slow.now = Slow.most = 0
    return system


@pytest.mark.parametrize("concurrency", [1, 2])
async def test_no_more_letters_are_handled_at_once(made: Systems, concurrency: int) -> None:
    async with made(concurrency) as system, anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(system.ref(f"slow/{number}").ask, number)
    assert Slow.most == concurrency


async def test_who_is_asked_by_one_that_is_handled_needs_no_slot(made: Systems) -> None:
    async with made(1) as system:
        assert await system.ref("asking/a").ask("x", timeout_s=5) == "x"


async def test_who_waits_in_vain_is_told(made: Systems) -> None:
    async with made(1) as system:
        await system.ref("slow/a").tell("x")
        await anyio.sleep(0.1)
        with pytest.raises(AskTimeout):
            await system.ref("slow/b").ask("y", timeout_s=0.5)
        assert await system.ref("slow/b").ask("z", timeout_s=5) == "z"


async def test_who_waits_for_a_slot_is_handled_before_the_block_is_left(made: Systems) -> None:
    async with made(1) as system:
        for number in range(3):
            await system.ref(f"slow/{number}").tell(number)
    assert (Slow.most, system.late) == (1, ())


def test_no_slot_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="concurrency=0"):
        ActorSystem(concurrency=0)
