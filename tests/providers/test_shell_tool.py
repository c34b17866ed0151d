"""Commands of a shell: what comes back, what is bounded, and what a sandbox keeps in."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.errors import ConfigurationError
from callboard.messages import Observation, Status
from callboard.tooling.tools import Effect, Tool
from callboard_providers.tools import editing_tools, shell_tool
from callboard_providers.tools.bubblewrap import Bubblewrap
from callboard_providers.tools.shell import SandboxKind
from callboard_providers.tools.terminal_text import plain_text

pytestmark = pytest.mark.anyio

DEFECT = Bubblewrap(root=Path(__file__).parent).defect()
in_sandbox = pytest.mark.skipif(DEFECT is not None, reason=f"no bubblewrap here: {DEFECT}")
every_kind = pytest.mark.parametrize("kind", ["none", pytest.param("bubblewrap", marks=in_sandbox)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, and a secret beside it."""
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "note").write_text("note\n")
    return tmp_path / "in"


async def ran(tool: Tool, command: str) -> Observation:
    found: Observation = await tool.function(command)
    return found


async def shut_in(folder: Path, command: str) -> str:
    return (await ran(shell_tool(folder, sandbox="bubblewrap"), command)).text


def is_running(mark: str) -> bool:
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return any(mark in line for line in done.stdout.splitlines())


async def test_what_the_tool_is_like_is_declared(folder: Path) -> None:
    tool = shell_tool(folder, sandbox="none")
    assert (tool.name, tool.effect, tool.sandboxed) == ("run_command", Effect.EFFECT, False)
    assert tool.resource == editing_tools(folder)[0].resource
    assert "There is no sandbox" in tool.description


@in_sandbox
async def test_a_sandbox_is_used_where_there_is_one_and_said_to_the_model(folder: Path) -> None:
    tool = shell_tool(folder)
    assert tool.sandboxed
    assert "there is no network; nothing else is there" in tool.description
    assert "as is the network" in shell_tool(folder, network=True).description


@every_kind
async def test_output_and_errors_come_back_in_order(folder: Path, kind: SandboxKind) -> None:
    found = await ran(shell_tool(folder, sandbox=kind), "echo 1; echo 2 >&2; cat note")
    assert (found.status, found.text) == (Status.OK, "1\n2\nnote")


@every_kind
async def test_an_exit_code_is_told(folder: Path, kind: SandboxKind) -> None:
    found = await ran(shell_tool(folder, sandbox=kind), "echo no; exit 3")
    assert (found.text, found.payload["exit_code"]) == ("no\n(exit code 3)", 3)


async def test_silence_is_told_as_a_success(folder: Path) -> None:
    assert (await ran(shell_tool(folder, sandbox="none"), "true")).text == "(exit code 0)"


async def test_a_signal_is_told(folder: Path) -> None:
    found = await ran(shell_tool(folder, sandbox="none"), "kill -KILL $$")
    assert found.text == "(killed by SIGKILL)"


@every_kind
async def test_there_is_no_input_to_wait_for(folder: Path, kind: SandboxKind) -> None:
    found = await ran(shell_tool(folder, sandbox=kind), "cat; read -r line; echo $?")
    assert found.text == "1"


