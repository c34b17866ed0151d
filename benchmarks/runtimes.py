"""The bus against two other libraries, in one run, interleaved: each number the best of all rounds.

    pip install -e .[benchmarks]
    python -m benchmarks.runtimes [--rounds 5]

pykka runs an actor in a thread, which is asked one question after the other. autogen-core runs its
agents in one event loop: 1,000 of them are asked at once, and get one published message.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from dataclasses import dataclass
from typing import Any

import pykka
from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
)

from benchmarks.actors import Echo
from callboard.actors.system import ActorSystem

ASKS = 5_000
MANY = 1_000


@dataclass
class Note:
    """What is sent: autogen-core sends dataclasses."""

    number: int


class PykkaEcho(pykka.ThreadingActor):
    """Answers with what it gets."""

    def on_receive(self, message: Any) -> Any:
        return message


class AutogenEcho(RoutedAgent):
    """Answers with what it gets."""

    def __init__(self) -> None:
        super().__init__("echo")

    @message_handler
    async def answer(self, message: Note, ctx: MessageContext) -> Note:
        return message


def pykka_asks() -> float:
    """Asks a second, one after the other."""
    ref = PykkaEcho.start()
    begun = time.perf_counter()
    for number in range(ASKS):
        assert ref.ask(number) == number
    spent = time.perf_counter() - begun
    ref.stop()
    return ASKS / spent


async def our_asks() -> float:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
        begun = time.perf_counter()
        for number in range(ASKS):
            assert await ref.ask(number) == number
        return ASKS / (time.perf_counter() - begun)


async def autogen_fan_out() -> tuple[float, float]:
    """Answers a second of 1,000 agents that are asked at once; deliveries of what is published."""
    runtime = SingleThreadedAgentRuntime()
    for number in range(MANY):
        await AutogenEcho.register(runtime, f"echo{number}", AutogenEcho)
        await runtime.add_subscription(TypeSubscription("all", f"echo{number}"))
    runtime.start()
    ids = [AgentId(f"echo{number}", "a") for number in range(MANY)]
    for _ in range(2):  # the first round makes the agents
        begun = time.perf_counter()
        answers = await asyncio.gather(*[runtime.send_message(Note(1), id) for id in ids])
        asked = MANY / (time.perf_counter() - begun)
    assert len(answers) == MANY
    begun = time.perf_counter()
    await runtime.publish_message(Note(1), TopicId("all", "a"))
    await runtime.stop_when_idle()
    return asked, MANY / (time.perf_counter() - begun)


async def our_fan_out() -> tuple[float, float]:
    made = [Echo() for _ in range(MANY)]
    async with ActorSystem() as system:
        refs = [await system.spawn(one) for one in made]
        for ref in refs:
            await system.subscribe("all", ref)
        for _ in range(2):
            begun = time.perf_counter()
            answers = await asyncio.gather(*[ref.ask(Note(1)) for ref in refs])
            asked = MANY / (time.perf_counter() - begun)
        assert len(answers) == MANY
        begun = time.perf_counter()
        await system.publish("all", Note(1))
        await system.settled()
        told = MANY / (time.perf_counter() - begun)
    assert {one.seen for one in made} == {3}
    return asked, told


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the bus against pykka, autogen-core.")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    logging.disable(logging.CRITICAL)  # autogen-core logs each message where it is not told not to
    best: dict[str, list[float]] = {"ask": [0, 0], "ask 1,000": [0, 0], "publish": [0, 0]}
    for _ in range(rounds):
        theirs = (pykka_asks(), *asyncio.run(autogen_fan_out()))
        ours = (asyncio.run(our_asks()), *asyncio.run(our_fan_out()))
        for kept, own, other in zip(best.values(), ours, theirs, strict=True):
            kept[:] = max(kept[0], own), max(kept[1], other)
    for (what, (own, other)), name in zip(
        best.items(), ("pykka", *["autogen-core"] * 2), strict=True
    ):
        print(f"{what:10} {own:10,.0f}/s   {name:12} {other:10,.0f}/s   {own / other:6.1f} times")


if __name__ == "__main__":
    main()
