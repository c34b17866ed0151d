"""What the bus costs over a bare asyncio.Queue: ratios, measured in one run, interleaved.

    python -m benchmarks.actors [--rounds 7]

`ask` and `tell` count the seconds of the processor, as machines share their time; memory is what
tracemalloc sees, and an actor that is idle for some seconds needs no task. Each number is the best
of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
import tracemalloc
from typing import Any

from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.roster import DOZE_S
from callboard.actors.rules import ActorRules
from callboard.actors.system import ActorSystem

LETTERS = 10_000
MANY = 1_000
BATCH = 10_000
ROUNDS_TO_ALL = 10


class Echo(Actor):
    """Answers with what it gets."""

    seen = 0

    async def receive(self, letter: Envelope) -> Any:
        self.seen += 1
        return letter.payload


class Bare:
    """An actor by hand: a task, a bounded queue, a future for each question."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[Any, asyncio.Future[Any] | None]] = asyncio.Queue(1_000)
        self.seen = 0

    async def loop(self) -> None:
        while True:
            payload, future = await self.queue.get()
            self.seen += 1
            if future is not None:
                future.set_result(payload)

    async def ask(self, payload: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((payload, future))
        return await future


async def bare(actors: int) -> tuple[float, float, float]:
    """Asks to one a second, and tells to all a second: with `await put`, and with `put_nowait`."""
    made = [Bare() for _ in range(actors)]
    tasks = [asyncio.create_task(one.loop()) for one in made]
    begun = time.process_time()
    for number in range(LETTERS):
        assert await made[0].ask(number) == number
    asked = LETTERS / (time.process_time() - begun)
    for one in made:
        one.seen = 0
    begun = time.process_time()
    for number in range(ROUNDS_TO_ALL):
        for one in made:
            await one.queue.put((number, None))
    waiting = await told(made, begun)
    begun = time.process_time()
    for number in range(ROUNDS_TO_ALL):
        for one in made:
            one.queue.put_nowait((number, None))
    at_once = await told(made, begun)
    for task in tasks:
        task.cancel()
    return asked, waiting, at_once


async def told(made: list[Bare], begun: float) -> float:
    """Letters a second, once all of a round have come."""
    while made[-1].seen < ROUNDS_TO_ALL:  # noqa: ASYNC110  # the actors have no way to tell
        await asyncio.sleep(0)
    made[-1].seen = 0
    return ROUNDS_TO_ALL * len(made) / (time.process_time() - begun)


async def ours(actors: int) -> tuple[float, float]:
    """Asks and tells of an ActorSystem."""
    made = [Echo() for _ in range(actors)]
    async with ActorSystem() as system:
        refs = [await system.spawn(one) for one in made]
        begun = time.process_time()
        for number in range(LETTERS):
            assert await refs[0].ask(number) == number
        asked = LETTERS / (time.process_time() - begun)
        begun = time.process_time()
        for number in range(ROUNDS_TO_ALL):
            for ref in refs:
                await ref.tell(number)
        await system.settled()
        told = ROUNDS_TO_ALL * actors / (time.process_time() - begun)
    assert made[-1].seen >= ROUNDS_TO_ALL
    return asked, told


async def at_rest(actors: int) -> tuple[float, float]:
    """MB of so many active actors with a task each, and of the same once they doze."""
    async with ActorSystem() as system:
        system.register("echo", lambda seat: Echo())
        gc.collect()
        tracemalloc.start()
        empty, _ = tracemalloc.get_traced_memory()
        await tell_all(system, range(actors))
        working, _ = tracemalloc.get_traced_memory()
        await asyncio.sleep(3 * DOZE_S)
        gc.collect()
        dozing, _ = tracemalloc.get_traced_memory()
        assert len(system.active) == actors
        tracemalloc.stop()
    return (working - empty) / 1e6, (dozing - empty) / 1e6


async def put_away(actors: int) -> float:
    """MB of so many actors that were put away, 10,000 of which were active at a time."""
    async with ActorSystem() as system:
        system.register("echo", lambda seat: Echo(), ActorRules(idle_s=0.2))
        await tell_all(system, range(BATCH))  # so that tables have their size
        await emptied(system)
        gc.collect()
        tracemalloc.start()
        for begin in range(0, actors, BATCH):
            await tell_all(system, range(begin, begin + BATCH))
            await emptied(system)
        gc.collect()
        away, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return away / 1e6


async def tell_all(system: ActorSystem, numbers: range) -> None:
    for number in numbers:
        await system.ref(f"echo/{number}").tell(number)
    await system.settled()


async def emptied(system: ActorSystem) -> None:
    while system.active:  # noqa: ASYNC110  # nobody tells
        await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the bus against an asyncio.Queue.")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    own, hand = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    for _ in range(rounds):
        asked, (_, tells) = asyncio.run(ours(1))[0], asyncio.run(ours(MANY))
        own = [max(pair) for pair in zip(own, (asked, tells, tells), strict=True)]
        by_hand = (asyncio.run(bare(1))[0], *asyncio.run(bare(MANY))[1:])
        hand = [max(pair) for pair in zip(hand, by_hand, strict=True)]
    for what, mine, other in zip(("ask", "tell", "  put_nowait"), own, hand, strict=True):
        print(f"{what:12} {mine:10,.0f}/s   by hand {other:10,.0f}/s   {mine / other:5.0%}")
    working, dozing = asyncio.run(at_rest(BATCH))
    print(f"10,000 active actors {dozing:6.1f} MB   with a task each {working:6.1f} MB")
    print(f"100,000 put away {asyncio.run(put_away(10 * BATCH)):10.2f} MB")


if __name__ == "__main__":
    main()
