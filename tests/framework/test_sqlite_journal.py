"""SqliteJournal beside other agents, other processes, cancellation and death."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from callboard import Effect, ReActAgent, SqliteJournal, tool
from callboard.errors import CommitFailed, JournalConflict
from callboard.journaling.records import Activated, ToolStarted, Withdrawn
from callboard.testing import ScriptedModel, call, pairing_faults, say
from callboard.tooling.tool_context import ToolContext
from tests.framework.kit import Ledger, Script, agent_of, echo, shape, statuses
from tests.run_script import plain_environment

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]
A, B = Withdrawn("a"), Withdrawn("b")
ONLY_ASYNCIO = pytest.mark.parametrize("anyio_backend", ["asyncio"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


@pytest.fixture
def journal(file: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal(file) as opened:
        yield opened


@pytest.fixture
def other(file: Path, journal: SqliteJournal) -> Iterator[sqlite3.Connection]:
    """Another program on the journal's file."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        yield connection


async def test_agents_with_addresses_of_their_own_share_a_file(file: Path) -> None:
    with SqliteJournal(file, address="a/1") as one, SqliteJournal(file, address="a/2") as two:
        await one.append([A], 0)
        await two.append([B], 0)
        assert (list(await one.read()), list(await two.read())) == ([A], [B])


async def test_many_agents_at_once_in_one_file(file: Path) -> None:
    async def run(n: int) -> None:
        with SqliteJournal(file, address=f"worker/{n}") as journal:
            agent, _ = agent_of([call("echo", "a", x=str(n)), "done"], echo, journal=journal)
            await agent.run("go")
            said[n] = shape(agent.messages)[2]

    said: dict[int, str] = {}
    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(run, n)
    assert said == {n: f"a: {n}" for n in range(20)}


async def test_an_older_owner_writes_no_more(file: Path, journal: SqliteJournal) -> None:
    """Opening an agent's journal takes the agent over, whatever its older owner does then."""
    ledger = Ledger()
    older, _ = agent_of(["hello", call("charge", "a", amount=1)], ledger.charge, journal=journal)
    await older.run("go")
    with SqliteJournal(file) as taken:
        newer, _ = agent_of([], journal=taken)
        await newer.resume()
        with pytest.raises(JournalConflict, match="another process has taken this agent over"):
            await older.run("charge")
        assert [r.epoch for r in await taken.read() if isinstance(r, Activated)] == [1]
    assert ledger.entries == []


async def test_each_opening_is_a_new_epoch(file: Path) -> None:
    for answer in ("one", "two", "three"):
        with SqliteJournal(file) as journal:
            await agent_of([answer], journal=journal)[0].run("go")
    with SqliteJournal(file) as journal:
        records = await journal.read()
    assert [r.epoch for r in records if isinstance(r, Activated)] == [1, 2]


def test_one_journal_serves_several_event_loops(journal: SqliteJournal) -> None:
    agent = ReActAgent(model=ScriptedModel(["one", "two", "three"]), journal=journal)
    for backend in ("asyncio", "trio", "asyncio"):
        anyio.run(agent.run, "go", backend=backend)
    assert shape(agent.messages)[1::2] == ["assistant: one", "assistant: two", "assistant: three"]


# -- a file that is busy ---------------------------------------------------------------------------


