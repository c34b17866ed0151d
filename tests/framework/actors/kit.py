"""Actors for the tests of the bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.envelope import Envelope
from callboard.actors.ref import Ref


class Echo(Actor):
    """Answers with what it gets, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def receive(self, letter: Envelope) -> Any:
        self.seen.append(letter.payload)
        return letter.payload


class Slow(Echo):
    """Takes a second for each letter; tells how many of them it ever had in hand at once."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self.seconds = seconds
        self.at_once = 0
        self.most_at_once = 0

    async def receive(self, letter: Envelope) -> Any:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await anyio.sleep(self.seconds)
        self.at_once -= 1
        return await super().receive(letter)


class Doing(Actor):
    """Does with each payload what it was given to do."""

    def __init__(self, do: Callable[[Any], Awaitable[Any]]) -> None:
        self.do = do

    async def receive(self, letter: Envelope) -> Any:
        return await self.do(letter.payload)


class Failing(Echo):
    """Raises on the payload "fail"."""

    async def receive(self, letter: Envelope) -> Any:
        if letter.payload == "fail":
            raise ValueError("this one failed")
        return await super().receive(letter)


def letter(payload: Any, to: str = "echo/a") -> Envelope:
    """A letter that nobody waits for."""
    return Envelope(Address.parse(to), payload)


async def asked_by(ref: Ref, payload: Any, answers: list[Any]) -> None:
    """Ask, and put the answer or the error into a list."""
    try:
        answers.append(await ref.ask(payload))
    except Exception as error:  # whatever it is, the test looks at it
        answers.append(error)
