"""Suppliers of steering and follow-ups, which may take their time and fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
from anyio.lowlevel import checkpoint

from callboard.hooks import Hooks
from tests.framework.histories.world import World


class SupplierFailed(RuntimeError):
    """What a supplier raises."""


class Supplies:
    """The hooks of one life. The world's books say what they gave, and to which life."""

    def __init__(self, world: World, is_dead: Callable[[], bool]) -> None:
        self._world = world
        self._is_dead = is_dead
        self._life = world.lives
        self._steering = list(world.history.supplies)
        self._further = list(world.history.further)

    def hooks(self) -> Hooks:
        return Hooks(
            steering_supplier=self._steer if self._steering else None,
            follow_up_supplier=self._follow_up if self._further else None,
        )

    def stop(self) -> None:
        """There is nothing more to come."""
        self._steering.clear()
        self._further.clear()

    async def _steer(self) -> Sequence[str]:
        await checkpoint()
        return self._given(self._steering, "supply")

    async def _follow_up(self) -> Sequence[str]:
        await anyio.sleep(0.25)
        return self._given(self._further, "more")

    def _given(self, counts: list[int], kind: str) -> Sequence[str]:
        count = counts.pop(0) if counts else 0
        if count < 0:
            raise SupplierFailed("nothing could be fetched")
        texts = [self._world.words(kind) for _ in range(count)]
        if not self._is_dead():
            self._world.supplied |= dict.fromkeys(texts, self._life)
        return texts
