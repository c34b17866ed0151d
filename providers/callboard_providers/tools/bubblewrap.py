"""Shutting a program in with bubblewrap (Linux): what it sees, may write and can reach.

The system is there to be read, one folder to be written, and nothing else: no home, no keys of
the user, no other processes, and without leave no network. The kernel keeps it so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from callboard.errors import ConfigurationError
from callboard.tooling.processes import minimal_environment

PROBE_S = 10.0
TMP_BYTES = 512 * 1024**2
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Not all of /etc: read by root, it would show the hashes of passwords.
SETTINGS = (
    *("alternatives", "ca-certificates", "gai.conf", "group", "hosts", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "passwd", "pki", "profile"),
    *("protocols", "resolv.conf", "services", "ssl", "timezone"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """A sandbox around one folder. `readable` may be read besides the system and the folder."""

    root: Path
    network: bool = False
    readable: Sequence[Path] = ()

    def __post_init__(self) -> None:
        if any([Path(place).is_relative_to(self.root) for place in (*SYSTEM, "/etc", "/proc")]):
            raise ConfigurationError(
                f"{str(self.root)!r} holds the system, so a sandbox in which it may be written is "
                "none: choose a folder further down"
            )

    def wrapped(self, argv: Sequence[str]) -> list[str]:
        """The command that runs another one inside."""
        root = str(self.root)
        shut_in = ["--unshare-all", *(["--share-net"] if self.network else [])]
        ended = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        places = [place for mount in self._mounts() for place in mount]
        return ["bwrap", *shut_in, *ended, *places, "--chdir", root, "--", *argv]

    def environment(self) -> dict[str, str]:
        """What the program is told of the world; its home is the fresh /tmp."""
        return minimal_environment(HOME="/tmp", TMPDIR="/tmp", TERM="dumb")

    def defect(self) -> str | None:
        """Why this cannot be used here, or None. Runs `true` inside (some 10 ms)."""
        if shutil.which("bwrap") is None:
            return "the program bwrap is not there (its package is called bubblewrap)"
        try:
            done = subprocess.run(
                self.wrapped(["true"]),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PROBE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return done.stderr.decode(errors="replace").strip() if done.returncode else None

    def _mounts(self) -> Iterator[tuple[str, ...]]:
        for place in SYSTEM:
            if os.path.islink(place):  # such as /bin to usr/bin
                yield "--symlink", os.readlink(place), place
            else:
                yield "--ro-bind-try", place, place
        for name in SETTINGS:
            yield "--ro-bind-try", f"/etc/{name}", f"/etc/{name}"
        yield "--proc", "/proc"
        yield "--dev", "/dev"
        yield "--size", str(TMP_BYTES), "--tmpfs", "/tmp"
        for extra in self.readable:
            yield "--ro-bind", str(extra), str(extra)
        yield "--bind", str(self.root), str(self.root)
