"""Where the group commit of SqliteEngine writes: in the loop's thread, or in one of its own."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from threading import get_ident

import anyio
import pytest
from anyio.lowlevel import checkpoint

from callboard.journaling.sqlite_file import opened
from callboard_providers.engines.sqlite_writer import FEW, INLINE_S, Writer

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]


@asynccontextmanager
async def writing(path: Path) -> AsyncGenerator[Writer]:
    writer = Writer(opened(path), path)
    async with anyio.create_task_group() as group:
        group.start_soon(writer.run)
        yield writer
        writer.stop()
    writer.close()


def where(connection: sqlite3.Connection) -> int:
    del connection
    return get_ident()


async def test_a_little_is_written_without_going_to_a_thread(tmp_path: Path) -> None:
    async with writing(tmp_path / "team.db") as writer:
        assert await writer.write(where) == get_ident()


async def test_much_is_written_in_one_transaction_in_a_thread(tmp_path: Path) -> None:
    threads: list[int] = []

    async def write(writer: Writer) -> None:
        threads.append(await writer.write(where))

    path = tmp_path / "team.db"
    writer = Writer(opened(path), path)
    async with anyio.create_task_group() as running:
        async with anyio.create_task_group() as group:
            for _ in range(FEW + 1):
                group.start_soon(write, writer)
            await anyio.wait_all_tasks_blocked()  # all of them wait when it begins
            running.start_soon(writer.run)
        writer.stop()
    writer.close()
    assert len(threads) == FEW + 1
    assert get_ident() not in threads


async def test_where_commits_take_long_they_are_made_in_a_thread(tmp_path: Path) -> None:
    def slowly(connection: sqlite3.Connection) -> None:
        del connection
        time.sleep(3 * INLINE_S)  # a disk

    async with writing(tmp_path / "team.db") as writer:
        for _ in range(4):
            await writer.write(slowly)
        assert await writer.write(where) != get_ident()


async def test_a_file_that_another_program_holds_keeps_no_other_task_waiting(
    tmp_path: Path,
) -> None:
    path = tmp_path / "team.db"
    threads: list[int] = []

    async def write(writer: Writer) -> None:
        threads.append(await writer.write(where))

    async with writing(path) as writer, anyio.create_task_group() as group:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            group.start_soon(write, writer)
            for _ in range(20):
                await checkpoint()
            assert threads == []
            other.execute("COMMIT")
    assert threads != [get_ident()]
