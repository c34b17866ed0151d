"""The store that all processes of a case share: a MemoryEngine whose every step is checked."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from callboard.actors.engine import Commit, Letter
from callboard.actors.memory_engine import MemoryEngine
from tests.simulation.books import Books

LEASE_S = 10.0
EPOCH = 1_800_000_000.0  # of the virtual clock


class Store(MemoryEngine):
    """Tells the books what is kept."""

    def __init__(self, books: Books) -> None:
        super().__init__(lease_s=LEASE_S)
        self._books = books

    def now(self) -> float:
        return EPOCH + anyio.current_time()

    def _put(self, letters: Sequence[Letter]) -> None:
        super()._put(letters)
        self._books.sent(letters)

    def commit_now(self, commit: Commit) -> None:
        before = [letter for _, letter in self.stored(commit.address).inbox]
        super().commit_now(commit)
        self._books.committed(commit, [one for one in before if one.id in commit.done])

    def left(self) -> list[str]:
        """What has not come to its end."""
        found: list[str] = []
        for address, stored in self._addresses.items():
            found += [f"{letter.id} to {address}" for _, letter in stored.inbox]
            if stored.standing != "idle":
                found.append(f"{address} is {stored.standing}")
        return found
