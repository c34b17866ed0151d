"""How many letters of a system are open, for those who wait until none is."""

from __future__ import annotations

from anyio import CapacityLimiter

from callboard.actors.waiting import Answer


class Traffic:
    """How many letters of a system are unread or being handled, and who waits for none.

    `slots` bounds how many letters from outside are handled at once, None if nothing does.
    """

    __slots__ = ("_waiting", "open", "slots")

    def __init__(self) -> None:
        self.open = 0
        self.slots: CapacityLimiter | None = None
        self._waiting: list[Answer] = []

    def done(self, count: int = 1) -> None:
        """So many are handled, or dead."""
        self.open -= count
        if not self.open:
            self.rest()

    def rest(self) -> None:
        """Nothing is open: wake those who wait for that."""
        while self._waiting:
            self._waiting.pop().set()

    async def settled(self) -> None:
        """Wait until no letter is open."""
        while self.open:
            answer = Answer()
            self._waiting.append(answer)
            await answer.wait()
