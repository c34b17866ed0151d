"""The engine on one SQLite file: several processes of one machine may share it.

Not for network file systems. `callboard journal show FILE` reads it like any SqliteJournal.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync

from callboard.actors.address import Address
from callboard.actors.engine import (
    MAILBOX_BOUND,
    ActorEntry,
    Commit,
    DeadEntry,
    Letter,
    StoredAnswer,
    WorkerEntry,
)
from callboard.errors import CommitFailed, ConfigurationError
from callboard.journaling.blobs import FileBlobs
from callboard.journaling.records import Record
from callboard_providers.engines import sqlite_queries as queries
from callboard_providers.engines.sqlite_answers import Answers
from callboard_providers.engines.sqlite_commits import Packed, Written, keep
from callboard_providers.engines.sqlite_letters import new_ones, packed, put, text_of
from callboard_providers.engines.sqlite_nodes import Nodes
from callboard_providers.engines.sqlite_tables import engine_file
from callboard_providers.engines.sqlite_term import WorkerTerm
from callboard_providers.engines.sqlite_worker import SqliteWorker
from callboard_providers.engines.sqlite_writer import Operation, T, Writer

LEASE_S = 10.0
POLL_S = 0.02
SWEEP_S = 60.0
SEEN_S = 3_600.0  # how long the ids of letters are known
ANSWERS_S = 86_400.0  # how long answers are kept


class SqliteEngine:
    """Letters, journals and answers in one file, which is made for its owner only.

    `synchronous="FULL"` (the default): what was kept survives a power loss. With "NORMAL" it
    survives the death of processes, and a power loss can take the last commits. `lease_s` is how
    long a process that stands still owns its addresses (of one that has ended they are free at
    once, unless it ended in another container); `poll_s` is how soon a process sees what
    another one has written. Large data go into the folder `FILE.blobs`, locks into
    `FILE.nodes`.

    Raises, when it is entered:
        ConfigurationError: nothing can be opened there, or it is another program's database.
        JournalDamaged: it is damaged, or a newer callboard wrote it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        mailbox_bound: int = MAILBOX_BOUND,
        lease_s: float = LEASE_S,
        poll_s: float = POLL_S,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"synchronous={synchronous!r}: give 'FULL' or 'NORMAL'")
        if not str(path):
            raise ConfigurationError("the engine needs a file: sqlite:team.db")
        for name, value in (("lease_s", lease_s), ("poll_s", poll_s)):
            if value <= 0:
                raise ConfigurationError(f"{name}={value!r}: it must be above 0")
        self.path = Path(path)
        self.name = f"sqlite:{path}"
        self.blobs = FileBlobs(self.path.with_name(f"{self.path.name}.blobs"))
        self.nodes = Nodes(self.path)
        self.lease_s = lease_s
        self._synchronous = synchronous
        self._bound = mailbox_bound
        self._poll_s = poll_s
        self._digest_key = b""
        self._writer: Writer | None = None
        self._reader: queries.Reader | None = None
        self._answers = Answers()
        self._workers: list[SqliteWorker] = []
        self._tasks: TaskGroup | None = None

    def __repr__(self) -> str:
        return f"SqliteEngine({str(self.path)!r})"

    @property
    def digest_key(self) -> bytes:
        """As `Engine.digest_key`; the file keeps it."""
        self._open_reader()
        return self._digest_key

    def now(self) -> float:
        """As `Engine.now`."""
        return time.time()

    async def __aenter__(self) -> Self:
        if self._writer is not None:
            raise ConfigurationError(f"{self!r} is in use: make another engine on the same file")
        connection = await run_sync(self._opened)
        try:
            reader = queries.Reader(self.path)
            self._digest_key = await reader.read(queries.digest_key)
            self._writer = Writer(connection, self.path)
        except BaseException:
            connection.close()
            raise
        self._reader = reader
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._writer.run)
        self._tasks.start_soon(self._poll)
        self._tasks.start_soon(self._sweep)
        return self

    def _opened(self) -> sqlite3.Connection:
        return engine_file(self.path, synchronous=self._synchronous)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        tasks, writer, reader = self._tasks, self._writer, self._reader
        assert tasks is not None  # it was entered
        assert writer is not None
        assert reader is not None
        self._tasks = self._writer = self._reader = None
        try:
            writer.stop()
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)
        finally:
            writer.close()
            reader.close()
        return False  # the group would say that it caught what ends the block

    def _open_reader(self) -> queries.Reader:
        if self._reader is None:
            raise ConfigurationError(f"{self!r} is not open: use it inside its `async with` block")
        return self._reader

    async def write(
        self, operation: Operation[T], *, after: Callable[[T], None] | None = None
    ) -> T:
        """Have something written, in a transaction with what others write now."""
        self._open_reader()
        assert self._writer is not None  # as the reader
        return await self._writer.write(operation, after=after)

    async def read(self, query: Callable[..., T], *values: Any) -> T:
        """Have something read, in a thread."""
        return await self._open_reader().read(query, *values)

    # -- letters ---------------------------------------------------------------------------------

    async def send(self, *letters: Letter) -> None:
        """As `Engine.send`."""
        texts = [(letter, packed(letter)) for letter in letters]

        def send(connection: sqlite3.Connection) -> Written:
            return Written(put(connection, new_ones(connection, texts, self._bound)))

        await self.write(send, after=self._written)

    def _written(self, written: Written) -> None:
        """What was written, in the order of the file."""
        for n, letter in written.sent:
            for worker in self._workers:
                worker.sent(n, letter)
        for worker in self._workers:
            worker.kept(written)
        self._answers.told(written.answers)

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        """As `Engine.answer`."""
        return await self._answers.wait(
            letter_id,
            lambda: self.read(queries.answers, [letter_id]),
            timeout_s=timeout_s,
            final=final,
        )

    async def withdraw(self, letter_id: str) -> bool:
        """As `Engine.withdraw`; another process may have it in hand already."""
        if any([worker.has_in_hand(letter_id) for worker in self._workers]):
            return False

        def withdraw(connection: sqlite3.Connection) -> str | None:
            if queries.is_owned_elsewhere(connection, letter_id, [w.name for w in self._workers]):
                return None
            row = connection.execute("DELETE FROM inbox WHERE id = ?", (letter_id,))
            return letter_id if row.rowcount else None

        return await self.write(withdraw, after=self._forget) is not None

    def _forget(self, letter_id: str | None) -> None:
        if letter_id is not None:
            for worker in self._workers:
                worker.forget(letter_id)

    # -- addresses -------------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """As `Engine.commit`."""
        await self.keep(commit, owner=None)

    async def keep(self, commit: Commit, *, owner: str | None) -> None:
        """Keep a commit; of a worker, if it still owns the address."""
        ready = Packed(commit, bound=self._bound, owner=owner)
        await self.write(lambda connection: keep(connection, ready), after=self._written)

    async def records(self, address: Address, start: int = 0) -> Sequence[Record]:
        """As `Engine.records`."""
        return await self.read(queries.records, address, start)

    async def arguments(self, address: Address) -> Mapping[str, Any] | None:
        """As `Engine.arguments`."""
        return await self.read(queries.arguments, address)

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> bool:
        """As `Engine.spawn`."""
        text = text_of(dict(arguments), what="the arguments")
        return await self.write(lambda connection: queries.spawn(connection, address, text))

    async def actors(
        self, kind: str | None = None, *, after: Address | None = None, limit: int = 1_000
    ) -> Sequence[ActorEntry]:
        """As `Engine.actors`."""
        return await self.read(queries.actors, kind, after, limit)

    def worker(
        self,
        kinds: Sequence[str] = (),
        *,
        on_lost: Callable[[Callable[[Address], bool]], None],
    ) -> WorkerTerm:
        """As `Engine.worker`."""
        return WorkerTerm(SqliteWorker(self, kinds, on_lost), self._workers)

    async def workers(self) -> Sequence[WorkerEntry]:
        """As `Engine.workers`."""
        return await self.read(queries.workers)

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        """As `Engine.subscribe`."""
        await self.write(lambda connection: queries.subscribe(connection, topic, address))

    async def unsubscribe(self, topic: str, address: Address) -> None:
        """As `Engine.unsubscribe`."""
        await self.write(lambda connection: queries.unsubscribe(connection, topic, address))

    async def subscribers(self, topic: str) -> Sequence[Address]:
        """As `Engine.subscribers`."""
        return await self.read(queries.subscribers, topic)

    # -- dead letters ----------------------------------------------------------------------------

    async def bury(self, letter: Letter, reason: str, error: str | None = None) -> None:
        """As `Engine.bury`."""
        body = packed(letter)
        await self.write(
            lambda connection: queries.bury(connection, letter, body, reason, error),
            after=lambda _: self._forget(letter.id),
        )

    async def dead(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadEntry]:
        """As `Engine.dead`."""
        return await self.read(queries.dead, after, limit)

    async def revive(self, number: int) -> bool:
        """As `Engine.revive`."""

        def revive(connection: sqlite3.Connection) -> Written | None:
            return queries.revive(connection, number, self._bound)

        written = await self.write(revive, after=lambda one: self._written(one or Written()))
        return written is not None

    async def drop(self, number: int) -> bool:
        """As `Engine.drop`."""
        return await self.write(lambda connection: queries.drop(connection, number))

    async def backup(self, path: str | Path) -> None:
        """Copy the file as it is now, while everything goes on.

        Raises:
            ConfigurationError: there is something at `path` already, or it cannot be written.
        """
        await run_sync(queries.backup, self.path, Path(path))

    # -- in the background -----------------------------------------------------------------------

    async def _poll(self) -> None:
        """Look for what other processes wrote: letters for us, and answers."""
        is_behind, members = False, ""
        while True:
            await anyio.sleep(self._poll_s)
            if self._writer is None or not (self._writer.has_news() or is_behind):
                continue
            for worker in self._workers:
                worker.look()
            try:
                news = await self.read(queries.news, self._answers.waiting())
            except CommitFailed:
                is_behind = True  # the file could not be read just now
                continue
            is_behind = False
            self._answers.told(news.answers)
            if news.members != members:
                members = news.members
                for worker in self._workers:
                    worker.hurry()

    async def _sweep(self) -> None:
        """Forget ids and answers that are old enough, in small steps."""
        while True:
            await anyio.sleep(SWEEP_S)
            with suppress(CommitFailed):  # the disk is full, say: some other time
                await self.write(partial(queries.sweep, seen_s=SEEN_S, answers_s=ANSWERS_S))
