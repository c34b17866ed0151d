"""Paths below one folder: the single resolver that file tools and guards share.

Every step is opened relative to the handle of the folder before it and follows no link by itself,
so that nothing can be swapped between the check and the use. Needs Linux or macOS. (What moves an
open folder out of the root while it is used is itself able to write there.)
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from callboard.errors import ConfigurationError
from callboard.replacing import append_to_file, create_file, replace_file, state_of

MOST_LINKS = 40  # on one path, as the Linux kernel has it
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


class OutsideWorkspace(ConfigurationError):
    """A path leads out of the workspace, by `..`, by a link or by itself."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in a folder. `size_bytes` is None for anything but a file."""

    name: str
    kind: str  # "file", "folder", "link" or "other"
    size_bytes: int | None = None


class _Asked(str):
    """A path as the caller gave it, in an error: nothing has to be said in its place."""

    __slots__ = ()


class _Trail:
    """The open folders on the way to a path. `name` is what the last of them holds, or "."."""

    def __init__(self, root: Path) -> None:
        self.handles = [os.open(root, _FOLDER)]
        self.names: list[str] = []
        self.name = "."

    @property
    def handle(self) -> int:
        return self.handles[-1]

    def enter(self, name: str, *, make: bool = False) -> None:
        try:
            handle = os.open(name, _FOLDER, dir_fd=self.handle)
        except FileNotFoundError:
            if not make:
                raise
            with suppress(FileExistsError):  # somebody else was faster
                os.mkdir(name, dir_fd=self.handle)
            handle = os.open(name, _FOLDER, dir_fd=self.handle)
        self.handles.append(handle)
        self.names.append(name)

    def leave(self) -> None:
        os.close(self.handles.pop())
        self.names.pop()

    def restart(self) -> None:
        while self.names:
            self.leave()

    def close(self) -> None:
        while self.handles:
            os.close(self.handles.pop())


