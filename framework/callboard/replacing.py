"""Writing one file in a folder that is open already: whole, or not at all. Used by `workspace`.

No name is looked up but in the folder of the handle, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_END = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)


def replace_file(
    folder: int, name: str, content: bytes, *, instead_of: os.stat_result | None
) -> None:
    """Write a file beside the one of this name, then put it in its place.

    Permissions are kept, and the owner where that is allowed; another name for the same file
    (a hard link) keeps the old content. With `instead_of` the file must still be that one.
    """
    old = writable(folder, name)
    beside = f".callboard-{secrets.token_hex(8)}"
    handle = os.open(beside, _NEW, 0o666 if old is None else 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            if old is not None:
                _keep_owner(handle, old)
            os.fsync(handle)
        if instead_of is not None and not is_same(state_of(folder, name), instead_of):
            raise OSError(errno.ESTALE, "was changed by somebody else meanwhile", name)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=folder)
        raise
    os.fsync(folder)


def create_file(folder: int, name: str, content: bytes) -> None:
    """Write a file that must not be there yet.

    Raises:
        FileExistsError: something of this name is there, be it a link to nowhere.
    """
    handle = os.open(name, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    os.fsync(folder)


def append_to_file(folder: int, name: str, content: bytes) -> None:
    """Write at the end of a file, which is made if it is missing.

    A file with a second name is refused: the other one may be anywhere.
    """
    writable(folder, name)
    handle = os.open(name, _END, 0o666, dir_fd=folder)
    with os.fdopen(handle, "ab") as file:
        now = os.fstat(handle)
        check_regular(now, name)
        if now.st_nlink > 1:
            raise OSError(errno.EMLINK, "has a second name (a hard link): write it anew", name)
        file.write(content)
        file.flush()
        os.fsync(handle)


def state_of(folder: int, name: str) -> os.stat_result | None:
    """What stands under a name, links not followed; None for nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def is_same(found: os.stat_result | None, known: os.stat_result) -> bool:
    """Whether a file is still the one it was, unwritten since."""

    def identity(of: os.stat_result) -> tuple[int, ...]:
        return of.st_dev, of.st_ino, of.st_size, of.st_mtime_ns

    return found is not None and identity(found) == identity(known)


def writable(folder: int, name: str) -> os.stat_result | None:
    """The state of a file that may be written, or None if there is none yet.

    Raises:
        PermissionError: it is read-only, which replacing it would not notice.
    """
    old = state_of(folder, name)
    if old is None:
        return None
    check_regular(old, name)
    if not old.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, "is read-only", name)
    return old


def check_regular(found: os.stat_result, name: str) -> None:
    """Raises IsADirectoryError for a folder, OSError for whatever else is no regular file."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", name)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", name)


def _keep_owner(handle: int, old: os.stat_result) -> None:
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
