"""A terminal for tests: runs the real command on a pty, types, and waits for what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.console.command import COMMAND
from tests.run_script import plain_environment

ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[a-zA-Z]|\][^\x07]*\x07|[=>()][0-9A-B]?)")
ENTER, CTRL_C, CTRL_D, UP = "\r", "\x03", "\x04", "\x1b[A"


PATIENCE_S = 45.0  # a busy machine takes its time


class Terminal:
    """`callboard ARGUMENTS...` on a terminal of 100 columns."""

    def __init__(self, *arguments: str, cwd: Path, **changes: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=cwd,
            env=plain_environment(TERM="xterm-256color", **changes),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._raw = b""
        self._read_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """All that was written so far, without its escape codes."""
        return ESCAPES.sub(b"", self._raw).decode(errors="replace").replace("\r", "")

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def say(self, line: str) -> None:
        self.type(line + ENTER)

    def expect(self, shown: str, *, timeout_s: float = PATIENCE_S) -> None:
        """Wait until this is shown behind what was expected before."""
        until = time.monotonic() + timeout_s
        while (at := self.text.find(shown, self._read_to)) < 0:
            if not self._read(until - time.monotonic()):
                raise AssertionError(f"{shown!r} was not shown:\n{self.text[self._read_to :]}")
        self._read_to = at + len(shown)

    def expect_each(self, *shown: str, timeout_s: float = PATIENCE_S) -> None:
        """As `expect`, for texts that may come in any order."""
        until = time.monotonic() + timeout_s
        for text in shown:
            while self.text.find(text, self._read_to) < 0:
                if not self._read(until - time.monotonic()):
                    raise AssertionError(f"{text!r} was not shown:\n{self.text[self._read_to :]}")

    def leave(self, timeout_s: float = PATIENCE_S) -> int:
        """Wait until the command ends. Its exit code."""
        until = time.monotonic() + timeout_s
        while self._read(until - time.monotonic()):
            pass
        return self.process.wait(max(until - time.monotonic(), 0.1))

    def kill(self) -> None:
        """SIGKILL, as a power cut would end it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _read(self, timeout_s: float) -> bool:
        """Read a little more. False: nothing came in time, or the command has closed its side."""
        if not select.select([self._ours], [], [], max(timeout_s, 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65_536)
        except OSError:  # how Linux tells that the other side is closed
            return False
        self._raw += chunk
        return bool(chunk)
