"""Which workers of a file are alive: each holds a lock that ends with its process.

A lease alone would let the addresses of a process that was killed rest until it runs out. The
locks are on files of their own, in the folder `FILE.nodes`; without locks (Windows) only the
lease counts.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from callboard.errors import CommitFailed

_NAME = re.compile(r"worker_[0-9a-z]+")  # nothing else becomes a path

if sys.platform == "win32":

    def lock(handle: int) -> bool:
        del handle
        return False

else:
    import fcntl

    def lock(handle: int) -> bool:
        """Whether the lock of an open file could be had at once."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Nodes:
    """The locks beside one engine's file."""

    def __init__(self, path: Path) -> None:
        self._folder = path.with_name(f"{path.name}.nodes")
        self._held: dict[str, int] = {}

    def hold(self, name: str) -> None:
        """Show that this worker lives, for as long as this process does.

        Raises:
            CommitFailed: its file could not be made.
        """
        if name in self._held:
            return
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(self._file(name), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            text = f"{self._file(name)} could not be made: {error.strerror}"
            raise CommitFailed(text) from error
        lock(handle)
        self._held[name] = handle

    def drop(self, name: str) -> None:
        """As if the process had ended: the others take over what is this worker's."""
        handle = self._held.pop(name, None)
        if handle is not None:
            os.close(handle)

    def let_go(self, name: str) -> None:
        handle = self._held.pop(name, None)
        if handle is not None:
            self._file(name).unlink(missing_ok=True)
            os.close(handle)

    def is_dead(self, name: str) -> bool:
        """Whether the process of this worker is known to have ended."""
        if name in self._held or not _NAME.fullmatch(name):
            return False
        try:
            handle = os.open(self._file(name), os.O_RDWR)
        except OSError:
            return False  # its file was taken away, or is not ours: its lease tells
        try:
            if not lock(handle):
                return False
            self._file(name).unlink(missing_ok=True)
            return True
        finally:
            os.close(handle)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.lock"
