"""Commands of a shell in one folder, as a tool: shut in where the system can do that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from callboard.errors import ConfigurationError
from callboard.messages import Observation, Status, TextBlock
from callboard.tooling.processes import (
    ProcessEnd,
    ProcessLimits,
    minimal_environment,
    run_process,
)
from callboard.tooling.tools import Tool, tool
from callboard.workspace import Workspace
from callboard_providers.tools.bubblewrap import Bubblewrap
from callboard_providers.tools.editing import resource_of
from callboard_providers.tools.terminal_text import plain_text

MEMORY_BYTES = 4 * 1024**3  # for each process
SPARE_S = 30.0  # beyond `timeout_s`, for ending what was started

SandboxKind = Literal["auto", "bubblewrap", "none"]


def shell_tool(
    root: str | os.PathLike[str],
    *,
    sandbox: SandboxKind = "auto",
    timeout_s: float = 60.0,
    output_bytes: int = 30_000,
    memory_bytes: int | None = MEMORY_BYTES,
    network: bool = False,
    readable: Sequence[str | os.PathLike[str]] = (),
) -> Tool:
    """The tool `run_command`: a line of bash (or sh) in `root`, with what it printed.

    In a sandbox it can write below `root` and in a fresh /tmp only, sees the system's programs
    and `readable`, and has a network if `network`. "auto" does without a sandbox where
    bubblewrap does not work; the tool then says so in its description, `tool.sandboxed` is
    False, and the command may do whatever this user may: have a guard ask about it.

    Each command gets `timeout_s`, no input, no keys of this process's environment, and
    `memory_bytes` for each of its processes. What it leaves in the background is ended with it.

    Raises:
        ConfigurationError: "bubblewrap" is wanted and does not work, or `root` is no folder.
    """
    folder = Workspace(root)
    limits = ProcessLimits(output_bytes=output_bytes, memory_bytes=memory_bytes)
    places = [Path(place).expanduser().resolve() for place in readable]
    wall = _wall(sandbox, folder.root, network=network, readable=places)
    shell = shutil.which("bash") or "/bin/sh"
    env = minimal_environment(TERM="dumb") if wall is None else wall.environment()

    async def run_command(command: str) -> Observation:
        argv = [shell, "-c", command]
        end = await run_process(
            argv if wall is None else wall.wrapped(argv),
            cwd=folder.root,
            env=env,
            timeout_s=timeout_s,
            merge_output=True,
            limits=limits,
        )
        return observed(end, timeout_s)

    run_command.__doc__ = description(Path(shell).name, timeout_s, wall)
    return tool(
        effect="effect",
        resource=resource_of(folder),
        timeout_s=timeout_s + SPARE_S,
        max_result_bytes=4 * output_bytes,  # bytes that are no text take three times the room
        sandboxed=wall is not None,
    )(run_command)


def description(shell: str, timeout_s: float, wall: Bubblewrap | None) -> str:
    """What the model is told; it should not try in vain what the sandbox forbids."""
    if wall is None:
        bounds = "There is no sandbox: it may change whatever this user may, so be careful."
    else:
        network = "as is the network" if wall.network else "and there is no network"
        bounds = (
            "It runs in a sandbox: programs of the system can be used, this folder and /tmp "
            f"written, {network}; nothing else is there."
        )
    return (
        f"Run a command with {shell} in the working folder, and see what it prints.\n\n{bounds} "
        f"It gets no input, and {timeout_s:g} s; what it leaves in the background is ended with "
        "it, and the next command begins in the same folder again.\n\n"
        "Args:\n    command: Such as: ls -l | head"
    )


def observed(end: ProcessEnd, timeout_s: float) -> Observation:
    """The output and, where it is not a plain success, how the command ended."""
    printed = plain_text(end.stdout.text).strip("\n")
    if end.timed_out:
        how = f"(ended after {timeout_s:g} s, with all that it had started)"
    elif end.code is None:
        how = f"(killed by {end.signal or 'somebody'})"
    else:
        how = f"(exit code {end.code})" if end.code or not printed else ""
    text = "\n".join(filter(None, (printed, how)))
    payload = {"exit_code": end.code, "signal": end.signal, "timed_out": end.timed_out}
    status = Status.TIMED_OUT if end.timed_out else Status.OK
    return Observation(status=status, content=(TextBlock(text=text),), payload=payload)


def _wall(
    kind: SandboxKind, root: Path, *, network: bool, readable: Sequence[Path]
) -> Bubblewrap | None:
    if kind == "none":
        return None
    if kind not in ("auto", "bubblewrap"):
        raise ConfigurationError(f"sandbox={kind!r} is none of auto, bubblewrap, none")
    bubblewrap = Bubblewrap(root=root, network=network, readable=readable)
    defect = bubblewrap.defect()
    if defect is None:
        return bubblewrap
    if kind == "auto":
        return None
    raise ConfigurationError(
        f'sandbox="bubblewrap" does not work here: {defect}; install it, allow unprivileged user '
        'namespaces, or decide for sandbox="none"'
    )
