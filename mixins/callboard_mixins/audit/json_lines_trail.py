"""An audit as a file of JSON lines, with its head in a small file beside it."""

from __future__ import annotations

import json
import mmap
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from callboard.errors import CommitFailed, ConfigurationError
from callboard.json_text import Json
from callboard_mixins.audit.chain import (
    NOTHING,
    TRAIL,
    Link,
    Signs,
    head_text,
    read_entry,
    read_head,
)
from callboard_mixins.audit.trail import Chained, Clock, Sync, utc_now

if sys.platform != "win32":
    import fcntl

HEAD = ".head"  # the name of the head is the trail's with this behind


class JsonLinesTrail(Chained):
    """Appends entries to a file, which is made (for its owner only) unless it is there.

    A new process goes on where the last one ended. A line that a crash tore is left as it is, and
    an entry behind it says so. The file waits for other writers (not on Windows, where one process
    writes it), which takes microseconds.

    Raises:
        ConfigurationError: the file cannot be written, is no audit, or ends before its head says.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: Signs | None = None,
        sync: Sync = "effects",
        clock: Clock = utc_now,
    ) -> None:
        super().__init__(key=key, sync=sync, clock=clock)
        self._path = Path(path)
        self._size: int = 0  # of the file, as far as it is known
        self._head = NOTHING
        self._agents: dict[str, Link] = {}
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            self._file = os.open(self._path, flags, 0o600)
            self._head_file = os.open(f"{self._path}{HEAD}", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigurationError(f"{self._path} cannot be written: {error.strerror}") from error
        with self._turn, _Locked(self._file):
            self._catch_up()
            self._check_head()

    def close(self) -> None:
        """Close the files. Nothing can be written after it."""
        with self._turn:
            for handle in (self._file, self._head_file):
                with suppress(OSError):
                    os.close(handle)
            self._file = self._head_file = -1

    def _append(self, agent: str, body: Mapping[str, Json], *, durable: bool) -> str:
        try:
            with _Locked(self._file):
                self._catch_up()
                text = self._add(agent, body)
                if durable:
                    os.fsync(self._file)
        except OSError as error:
            raise CommitFailed(f"the audit could not be written: {self._path}: {error}") from error
        return text

    def _add(self, agent: str, body: Mapping[str, Json], *, before: bytes = b"") -> str:
        previous = self._agents.get(agent) or self._last_of(agent)
        text, head, mine = self._entry(agent, body, self._head, previous)
        self._write(before + text.encode() + b"\n")
        self._head, self._agents[agent] = head, mine
        os.pwrite(self._head_file, head_text(head, self._key).encode() + b"\n", 0)
        return text

    def _write(self, data: bytes) -> None:
        """All of it or nothing, where the disk is full."""
        written = os.write(self._file, data)
        if written != len(data):
            os.ftruncate(self._file, self._size)
            raise OSError(f"the disk took {written} of {len(data)} bytes")
        self._size += len(data)

    # -- what stands there already ---------------------------------------------------------------

    def _catch_up(self) -> None:
        """Look at the end of the file again where somebody else has written."""
        size = os.fstat(self._file).st_size
        if size == self._size:
            return
        self._agents.clear()
        last, torn = self._end(size)
        self._size = size
        if torn and read_entry(_text(torn)) is not None:  # all of it came but the end of the line
            self._write(b"\n")
            last, torn = torn, b""
        entry = read_entry(_text(last)) if last else None
        if last and entry is None:
            raise ConfigurationError(
                f"{self._path}: the last line is no entry of an audit; look: callboard audit verify"
            )
        self._head = NOTHING if entry is None else Link(entry["entry"], entry["hash"])
        if torn:
            facts = {"size_bytes": len(torn), "sha256": sha256(torn).hexdigest()}
            self._add(TRAIL, {"kind": "torn", "facts": facts}, before=b"\n")

    def _end(self, size: int) -> tuple[bytes, bytes]:
        """The last whole line, and what stands behind it."""
        with mmap.mmap(self._file, size, access=mmap.ACCESS_READ) as data:
            whole = data.rfind(b"\n") + 1
            begun = data.rfind(b"\n", 0, max(whole - 1, 0)) + 1
            return bytes(data[begun : max(whole - 1, 0)]), bytes(data[whole:])

    def _check_head(self) -> None:
        text = os.pread(self._head_file, 4096, 0).decode(errors="replace").split("\n")[0]
        if not text:
            if self._head != NOTHING:
                self._add(TRAIL, {"kind": "head_lost", "facts": {}})
            return
        head, _ = read_head(text)
        if head.number > self._head.number or (
            head.number == self._head.number and head.hash != self._head.hash
        ):
            raise ConfigurationError(
                f"{self._path} ends with entry {self._head.number}, and its head says"
                f" {head.number}: it was cut or changed. Look: callboard audit verify; then go on"
                " with a new file"
            )

    def _last_of(self, agent: str) -> Link | None:
        """The agent's last entry, looked for from the end."""
        if not self._size:
            return None
        mark = f'"agent":{json.dumps(agent, ensure_ascii=False)}'.encode()
        with mmap.mmap(self._file, self._size, access=mmap.ACCESS_READ) as data:
            at = data.rfind(mark)
            while at >= 0:
                begun, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                entry = read_entry(_text(bytes(data[begun:end])))
                if entry is not None and entry["agent"] == agent:
                    return Link(entry["n"], entry["hash"])
                at = data.rfind(mark, 0, begun)
        return None


class _Locked:
    """The file kept from other writers; a generator would take 1 us more an entry."""

    __slots__ = ("_file",)

    def __init__(self, file: int) -> None:
        self._file = file

    def __enter__(self) -> None:
        if self._file < 0:
            raise OSError("this trail is closed")
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
