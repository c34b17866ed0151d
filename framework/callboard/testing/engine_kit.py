"""What the cases of `check_engine` are made of."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Engine, Letter, Worker
from callboard.journaling.records import LayerFact, Record

Open = Callable[[], Engine]
A = Address("kind", "a")
B = Address("kind", "b")


@dataclass(frozen=True, slots=True)
class Store:
    """One store, and how to open it."""

    open: Open
    lease_s: float
    pause: Callable[[Any], None] | None


Case = Callable[[Store], Awaitable[None]]


@dataclass(slots=True)
class Share:
    """A worker, and what it was told that it lost."""

    worker: Worker
    lost: list[Callable[[Address], bool]] = field(default_factory=list[Callable[[Address], bool]])

    def has_lost(self, address: Address) -> bool:
        return any([is_lost(address) for is_lost in self.lost])

    async def letters(self, count: int) -> list[Letter]:
        """The next so many letters, as they are handed out.

        Raises:
            TimeoutError: there are fewer.
        """
        found: list[Letter] = []
        with anyio.fail_after(20):
            while len(found) < count:
                found += await self.worker.next()
        return found

    async def silent(self, for_s: float) -> bool:
        """Whether nothing is handed out for so long."""
        with anyio.move_on_after(for_s):
            return not await self.worker.next()
        return True


@asynccontextmanager
async def working(engine: Engine, *kinds: str) -> AsyncGenerator[Share, None]:
    """Take part for these kinds ("kind" if none is named)."""
    lost: list[Callable[[Address], bool]] = []
    async with engine.worker(kinds or ("kind",), on_lost=lost.append) as worker:
        yield Share(worker, lost)


async def until(holds: Callable[[], bool], *, within_s: float) -> None:
    """Wait until something holds.

    Raises:
        TimeoutError: it did not in time.
    """
    with anyio.fail_after(within_s):
        while not holds():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.05)


def letter(id: str, to: Address = A, **more: Any) -> Letter:
    return Letter(id, to, more.pop("body", {"value": id}), **more)


def fact(number: int) -> Record:
    return LayerFact("kit", {"number": number})


def ids(letters: Sequence[Letter]) -> list[str]:
    return [one.id for one in letters]


def same(found: object, wanted: object, what: str) -> None:
    """Two things that must be equal.

    Raises:
        AssertionError: with both of them.
    """
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r:.300}, and it should be {wanted!r:.300}")
