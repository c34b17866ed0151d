"""A content-addressed store for what is too large for a record; the record keeps the digest.

Agents put into it (`keeping.py`), and the adapters of providers get from it.
"""

from __future__ import annotations

import os
import re
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import anyio.to_thread

from callboard.errors import BlobLost, CommitFailed, ConfigurationError

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_PRIVATE = 0o700  # of folders; files get 0o600


class Blobs(Protocol):
    """Where an agent keeps large data. The same data has the same digest everywhere."""

    async def put(self, data: bytes) -> str:
        """Keep the data and return its digest, `digest_of(data)`, once it is safely kept.

        Raises:
            CommitFailed: it could not be kept.
        """
        ...

    async def get(self, digest: str) -> bytes:
        """The data of this digest.

        Raises:
            BlobLost: it is not here, or it is not what was put.
        """
        ...


def digest_of(data: bytes) -> str:
    """`sha256:` and 64 hexadecimal digits."""
    return f"sha256:{sha256(data).hexdigest()}"


class InMemoryBlobs:
    """Blobs that live as long as the process."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        digest = digest_of(data)
        self._kept[digest] = bytes(data)
        return digest

    async def get(self, digest: str) -> bytes:
        _hex_of(digest)
        if digest not in self._kept:
            raise BlobLost(f"there is no blob {digest} in this memory")
        return self._kept[digest]

    def __len__(self) -> int:
        return len(self._kept)


class FileBlobs:
    """Blobs as files below a folder, which is made when it is first needed.

    A file appears whole or not at all, and is on the disk when `put` returns. Files are for their
    owner only. Several agents and processes may share a folder; nothing is ever removed from it.

    Raises:
        ConfigurationError: `folder` is something else than a folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        if self._folder.exists() and not self._folder.is_dir():
            raise ConfigurationError(f"FileBlobs needs a folder, which {str(folder)!r} is not")

    def __repr__(self) -> str:
        return f"FileBlobs({str(self._folder)!r})"

    async def put(self, data: bytes) -> str:
        """As `Blobs.put`. A damaged file of the same digest is replaced."""
        return await anyio.to_thread.run_sync(self._put, data)

    async def get(self, digest: str) -> bytes:
        """As `Blobs.get`.

        Raises:
            ConfigurationError: this is no digest.
        """
        return await anyio.to_thread.run_sync(self._get, digest)

    def _path(self, digest: str) -> Path:
        name = _hex_of(digest)
        return self._folder / name[:2] / name[2:4] / name

    def _put(self, data: bytes) -> str:
        digest = digest_of(data)
        path = self._path(digest)
        try:
            if not path.exists() or digest_of(path.read_bytes()) != digest:
                self._write(path, data)
        except OSError as error:
            raise CommitFailed(f"a blob could not be kept in {self!r}: {error}") from error
        return digest

    def _write(self, path: Path, data: bytes) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self._folder, path.parent.parent, path.parent):
            _make(folder)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, prefix=".unfinished-")
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
        _sync(path.parent)

    def _get(self, digest: str) -> bytes:
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BlobLost(f"the blob {digest} cannot be read in {self!r}: {error}") from error
        if digest_of(data) != digest:
            raise BlobLost(f"the blob {digest} is damaged; remove {str(path)!r} or restore it")
        return data


def _hex_of(digest: str) -> str:
    """The digits of a digest: nothing else ever becomes a path."""
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ConfigurationError(
            f"{digest!r:.100} is no digest of a blob: sha256: and 64 hexadecimal digits"
        )
    return found[1]


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=_PRIVATE)
    except FileExistsError:
        return
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder outlive a power loss, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
