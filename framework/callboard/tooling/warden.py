"""The process between a tool's program and this one. Started by `processes.py`, by its path alone.

It sets limits, runs the program in a session of its own, and lets nothing of it live on: not when
the program ends, not when it is told to end (SIGTERM), and not when its stdin closes, that is,
when the agent's process is gone. On Linux whatever the program started comes back to it as a child,
daemons too; elsewhere it reaches the program's process group. It imports nothing of Callboard.

It can do what a program with threads cannot: run code between fork and exec, and ask the kernel
to kill the child with its parent, which Linux does when the parent's *thread* ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from time import monotonic
from typing import Any

PR_SET_PDEATHSIG = 1  # from linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
LIMITS = {
    "memory_bytes": resource.RLIMIT_DATA,
    "cpu_s": resource.RLIMIT_CPU,
    "file_bytes": resource.RLIMIT_FSIZE,
}
LINUX = sys.platform.startswith("linux")


def ask_kernel(option: int, value: int) -> None:
    """Call prctl where there is one."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value)


class Family:
    """The program and all that descends from it. `status` is the program's, once it has ended."""

    def __init__(self, program: int) -> None:
        self.program = program
        self.status: int | None = None

    def reap(self) -> bool:
        """Take note of those that have ended; whether somebody is left."""
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not LINUX and self.signal_group(0)
            if ended == self.program:
                self.status = status
            elif not ended:
                return True

    def signal_group(self, number: int) -> bool:
        """Signal the program's group; whether there was anybody."""
        try:
            os.killpg(self.program, number)
        except OSError:
            return False
        return True

    def signal_all(self, number: int) -> None:
        """Signal the group, and the children of this process that have left it."""
        self.signal_group(number)
        for child in children() if LINUX else ():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, number)

    def end(self, wake: int, *, grace_s: float, kill_s: float) -> None:
        """Ask everybody to end, and make those end that have not after `grace_s`, in `kill_s`."""
        if not self.reap():
            return
        self.signal_all(signal.SIGTERM)
        self.signal_all(signal.SIGCONT)
        asked = monotonic()
        while self.reap() and (left := asked + grace_s - monotonic()) > 0:
            rest(wake, left)
        killed = monotonic()
        while self.reap() and (left := killed + kill_s - monotonic()) > 0:
            self.signal_all(signal.SIGKILL)
            rest(wake, min(left, 0.02))


def children() -> list[int]:
    """The processes whose parent this one is."""
    found: list[int] = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            parent = stat.read().rpartition(b")")[2].split()[1]
            if int(parent) == os.getpid():
                found.append(int(name))
    return found


def rest(wake: int, most_s: float) -> None:
    """Wait for a signal."""
    if select.select([wake], [], [], most_s)[0]:
        os.read(wake, 4096)


def wake_on_signals(asked: list[int]) -> int:
    """A descriptor that can be read when a child has ended or SIGTERM came, which is noted too."""
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    signal.signal(signal.SIGCHLD, lambda number, _: None)
    return wake


def start(job: dict[str, Any], stdin: int, told: int) -> int:
    """Fork, and become the program.

    Raises:
        OSError: it could not be started; the file name is the program or its folder.
    """
    failed, fail = os.pipe()
    program = os.fork()
    if not program:
        try:
            become(job, stdin, told)
        except OSError as error:
            about = job["cwd"] if error.filename == job["cwd"] else job["argv"][0]
            os.write(fail, json.dumps([error.errno, error.strerror, about]).encode())
        finally:
            os._exit(127)
    os.close(fail)
    with os.fdopen(failed, "rb") as failure:
        text = failure.read()
    if text:
        os.waitpid(program, 0)
        raise OSError(*json.loads(text))
    return program


def become(job: dict[str, Any], stdin: int, told: int) -> None:
    """In the child: limits, signals and descriptors as the program is to have them."""
    os.setsid()
    report(told, {"program": os.getpid()})  # in case that the warden is killed
    ask_kernel(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(job["cwd"])
    os.dup2(stdin, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, limit in job["limits"].items():
        most = resource.getrlimit(LIMITS[name])[1]
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(LIMITS[name], (limit, limit))
    os.execvpe(job["argv"][0], job["argv"], job["env"])


def watch(job: dict[str, Any], stdin: int, told: int) -> dict[str, Any]:
    """Run the program to its end, or until this process is told to end; what came of it."""
    asked: list[int] = []
    wake = wake_on_signals(asked)
    ask_kernel(PR_SET_CHILD_SUBREAPER, 1)
    try:
        family = Family(start(job, stdin, told))
    except OSError as error:
        return {"error": [error.errno, error.strerror, error.filename]}
    while family.reap() and family.status is None and not asked:
        ready = select.select([0, wake], [], [])[0]
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready and not os.read(0, 4096):
            break
    family.end(wake, grace_s=job["grace_s"], kill_s=job["kill_s"])
    return {"status": family.status}


def report(told: int, what: dict[str, Any]) -> None:
    """Leave a report, in place of what was there."""
    os.ftruncate(told, 0)
    os.pwrite(told, json.dumps(what).encode(), 0)


def main() -> None:
    """Read the job from one descriptor, and write what came of it in its place."""
    told, stdin = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (told, stdin):
        os.set_inheritable(descriptor, False)
    job = json.loads(os.pread(told, os.fstat(told).st_size, 0))
    report(told, {})
    report(told, watch(job, stdin, told))


if __name__ == "__main__":
    main()