@every_kind
async def test_no_key_of_this_process_is_seen(
    folder: Path, kind: SandboxKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = await ran(shell_tool(folder, sandbox=kind), "env")
    assert "PATH=" in found.text
    assert "secret" not in found.text


async def test_long_output_keeps_its_two_ends(folder: Path) -> None:
    tool = shell_tool(folder, sandbox="none", output_bytes=1000)
    text = (await ran(tool, "echo first; yes | head -c 1000000; echo last")).text
    assert text.startswith("first\n")
    assert text.endswith("last")
    assert "[... 999011 bytes left out ...]" in text


async def test_what_is_no_text_is_replaced(folder: Path) -> None:
    text = (await ran(shell_tool(folder, sandbox="none"), r"printf 'a\xff\x00b'")).text
    assert text == "a\ufffdb"


@every_kind
async def test_a_command_ends_with_its_time_and_all_that_it_started(
    folder: Path, kind: SandboxKind
) -> None:
    mark = f"987{uuid.uuid4().int % 10**9}"
    tool = shell_tool(folder, sandbox=kind, timeout_s=1)
    found = await ran(tool, f"echo begun; setsid sleep {mark} & sleep {mark}")
    assert found.status is Status.TIMED_OUT
    assert found.text == "begun\n(ended after 1 s, with all that it had started)"
    assert not is_running(mark)


@every_kind
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux keeps track")
async def test_a_background_process_ends_with_its_command(folder: Path, kind: SandboxKind) -> None:
    mark = f"987{uuid.uuid4().int % 10**9}"
    found = await ran(shell_tool(folder, sandbox=kind), f"setsid sleep {mark} & echo done")
    assert found.text == "done"
    assert not is_running(mark)


@every_kind
async def test_a_cancelled_command_is_ended(folder: Path, kind: SandboxKind) -> None:
    mark = f"987{uuid.uuid4().int % 10**9}"
    async with anyio.create_task_group() as group:
        tool = shell_tool(folder, sandbox=kind)
        group.start_soon(ran, tool, f"touch begun; sleep {mark}")
        while "begun" not in os.listdir(folder):
            await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    assert not is_running(mark)


@in_sandbox
async def test_a_sandbox_can_be_written_in_its_folder_only(folder: Path) -> None:
    places = f"/usr/new {folder.parent}/new"
    text = await shut_in(folder, f"echo 1 > new && cat new; for f in {places}; do echo > $f; done")
    assert text.startswith("1\n")
    assert sorted(os.listdir(folder)) == ["new", "note"]
    assert sorted(os.listdir(folder.parent)) == ["in", "secret"]
    assert "new" not in os.listdir("/usr")


@in_sandbox
@pytest.mark.parametrize(
    "path", ["{beside}", "/etc/shadow", "/root/.bashrc", "/home", "/run", "/var", "/sys"]
)
async def test_what_is_elsewhere_is_not_seen(folder: Path, path: str) -> None:
    path = path.replace("{beside}", str(folder.parent / "secret"))
    assert "No such file or directory" in await shut_in(folder, f"ls -d {path}")


@in_sandbox
async def test_a_link_out_of_the_folder_leads_nowhere(folder: Path) -> None:
    (folder / "leak").symlink_to(folder.parent / "secret")
    assert "No such file or directory" in await shut_in(folder, "cat leak")


@in_sandbox
async def test_tmp_is_fresh_each_time(folder: Path) -> None:
    assert await shut_in(folder, "echo 1 > /tmp/x; cat /tmp/x") == "1"
    assert "No such file" in await shut_in(folder, "cat /tmp/x")


@in_sandbox
async def test_other_processes_are_not_seen(folder: Path) -> None:
    seen = await shut_in(folder, "ls -d /proc/[0-9]* | wc -l")
    assert int(seen) < 10


async def reached(folder: Path, *, network: bool) -> str:
    """What comes of a connection to a port of this machine that listens."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tool = shell_tool(folder, sandbox="bubblewrap", network=network)
        command = f"bash -c ': < /dev/tcp/127.0.0.1/{port}' && echo reached"
        return (await ran(tool, command)).text


@in_sandbox
async def test_there_is_no_network_without_leave(folder: Path) -> None:
    assert "Connection refused" in await reached(folder, network=False)
    assert await reached(folder, network=True) == "reached"


@in_sandbox
async def test_what_is_declared_readable_is_seen_but_not_written(folder: Path) -> None:
    secret = folder.parent / "secret"
    tool = shell_tool(folder, sandbox="bubblewrap", readable=[secret])
    assert (await ran(tool, f"cat {secret}")).text == "hidden"
    assert "Read-only file system" in (await ran(tool, f"echo 1 > {secret}")).text


def test_a_folder_that_holds_the_system_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="holds the system"):
        shell_tool("/")
    assert not shell_tool("/", sandbox="none").sandboxed


def test_a_sandbox_that_cannot_be_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ConfigurationError, match="the program bwrap is not there"):
        shell_tool(folder, sandbox="bubblewrap")
    assert not shell_tool(folder, sandbox="auto").sandboxed


def test_an_unknown_kind_of_sandbox_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="'docker' is none of"):
        shell_tool(folder, sandbox="docker")  # type: ignore[arg-type]  # the point of it


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10%\r50%\r100%\ndone\r\n", "100%\ndone\n"),
        ("a\x07b\x08c\x9b", "abc"),
        ("tab\tstays", "tab\tstays"),
        ("cut \x1b[3", "cut 3"),
        ("\x1b(Bplain", "plain"),
    ],
)
def test_escape_sequences_are_left_out(printed: str, text: str) -> None:
    assert plain_text(printed) == text


@given(st.text(st.sampled_from("a\x1b[]0;m\x07\\\r\n\x08")))
def test_nothing_that_moves_a_terminal_is_left(printed: str) -> None:
    assert not set(plain_text(printed)) & set("\x1b\x07\x08\r")
