"""Programs that tools run are bounded, and nothing of them is alive after the call."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from callboard.errors import ConfigurationError
from callboard.messages import Status, ToolCall
from callboard.testing import call
from callboard.tooling.execution import execute
from callboard.tooling.processes import ProcessEnd, ProcessLimits, minimal_environment, run_process
from callboard.tooling.tools import ToolContext, tool
from tests.framework.kit import agent_of, statuses
from tests.run_script import plain_environment

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock, pytest.mark.timeout(120)]

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux keeps track")
QUICK = ProcessLimits(grace_s=0.2)
HOUR = "3600"


async def shell(script: str, folder: Path, timeout_s: float | None = None) -> ProcessEnd:
    return await run_process(["sh", "-c", script], cwd=folder, timeout_s=timeout_s, limits=QUICK)


def alive(process_id: int) -> bool:
    """Whether it runs; one that only waits to be taken note of does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process_id)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip()[:1] not in ("", "Z")


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def written(path: Path) -> int:
    """The process id that a script writes."""
    while not text_of(path).endswith("\n"):
        await anyio.sleep(0.01)
    return int(text_of(path))


async def gone(process_id: int) -> bool:
    """Whether it ends in time: what is asked to die takes a moment."""
    with anyio.move_on_after(10):
        while alive(process_id):
            await anyio.sleep(0.01)
    return not alive(process_id)


async def test_a_program_is_run_and_its_end_told(tmp_path: Path) -> None:
    end = await shell("echo out; echo err >&2; test -d here; exit $?", tmp_path)
    assert (end.code, end.signal, end.timed_out) == (1, None, False)
    assert (end.stdout.text, end.stderr.text) == ("out\n", "err\n")


async def test_a_program_runs_in_the_folder_that_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    assert (await shell("test -d here", tmp_path)).code == 0


async def test_both_streams_can_be_read_as_one(tmp_path: Path) -> None:
    script = ["sh", "-c", "echo 1; echo 2 >&2; echo 3"]
    end = await run_process(script, cwd=tmp_path, merge_output=True)
    assert (end.stdout.text, end.stderr.text) == ("1\n2\n3\n", "")


async def test_stdin_is_what_was_given_and_empty_without_it(tmp_path: Path) -> None:
    data = b"x" * 1_000_000
    assert (await run_process(["wc", "-c"], cwd=tmp_path, stdin=data)).stdout.text.strip() == (
        "1000000"
    )
    assert (await run_process(["cat"], cwd=tmp_path)).code == 0


async def test_a_signal_that_ended_it_is_named(tmp_path: Path) -> None:
    end = await shell("kill -SEGV $$", tmp_path)
    assert (end.code, end.signal) == (None, "SIGSEGV")


async def test_no_key_of_this_process_reaches_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "secret" not in (await run_process(["env"], cwd=tmp_path)).stdout.text


async def test_the_environment_is_the_one_that_was_given(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "WORD": "ä b"}
    printed = (await run_process(["env"], cwd=tmp_path, env=env)).stdout.text
    assert sorted(printed.splitlines()) == sorted(f"{k}={v}" for k, v in env.items())
    assert minimal_environment(A="1")["A"] == "1"


