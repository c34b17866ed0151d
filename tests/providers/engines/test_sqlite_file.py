"""Engine files that are damaged, foreign, full or torn: nothing acknowledged is lost in silence."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import SqliteJournal
from callboard.actors.engine import Commit, StoredAnswer
from callboard.errors import AskTimeout, CommitFailed, ConfigurationError, JournalDamaged
from callboard.testing.engine_kit import A, fact, ids, letter, working
from callboard_providers.engines import sqlite_queries as queries
from callboard_providers.engines.sqlite import SqliteEngine
from tests.run_script import plain_environment

pytestmark = pytest.mark.anyio


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """An engine's file with a journal of three records and 200 letters."""
    path = tmp_path / "team.db"
    async with SqliteEngine(path) as engine:
        await engine.commit(Commit(A, (fact(0), fact(1), fact(2)), 0))
        await engine.send(*[letter(f"{n}", body={"value": "x" * 500}) for n in range(200)])
    return path


def change(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def overwrite(file: Path, copy: Path, *, page: int, content: bytes) -> None:
    """A copy of a file with other content from a page on. Nobody has it open."""
    broken = bytearray(file.read_bytes())
    broken[4096 * page : 4096 * page + len(content)] = content
    copy.write_bytes(broken)


def pages_of(file: Path) -> int:
    return file.stat().st_size // 4096


async def letters(path: Path) -> list[str]:
    """The ids in the mailbox of A, in order."""

    def read(connection: sqlite3.Connection) -> list[str]:
        return [row[0] for row in connection.execute("SELECT id FROM inbox ORDER BY n")]

    async with SqliteEngine(path) as engine:
        return await engine.read(read)


async def refused(path: Path, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        async with SqliteEngine(path):
            pass


# -- files that are no engine's --------------------------------------------------------------------


async def test_a_file_with_torn_pages_is_refused_with_the_remedy(file: Path) -> None:
    overwrite(file, file, page=10, content=b"\xff" * 4096 * 10)
    await refused(file, JournalDamaged, "is damaged .*bring a backup back")


async def test_any_page_that_is_overwritten_is_found(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    for page in range(1, pages_of(file)):
        overwrite(file, copy, page=page, content=random.Random(page).randbytes(2048))
        try:
            found = await letters(copy)
        except JournalDamaged:
            continue
        assert found == [f"{n}" for n in range(200)]  # a page that holds nothing


async def test_a_file_of_a_newer_engine_is_refused_with_the_remedy(file: Path) -> None:
    change(file, "UPDATE engine SET version = 9")
    await refused(file, JournalDamaged, r"engine version 9.*up to version 1: install the newer")


async def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    change(file, "CREATE TABLE orders (id)")
    before = file.read_bytes()
    await refused(file, ConfigurationError, "the database of another program")
    assert file.read_bytes() == before


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("what I wrote " * 100)
    await refused(file, JournalDamaged, r"notes\.txt is no SQLite database")
    assert file.read_text() == "what I wrote " * 100


async def test_a_file_of_a_journal_becomes_an_engines(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    with SqliteJournal(file, address=str(A)) as journal:
        await journal.append([fact(0)], 0)
        key = journal.digest_key
    async with SqliteEngine(file) as engine:
        assert engine.digest_key == key
        await engine.commit(Commit(A, (fact(1),), 1))
        assert list(await engine.records(A)) == [fact(0), fact(1)]


async def test_a_journal_is_read_and_gone_on_with_in_an_engines_file(file: Path) -> None:
    with SqliteJournal(file, address=str(A)) as journal:
        await journal.append([fact(3)], 3)
        assert list(await journal.read()) == [fact(n) for n in range(4)]
    async with SqliteEngine(file) as engine:
        assert len(await engine.records(A)) == 4


async def test_a_letter_whose_text_is_damaged_harms_no_other(file: Path) -> None:
    change(file, "UPDATE inbox SET letter = substr(letter, 1, 20) WHERE id = '0'")
    async with SqliteEngine(file) as engine, working(engine) as share:
        first, second, *_ = await share.letters(2)
    assert (list(first.body), second.id) == (["unreadable"], "1")


# -- no room, torn logs ----------------------------------------------------------------------------


def run(module: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", f"tests.providers.engines.{module}", *arguments]
    done = subprocess.run(
        command, env=plain_environment(), capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="limits sizes as POSIX does")
async def test_a_full_disk_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    found = await anyio.to_thread.run_sync(run, "small_disk", str(tmp_path / "team.db"))
    assert found["refused"] > 10
    assert "could not be written" in found["errors"][0]
    assert set(found["kept"]) >= {f"{n}" for n in range(20, 40)}  # it goes on when there is room
    assert sorted(await letters(tmp_path / "team.db")) == sorted(found["kept"])


async def test_a_full_disk_ends_neither_the_engine_nor_its_workers(tmp_path: Path) -> None:
    async with SqliteEngine(tmp_path / "team.db", lease_s=0.2) as engine, working(engine) as share:
        await engine.write(lambda connection: connection.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(CommitFailed, match="the disk is full"):
            await engine.send(letter("1", body={"value": "x" * 100_000}))
        await anyio.sleep(0.3)
        await engine.write(lambda connection: connection.execute("PRAGMA max_page_count = 100000"))
        await engine.send(letter("2", body={"value": "x" * 100_000}))
        assert ids(await share.letters(1)) == ["2"]


def copied(file: Path, target: Path) -> Path:
    """The file and its log as they stand. In a process of its own: to open a file here and close
    it again would drop the locks of the engine that has it open.
    """
    target.mkdir()
    log = file.with_name(f"{file.name}-wal")
    subprocess.run(["cp", str(file), str(log), str(target)], check=True)
    return target / file.name


async def logged(file: Path, folder: Path) -> tuple[Path, Sequence[int]]:
    """A copy of a file in use, and how long its log was when each of its letters was kept."""
    sizes: list[int] = []
    log = file.with_name(f"{file.name}-wal")
    async with SqliteEngine(file) as engine:
        for number in range(40):
            await engine.send(letter(f"{number}", body={"value": "x" * (97 * number)}))
            sizes.append(log.stat().st_size)
        return copied(file, folder), sizes


@pytest.mark.parametrize("how", ["cut", "overwritten"])
async def test_a_torn_log_keeps_what_was_acknowledged_before_the_tear(
    tmp_path: Path, how: str
) -> None:
    copy, sizes = await logged(tmp_path / "team.db", tmp_path / "copy")
    log = copy.with_name("team.db-wal")
    file, content, chance = copy.read_bytes(), log.read_bytes(), random.Random(how)
    for _ in range(25):
        at = chance.randrange(sizes[0], len(content))
        torn = content[:at] + (b"" if how == "cut" else chance.randbytes(len(content) - at))
        copy.write_bytes(file)
        log.write_bytes(torn)
        copy.with_name("team.db-shm").unlink(missing_ok=True)
        found = await letters(copy)
        safe = sum([size <= at for size in sizes])
        assert len(found) >= safe
        assert found == [f"{n}" for n in range(len(found))]


# -- backups, sweeping -----------------------------------------------------------------------------


async def test_a_backup_while_others_write_is_whole(file: Path, tmp_path: Path) -> None:
    async with SqliteEngine(file, mailbox_bound=100_000, synchronous="NORMAL") as engine:
        await engine.send(*[letter(f"b{n}", body={"value": "x" * 9_000}) for n in range(1_000)])

        async def write() -> None:
            number = 0
            while True:
                await engine.send(letter(f"w{number}"))
                number += 1

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await engine.backup(tmp_path / "copy.db")
            group.cancel_scope.cancel()
    found, whole = await letters(tmp_path / "copy.db"), await letters(file)
    assert 1_200 <= len(found) < len(whole)
    assert whole[: len(found)] == found
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


async def test_a_backup_overwrites_nothing(file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    async with SqliteEngine(file) as engine:
        with pytest.raises(ConfigurationError, match="is there already; name a new file"):
            await engine.backup(tmp_path / "mine")
        with pytest.raises(ConfigurationError, match="no backup at .*No such file"):
            await engine.backup(tmp_path / "no" / "folder")
    assert (tmp_path / "mine").read_text() == "mine"


async def swept(engine: SqliteEngine, age_s: float) -> None:
    """What a sweep does after so many seconds."""

    def age(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE seen SET at = ?", (time.time() - age_s,))
        connection.execute("UPDATE answer SET at = ?", (time.time() - age_s,))

    await engine.write(age)
    await engine.write(partial(queries.sweep, seen_s=3_600.0, answers_s=86_400.0))


async def test_ids_are_known_for_an_hour_and_those_of_waiting_letters_longer(
    tmp_path: Path,
) -> None:
    async with SqliteEngine(tmp_path / "team.db") as engine, working(engine) as share:
        await engine.send(letter("done"), letter("waits"))
        await share.letters(2)
        await share.worker.commit(Commit(A, done=("done",)))
        await swept(engine, 3_500)
        await engine.send(letter("done"), letter("waits"))
        assert await share.silent(0.1)
        await swept(engine, 3_700)
        await engine.send(letter("waits"), letter("done"))
        assert ids(await share.letters(1)) == ["done"]


async def test_what_has_an_answer_is_not_taken_in_again_for_a_day(tmp_path: Path) -> None:
    async with SqliteEngine(tmp_path / "team.db") as engine, working(engine) as share:
        await engine.send(letter("1", asked=True))
        answer = StoredAnswer("1", {"value": 1})
        await share.letters(1)
        await share.worker.commit(Commit(A, done=("1",), answers=(answer,)))
        await swept(engine, 80_000)
        await engine.send(letter("1", asked=True))
        assert await share.silent(0.1)
        assert await engine.answer("1", timeout_s=1) == answer
        await swept(engine, 90_000)
        with pytest.raises(AskTimeout):
            await engine.answer("1", timeout_s=0.01)
