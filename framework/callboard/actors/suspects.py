"""Letters that may be what ended a process are handled one at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

WAIT_S = 5.0


class Suspects:
    """Whose turn it is. Those beside the one that ends its process are not counted with it, and so
    are not buried for it.
    """

    def __init__(self) -> None:
        self._lock = anyio.Lock(fast_acquire=True)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """The time of one suspect. Who waits for long goes on all the same: the one that is handled
        may have asked it.
        """
        is_held = False
        with anyio.move_on_after(WAIT_S):
            await self._lock.acquire()
            is_held = True
        try:
            yield
        finally:
            if is_held:
                self._lock.release()
