"""What an actor is to the bus: something that receives letters, one at a time."""

from __future__ import annotations

from typing import Any, ClassVar

from callboard.actors.envelope import Envelope


class Actor:
    """The base of actors. Override `receive`; the hooks may be left alone.

    One letter at a time: `receive` is never entered twice at once, so an actor needs no locks.

    `ends_with_asker`: a handler is cancelled when the one who asked gives up (agents: a run that
    nobody waits for costs money). A `tell` is never cancelled so.
    """

    ends_with_asker: ClassVar[bool] = False

    async def receive(self, letter: Envelope) -> Any:
        """Handle `letter.payload`; what is returned answers an `ask`.

        Contract: what it raises goes to the one who asked, and the actor goes on. Where nobody
        asked, its supervision decides. Runs in the actor's own task; cancelled only when the
        system ends before it has finished.
        """
        raise NotImplementedError(f"{type(self).__name__} has no receive")

    @property
    def is_busy(self) -> bool:
        """Whether it works outside `receive`, so that it may not be put away now."""
        return False

    async def started(self) -> None:
        """Before the first letter, in the actor's task. Contract: if it raises, so does `spawn`."""

    async def stopping(self) -> None:
        """After the last letter, in the actor's task; not after a failure. May raise: the error
        is that of the system."""

    async def failed(self, error: Exception) -> None:
        """After `receive` raised on a letter that nobody waits for, before supervision acts."""