class Workspace:
    """A folder and what is below it. Paths are text, relative to it or absolute and below it.

    Links are followed as long as they stay inside. Raises OutsideWorkspace where a path leads
    out, and the OSError of the system otherwise, its file name relative to the root.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).expanduser().resolve()
        if not self.root.is_dir():
            raise ConfigurationError(f"{str(root)!r} is not a folder: make it, or name another")
        if os.open not in os.supports_dir_fd:
            raise ConfigurationError("a workspace needs folder handles, which this system lacks")

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    def locate(self, path: str) -> Path:
        """Where a path really leads: absolute, without links. Its last part need not exist."""
        with self._trail(path) as trail:
            return self.root.joinpath(*trail.names, trail.name)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading; pipes, devices and folders are refused."""
        with self._trail(path) as trail:
            handle = os.open(trail.name, _FILE, dir_fd=trail.handle)
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return os.fdopen(handle, "rb")
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder", path)
        raise OSError(errno.EINVAL, "is not a regular file", path)

    def entries(self, path: str = ".") -> list[Entry]:
        """What stands in a folder, by name."""
        with self._folder(path) as handle, os.scandir(handle) as found:
            return sorted(map(_entry, found), key=lambda entry: entry.name)

    def walk(
        self,
        path: str = ".",
        *,
        skip: frozenset[str] = frozenset(),
        ignores: Callable[[str, bool], bool] = lambda path, is_folder: False,
    ) -> Iterator[str]:
        """The files below a folder, relative to the root, in order; no link is followed.

        `skip` names folders that are not entered; `ignores` is asked about each path, and whether
        that is a folder.
        """
        above = self.locate(path).relative_to(self.root)
        with self._folder(path) as handle:
            for folder, folders, files, _ in os.fwalk(".", dir_fd=handle):
                here = above / folder
                names = sorted(set(folders) - skip)
                folders[:] = [name for name in names if not ignores(str(here / name), True)]
                paths = [str(here / name) for name in sorted(files)]
                yield from [each for each in paths if not ignores(each, False)]

    def write(self, path: str, content: bytes, *, instead_of: os.stat_result | None = None) -> None:
        """Make a file, or replace it whole; missing folders are made, permissions kept.

        Whoever reads meanwhile, or after a crash, sees the old content or the new. With
        `instead_of` (an `os.fstat` of the file that was read) it is refused with an OSError if
        the file was changed since.
        """
        with self._trail(path, make=True) as trail:
            replace_file(trail.handle, trail.name, content, instead_of=instead_of)

    def create(self, path: str, content: bytes) -> None:
        """Make a file that must not be there yet; missing folders are made."""
        with self._trail(path, make=True) as trail:
            create_file(trail.handle, trail.name, content)

    def append(self, path: str, content: bytes) -> None:
        """Write at the end of a file; it and missing folders are made."""
        with self._trail(path, make=True) as trail:
            append_to_file(trail.handle, trail.name, content)

    def make_folder(self, path: str) -> None:
        """Make a folder and those above it, unless they are there."""
        with self._trail(path, make=True) as trail:
            if trail.name != ".":
                trail.enter(trail.name, make=True)

    def delete(self, path: str) -> None:
        """Delete a file, a link (not what it points at) or an empty folder."""
        with self._trail(path, follow_last=False) as trail:
            found = os.stat(trail.name, dir_fd=trail.handle, follow_symlinks=False)
            remove = os.rmdir if stat.S_ISDIR(found.st_mode) else os.unlink
            remove(trail.name, dir_fd=trail.handle)

    def move(self, path: str, new_path: str) -> None:
        """Give a file, a link or a folder another place; missing folders are made.

        Raises:
            FileExistsError: something is there already.
        """
        with self._trail(path, follow_last=False) as here:
            os.stat(here.name, dir_fd=here.handle, follow_symlinks=False)
            with self._trail(new_path, make=True, follow_last=False) as there:
                if state_of(there.handle, there.name) is not None:
                    raise FileExistsError(errno.EEXIST, "is there already", new_path)
                os.rename(here.name, there.name, src_dir_fd=here.handle, dst_dir_fd=there.handle)

    @contextmanager
    def _folder(self, path: str) -> Generator[int]:
        with self._trail(path) as trail:
            handle = os.open(trail.name, _FOLDER, dir_fd=trail.handle)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _trail(
        self, path: str, *, make: bool = False, follow_last: bool = True
    ) -> Generator[_Trail]:
        trail = _Trail(self.root)
        try:
            self._follow(trail, path, make=make, follow_last=follow_last)
            yield trail
        except OSError as error:
            asked = error.filename if isinstance(error.filename, _Asked) else _Asked(path)
            raise type(error)(error.errno, error.strerror, asked) from None
        finally:
            trail.close()

    def _follow(self, trail: _Trail, path: str, *, make: bool, follow_last: bool) -> None:
        """Open one folder after the other until only the last name is left."""
        pending = deque(self._parts(path))
        links = 0
        while pending:
            name = pending.popleft()
            if name == "..":
                if not trail.names:
                    raise self._outside(path)
                trail.leave()
                continue
            is_followed = pending or follow_last
            target = _link_target(trail.handle, name) if is_followed else None
            if target is not None:
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                pending.extendleft(reversed(self._parts(target, asked=path)))
                if target.startswith("/"):
                    trail.restart()
            elif pending:
                trail.enter(name, make=make)
            else:
                trail.name = name

    def _parts(self, path: str, *, asked: str | None = None) -> Sequence[str]:
        """The names on a path; an absolute one must be below the root, and begins there."""
        if "\0" in path:
            raise OutsideWorkspace(f"{path!r} holds a null character and is no path")
        if not path.startswith("/"):
            return [name for name in path.split("/") if name not in ("", ".")]
        try:
            return Path(path).relative_to(self.root).parts
        except ValueError:
            raise self._outside(asked or path) from None

    def _outside(self, path: str) -> OutsideWorkspace:
        return OutsideWorkspace(f"{path!r} leads out of the folder: give a path inside it")


def _link_target(handle: int, name: str) -> str | None:
    """What a symbolic link points at; None for anything else, missing names too."""
    try:
        return os.readlink(name, dir_fd=handle)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOENT):
            return None
        raise


def _entry(found: os.DirEntry[str]) -> Entry:
    if found.is_symlink():
        return Entry(found.name, "link")
    if found.is_dir(follow_symlinks=False):
        return Entry(found.name, "folder")
    if not found.is_file(follow_symlinks=False):
        return Entry(found.name, "other")
    return Entry(found.name, "file", found.stat(follow_symlinks=False).st_size)