async def test_the_event_loop_goes_on_while_another_program_writes(
    journal: SqliteJournal, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN IMMEDIATE")
    async with anyio.create_task_group() as group:
        group.start_soon(journal.append, [A], 0)
        for _ in range(30):
            await anyio.sleep(0.001)
        assert list(other.execute("SELECT n FROM journal")) == []
        other.execute("COMMIT")
    assert list(await journal.read()) == [A]


async def test_a_file_that_another_program_reads_is_written(
    journal: SqliteJournal, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN")
    other.execute("SELECT * FROM journal").fetchall()
    await journal.append([A], 0)
    assert len(await journal.read()) == 1


@ONLY_ASYNCIO
async def test_a_withdrawn_append_is_absent_for_good(
    journal: SqliteJournal, other: sqlite3.Connection
) -> None:
    """A native cancel leaves the thread alone, which waits for the file."""
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(journal.append([A], 0))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
    other.execute("COMMIT")
    written = list(await journal.read())
    await journal.append([B], len(written))
    await asyncio.sleep(0.15)
    assert list(await journal.read()) == [*written, B]


@ONLY_ASYNCIO
@pytest.mark.parametrize("moment_s", [0, 0.001, 0.003])
async def test_a_native_cancel_on_a_busy_file_leaves_an_agent_that_goes_on(
    journal: SqliteJournal, other: sqlite3.Connection, moment_s: float
) -> None:
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, then="done", journal=journal)
    for _ in range(4):
        other.execute("BEGIN IMMEDIATE")
        task = asyncio.create_task(agent.run("go"))
        await asyncio.sleep(moment_s)
        task.cancel()
        other.execute("COMMIT")
        await asyncio.wait([task])
    assert (await agent.run("again")).text == "done"
    assert pairing_faults(agent.messages) == []
    assert len(ledger.entries) <= 1


async def test_the_write_ahead_log_does_not_grow_without_bound(
    file: Path, journal: SqliteJournal
) -> None:
    for n in range(60):
        await journal.append([Withdrawn("x" * 400_000)], n)
    assert file.with_name("agent.db-wal").stat().st_size < 15_000_000


# -- several processes -----------------------------------------------------------------------------

RACE = """
import anyio, sys
from callboard import SqliteJournal
from callboard.errors import JournalConflict
from callboard.journaling.records import Withdrawn

async def main():
    with SqliteJournal(sys.argv[1]) as journal:
        for n in range(20):
            try:
                await journal.append([Withdrawn(sys.argv[2])], len(await journal.read()))
            except JournalConflict:
                continue
            print("written")

anyio.run(main)
"""


def test_processes_that_race_for_a_new_file_lose_nothing(file: Path) -> None:
    command = [sys.executable, "-c", RACE, str(file)]
    environment = plain_environment()
    racing = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True, env=environment)
        for n in range(4)
    ]
    written = sum([process.communicate()[0].count("written") for process in racing])
    assert [process.returncode for process in racing] == [0] * 4
    with SqliteJournal(file) as journal:
        assert len(anyio.run(journal.read)) == written > 0


async def test_a_backup_is_taken_while_the_agent_writes(
    tmp_path: Path, journal: SqliteJournal, other: sqlite3.Connection
) -> None:
    await journal.append([A], 0)
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        other.backup(backup)
    await journal.append([B], 1)
    with SqliteJournal(tmp_path / "backup.db") as kept:
        assert list(await kept.read()) == [A]
        assert kept.digest_key == journal.digest_key


# -- what is kept ----------------------------------------------------------------------------------


def test_the_key_is_random_and_kept_and_the_file_private(file: Path, tmp_path: Path) -> None:
    with SqliteJournal(file) as first, SqliteJournal(tmp_path / "other.db") as second:
        assert len(first.digest_key) == 32
        assert first.digest_key != second.digest_key
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        assert modes == {0o600}
        with SqliteJournal(file) as again:
            assert again.digest_key == first.digest_key


@pytest.mark.parametrize("effect", list(Effect))
async def test_a_call_that_was_cut_off_by_death_ends_by_its_declared_effect(
    file: Path, effect: Effect
) -> None:
    """Pure and idempotent calls run again, the latter under the same key; others are unknown."""
    keys: list[str] = []

    @tool(effect=effect)
    async def act(context: ToolContext) -> str:
        keys.append(context.idempotency_key)
        return "acted"

    live, _ = agent_of([say(call("act", "a")), "done"], act)
    await live.run("go")
    records = list(await live.journal.read())
    cut = next(n for n, record in enumerate(records) if isinstance(record, ToolStarted)) + 1
    with SqliteJournal(file) as journal:
        await journal.append(records[:cut], 0)
        heir, _ = agent_of(["done"], act, journal=journal)
        assert (await heir.resume()).text == "done"
        again = effect is not Effect.EFFECT
        assert statuses(heir) == {"a": "ok" if again else "unknown_outcome"}
        assert keys == ["agent/agent:a"] * (1 + again)


async def test_a_failed_commit_is_told_and_the_next_run_goes_on(
    file: Path, journal: SqliteJournal, other: sqlite3.Connection
) -> None:
    agent, _ = agent_of(["one", "two"], journal=journal)
    await agent.run("go")
    other.execute(
        "CREATE TRIGGER full BEFORE INSERT ON journal BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(CommitFailed, match="could not be written: .*full"):
        await agent.run("go")
    other.execute("DROP TRIGGER full")
    assert (await agent.run("again")).text == "two"


async def test_opened_tells_what_the_file_holds_before_the_first_run(file: Path) -> None:
    with SqliteJournal(file) as journal:
        agent, _ = agent_of(["one"], journal=journal)
        await agent.run("go")
        await agent.steer("later")
    with SqliteJournal(file) as journal:
        heir, _ = agent_of([], journal=journal)
        state = await heir.opened()
        assert [message.text for message in state.messages] == ["go", "one"]
        assert (len(state.queued), state.run_id) == (1, None)
