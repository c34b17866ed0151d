"""Server-sent events (WHATWG HTML, 9.2.6): from the bytes of an answer to the data of its events.

Used by the adapters. The SDK has a reader too; under trio it leaves generators behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")  # a "\r" at the end may be half of "\r\n"


class ServerEvents:
    """Feed it bytes in any split. Comments, ids and event names are left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        """The data of each event that is complete now."""
        *lines, self._rest = _LINE_END.split(self._rest + piece)
        for line in lines:
            if not line:
                yield from self.flush()
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))

    def flush(self) -> Iterator[str]:
        """At the end of the bytes: an event whose empty line is missing. A cut line is dropped."""
        if self._data:
            data, self._data = b"\n".join(self._data), []
            yield data.decode(errors="replace")
