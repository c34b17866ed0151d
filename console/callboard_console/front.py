"""What a chat talks through: a terminal with an editor, or lines from a pipe."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import anyio
from rich.console import Console

from callboard_console.trace import Screen

CHUNK_BYTES = 65_536


class Front(Protocol):
    """Lines come in, the trace goes out. `is_live`: lines come while the agent works.

    What is printed on `aside` does not break the line that is being written on `console`.
    """

    is_live: bool

    @property
    def console(self) -> Console: ...
    @property
    def aside(self) -> Console: ...

    async def edit(self, interrupt: Callable[[], None]) -> None:
        """Let the user type until `close`. The key Ctrl-C calls `interrupt`."""
        ...

    def lines(self) -> AsyncIterator[str]:
        """The lines of the user, until there are no more."""
        ...

    def wait(self, what: str | None) -> None:
        """What the agent is about, or None for nothing."""
        ...

    def remember(self, said: Sequence[str]) -> None:
        """What the user said before, for the arrow keys."""
        ...

    def close(self) -> None:
        """No more lines are wanted."""
        ...


class PipeFront:
    """Reads standard input where it is no terminal. A line waits until the one before it is
    answered. Reads in no thread, which could not be stopped.
    """

    is_live = False

    def __init__(self) -> None:
        self.console = Screen()
        self.aside = self.console
        self._reading = anyio.CancelScope()

    async def edit(self, interrupt: Callable[[], None]) -> None:
        """Nothing: a pipe has no keys."""

    async def lines(self) -> AsyncIterator[str]:
        decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        rest = ""
        while chunk := await self._chunk():
            *whole, rest = (rest + decode(chunk)).split("\n")
            for line in whole:
                yield line.rstrip("\r")
        if last := rest + decode(b"", final=True):
            yield last

    async def _chunk(self) -> bytes:
        """The next bytes; none at the end, and none once it is closed."""
        fd = sys.stdin.fileno()
        with self._reading:
            try:
                await anyio.wait_readable(fd)
            except PermissionError:  # a file, which is readable always
                await anyio.lowlevel.checkpoint()
            return os.read(fd, CHUNK_BYTES)
        return b""

    def wait(self, what: str | None) -> None:
        """Nothing: a pipe has no spinner."""

    def remember(self, said: Sequence[str]) -> None:
        """Nothing: a pipe has no arrow keys."""

    def close(self) -> None:
        self._reading.cancel()
