"""Programs that a tool runs: bounded, killable, and never alive after the call. Linux and macOS.

Tools await `run_process`; a warden process (`warden.py`) stands between, see there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import anyio
from anyio.abc import ByteReceiveStream, Process

from callboard.errors import ConfigurationError
from callboard.tooling.outputs import Output, OutputKeeper

WARDEN = Path(__file__).with_name("warden.py")
KILL_S = 5.0  # for what SIGKILL was sent to; it can only fork on or hang in the kernel
LAST_WORDS_S = 1.0  # for output to arrive after the end, where a process got away with the pipe
KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "TMPDIR", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """What a program may use. None is as much as this process may.

    - `output_bytes`: kept of each stream, its beginning and its end; more is read and dropped.
    - `memory_bytes`: of data, for each process of the program by itself (Linux).
    - `cpu_s`: seconds of computing, for each process by itself; then it is killed.
    - `file_bytes`: largest file that it may write.
    - `grace_s`: between asking to end (SIGTERM) and SIGKILL.
    """

    output_bytes: int = 50_000
    memory_bytes: int | None = None
    cpu_s: int | None = None
    file_bytes: int | None = None
    grace_s: float = 2.0

    def __post_init__(self) -> None:
        for name in ("output_bytes", "memory_bytes", "cpu_s", "file_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"{name}={value!r} must be above 0, or None for no limit")
        if self.grace_s < 0:
            raise ConfigurationError(f"grace_s={self.grace_s!r} must be 0 or more")

    @property
    def of_system(self) -> dict[str, int]:
        """The limits that the kernel keeps."""
        named = {n: getattr(self, n) for n in ("memory_bytes", "cpu_s", "file_bytes")}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a program ended, and what it printed.

    `code` is None where a signal ended it; `signal` then is its name, such as "SIGKILL" (None
    where even that is unknown: somebody killed its warden). `timed_out`: its time was over.
    """

    code: int | None = None
    signal: str | None = None
    stdout: Output = field(default=Output(), repr=False)
    stderr: Output = field(default=Output(), repr=False)
    timed_out: bool = False


def minimal_environment(**added: str) -> dict[str, str]:
    """What a program needs to find its way (PATH, HOME, language, time zone), and no keys."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return {"PATH": os.defpath, **kept, **added}


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float | None = None,
    merge_output: bool = False,
    limits: ProcessLimits = ProcessLimits(),
) -> ProcessEnd:
    """Run a program to its end, in a session of its own, without a terminal.

    When it ends, when `timeout_s` is over, when this is cancelled and when this process dies,
    everything that it started is ended as well: SIGTERM, `limits.grace_s`, SIGKILL. On Linux that
    holds for daemons too, elsewhere for its process group. Cancellation waits for that, at most
    `grace_s` and a few seconds. `env` is all of its environment, `minimal_environment()` without
    it. With `merge_output` stderr goes into `stdout`, as it would on a terminal.

    Raises:
        OSError: the program could not be started; `filename` is the program or the folder.
        ConfigurationError: `argv` is empty, or a text in it or in `env` holds a null character.
    """
    job = _job(argv, cwd, env, limits)
    keepers = [OutputKeeper(limits.output_bytes) for _ in range(2)]
    with _held(json.dumps(job).encode()) as told, _held(stdin) as fed:
        process = await _started(told, fed, merge_output=merge_output)
        try:
            with anyio.move_on_after(timeout_s) as scope:
                await _watched(process, keepers)
        finally:
            await _ended(process, keepers, limits.grace_s)
            report = _report(told)
            _end_abandoned(report)
    if error := report.get("error"):
        raise OSError(*error)
    stdout, stderr = [keeper.output() for keeper in keepers]
    late = scope.cancelled_caught
    return _end(report.get("status"), stdout=stdout, stderr=stderr, timed_out=late)


def _job(
    argv: Sequence[str],
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None,
    limits: ProcessLimits,
) -> dict[str, Any]:
    if isinstance(argv, str) or not argv:
        raise ConfigurationError(f"argv={argv!r}: give a program and its arguments, as a list")
    env = minimal_environment() if env is None else dict(env)
    for text in (*argv, *env, *env.values()):
        if "\0" in text or not _encodes(text):
            raise ConfigurationError("an argument or a variable holds what no program can be given")
    return {
        "argv": list(argv),
        "cwd": os.fspath(cwd),
        "env": env,
        "limits": limits.of_system,
        "grace_s": limits.grace_s,
        "kill_s": KILL_S,
    }


def _encodes(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _held(data: bytes) -> BinaryIO:
    """A nameless file with these bytes: environments may hold what is not for others to read."""
    if sys.platform.startswith("linux"):
        file: BinaryIO = os.fdopen(os.memfd_create("callboard"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(data)
    file.seek(0)
    return file


async def _started(told: BinaryIO, fed: BinaryIO, *, merge_output: bool) -> Process:
    if not sys.executable:
        raise ConfigurationError("sys.executable is not set, so no process can be watched")
    handles = (told.fileno(), fed.fileno())
    return await anyio.open_process(
        [sys.executable, "-I", "-S", str(WARDEN), *map(str, handles)],
        stderr=subprocess.STDOUT if merge_output else subprocess.PIPE,
        env={},
        start_new_session=True,
        pass_fds=handles,
    )


async def _watched(process: Process, keepers: Sequence[OutputKeeper]) -> None:
    """Read what it prints until it has ended. May be cancelled and called again."""
    async with anyio.create_task_group() as group:
        for stream, keeper in zip((process.stdout, process.stderr), keepers, strict=True):
            if stream is not None:
                group.start_soon(_kept, stream, keeper)
        await process.wait()
        group.cancel_scope.deadline = anyio.current_time() + LAST_WORDS_S


async def _kept(stream: ByteReceiveStream, keeper: OutputKeeper) -> None:
    try:
        async for data in stream:
            keeper.add(data)
    except anyio.BrokenResourceError:  # the other side is gone
        return


async def _ended(process: Process, keepers: Sequence[OutputKeeper], grace_s: float) -> None:
    """Have the warden end everything, wait for it, and let go of the pipes."""
    if process.returncode is None:
        process.terminate()  # and if nothing more can be done here, the warden does it all
        with anyio.CancelScope(shield=True) as scope:
            scope.deadline = anyio.current_time() + grace_s + KILL_S + LAST_WORDS_S
            await _watched(process, keepers)
        if process.returncode is None:
            process.kill()
    with anyio.CancelScope(shield=True):
        await process.aclose()


def _report(told: BinaryIO) -> dict[str, Any]:
    """What the warden left: how the program ended or why it did not start; else which it is."""
    text = os.pread(told.fileno(), os.fstat(told.fileno()).st_size, 0)
    report: dict[str, Any] = json.loads(text or b"{}")
    return report


def _end_abandoned(report: dict[str, Any]) -> None:
    """Kill the program's group if the warden, which would have done it, was itself killed."""
    if "program" in report:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(report["program"], signal.SIGKILL)


def _end(status: int | None, *, stdout: Output, stderr: Output, timed_out: bool) -> ProcessEnd:
    code = None if status is None else os.waitstatus_to_exitcode(status)
    name = None
    if code is not None and code < 0:
        number, code = -code, None
        known = number in set(signal.Signals)
        name = signal.Signals(number).name if known else f"signal {number}"
    return ProcessEnd(code=code, signal=name, stdout=stdout, stderr=stderr, timed_out=timed_out)