@pytest.mark.parametrize(("argv", "folder"), [(["no-such-program"], "."), (["sh"], "none")])
async def test_what_cannot_be_started_is_an_error_with_its_name(
    tmp_path: Path, argv: list[str], folder: str
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        await run_process(argv, cwd=tmp_path / folder)
    assert caught.value.filename == (argv[0] if folder == "." else str(tmp_path / folder))


@pytest.mark.parametrize("argv", [[], "ls -l", ["a\0b"], ["\ud800"]])
async def test_what_is_no_command_is_refused(tmp_path: Path, argv: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        await run_process(argv, cwd=tmp_path)


def test_limits_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="memory_bytes=0 must be above 0"):
        ProcessLimits(memory_bytes=0)
    with pytest.raises(ConfigurationError, match="grace_s=-1"):
        ProcessLimits(grace_s=-1)


async def test_output_without_end_is_bounded_and_its_two_ends_are_kept(tmp_path: Path) -> None:
    limits = ProcessLimits(output_bytes=100)
    script = ["sh", "-c", "echo first; yes | head -c 1000000; echo last"]
    output = (await run_process(script, cwd=tmp_path, limits=limits)).stdout
    assert output.text.startswith("first\n")
    assert output.text.endswith("last\n")
    assert (len(output.head) + len(output.tail), output.left_out_bytes) == (100, 1_000_011 - 100)


@on_linux
async def test_memory_is_limited(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_bytes=200_000_000)
    script = [sys.executable, "-c", "print(len(bytearray(10**9)))"]
    end = await run_process(script, cwd=tmp_path, limits=limits)
    assert "MemoryError" in end.stderr.text


async def test_computing_is_limited(tmp_path: Path) -> None:
    script = ["sh", "-c", "while :; do :; done"]
    end = await run_process(script, cwd=tmp_path, limits=ProcessLimits(cpu_s=1))
    assert end.signal in ("SIGKILL", "SIGXCPU")


async def test_a_program_is_ended_when_its_time_is_over(tmp_path: Path) -> None:
    end = await shell(f"echo before; echo $$ > id; sleep {HOUR}", tmp_path, timeout_s=1)
    assert (end.timed_out, end.signal, end.stdout.text) == (True, "SIGTERM", "before\n")
    assert not alive(await written(tmp_path / "id"))


async def test_a_program_that_does_not_want_to_end_is_killed(tmp_path: Path) -> None:
    script = f"trap 'echo no' TERM; echo $$ > id; while :; do sleep {HOUR}; done"
    end = await shell(script, tmp_path, timeout_s=1)
    assert (end.signal, end.stdout.text) == ("SIGKILL", "no\n")
    assert not alive(await written(tmp_path / "id"))


DAEMONS = {
    "in the background": "sleep {hour} & echo $! > id",
    "in its own session": "setsid sh -c 'echo $$ > id; trap \"\" TERM HUP; sleep {hour}' &",
    "twice removed": "( ( sh -c 'echo $$ > id; exec sleep {hour}' & ) & )",
}


@on_linux
@pytest.mark.parametrize("how", DAEMONS)
async def test_what_a_program_leaves_behind_is_ended_with_the_call(
    tmp_path: Path, how: str
) -> None:
    wait = "while ! test -s id; do sleep 0.01; done"
    end = await shell(f"{DAEMONS[how].format(hour=HOUR)}\n{wait}; echo done", tmp_path)
    assert (end.code, end.stdout.text) == (0, "done\n")
    assert not alive(await written(tmp_path / "id"))


@on_linux
@pytest.mark.parametrize("how", DAEMONS)
async def test_what_a_program_leaves_behind_is_ended_at_a_cancel(tmp_path: Path, how: str) -> None:
    async with anyio.create_task_group() as group:
        script = DAEMONS[how].format(hour=HOUR)
        group.start_soon(shell, f"{script}\nsleep {HOUR}", tmp_path)
        assert alive(await written(tmp_path / "id"))
        group.cancel_scope.cancel()
    assert not alive(await written(tmp_path / "id"))


@on_asyncio
async def test_a_native_cancel_ends_it_and_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        await shell(f"echo $$ > id; sleep {HOUR}", tmp_path)

    task = asyncio.create_task(run())
    program = await written(tmp_path / "id")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(program)


async def test_a_tool_at_its_deadline_takes_its_program_with_it(tmp_path: Path) -> None:
    @tool(timeout_s=1)
    async def work() -> None:
        await shell(f"echo $$ > id; sleep {HOUR}", tmp_path)

    found = await execute(work, ToolCall(id="c", name="work"), ToolContext("c", "work"))
    assert (found.status, found.text) == (Status.TIMED_OUT, "timed out after 1 s")
    assert not alive(await written(tmp_path / "id"))


async def test_a_cancelled_run_says_that_the_outcome_of_an_effect_is_unknown(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        await shell(f"echo $$ > id; sleep {HOUR}", tmp_path)

    agent, _ = agent_of([call("work"), "ok"], work)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await written(tmp_path / "id")
        group.cancel_scope.cancel()
    assert list(statuses(agent).values()) == ["unknown_outcome"]
    assert not alive(await written(tmp_path / "id"))


ORPHAN = """
import anyio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
from callboard.tooling.processes import ProcessLimits, run_process
limits = ProcessLimits(grace_s=0.2)
command = ["sh", "-c", sys.argv[1]]
anyio.run(lambda: run_process(command, cwd=".", limits=limits), backend=sys.argv[2])
"""


def started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, cwd=folder, env=plain_environment(), stderr=subprocess.DEVNULL)


@on_linux
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_nothing_outlives_the_process_of_the_agent(
    tmp_path: Path, anyio_backend_name: str, number: signal.Signals
) -> None:
    script = "setsid sh -c 'echo $$ > id; trap \"\" TERM; sleep 3600' & sleep 3600"
    command = [sys.executable, "-c", ORPHAN, script, anyio_backend_name]
    with started(command, tmp_path) as agent:
        left = await written(tmp_path / "id")
        agent.send_signal(number)
    assert await gone(left)


async def test_a_program_cannot_end_its_warden_by_ending_its_group(tmp_path: Path) -> None:
    end = await shell("kill -9 0", tmp_path)
    assert end.signal == "SIGKILL"


@on_linux
async def test_a_killed_warden_is_an_unknown_end_but_an_end(tmp_path: Path) -> None:
    end = await shell(f"sleep {HOUR} & echo $! > id; kill -9 $PPID; sleep {HOUR}", tmp_path)
    assert (end.code, end.signal) == (None, None)
    assert await gone(await written(tmp_path / "id"))


async def test_programs_run_side_by_side(tmp_path: Path) -> None:
    begun = time.monotonic()
    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(shell, "sleep 1", tmp_path)
    assert time.monotonic() - begun < 3.5


def open_handles() -> int:
    return len(os.listdir("/dev/fd"))


async def test_no_handle_stays_open(tmp_path: Path) -> None:
    await shell("true", tmp_path)  # a backend may open something for the first of them
    before = open_handles()
    for script in ("true", "exit 3", f"sleep {HOUR}"):
        await shell(script, tmp_path, timeout_s=0.3)
    with pytest.raises(OSError, match="No such file"):
        await run_process(["no-such-program"], cwd=tmp_path)
    assert open_handles() == before
