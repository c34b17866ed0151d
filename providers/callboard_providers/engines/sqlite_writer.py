"""Group commit: what waits to be written goes into one transaction.

At synchronous=FULL a commit waits for the disk; 64 operations in one transaction wait once. It
is made in a thread, unless there is little to write and the disk is quick: going there and back
takes longer than that.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from callboard.actors.waiting import Answer
from callboard.errors import ActorError, CallboardError, CommitFailed, ConfigurationError
from callboard.journaling.sqlite_file import BUSY, BUSY_S, code_of, unwritten

MOST = 256  # operations in one transaction
FEW = 4  # operations that may be written in the event loop's thread
INLINE_S = 0.001  # unless it takes longer than this
CHECKPOINT_PAGES = 2_000  # in the log, 8 MB, when they are moved into the file: takes some 10 ms
T = TypeVar("T")
Operation = Callable[[sqlite3.Connection], T]


class _Waiting:
    """One operation, who waits for it, and what follows in the event loop."""

    __slots__ = ("after", "answer", "error", "operation", "result")

    def __init__(self, operation: Operation[Any], after: Callable[[Any], None] | None) -> None:
        self.operation = operation
        self.after = after
        self.answer = Answer()
        self.result: Any = None
        self.error: Exception | None = None


class Writer:
    """Writes operations in the order in which they came, many in one transaction.

    An operation looks first and raises, or writes and does not raise: so one that is refused
    takes nothing of the others back.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._waiting: deque[_Waiting] = deque()
        self._wake = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)
        self._limiter = anyio.CapacityLimiter(1)
        self._lock = Lock()  # of the connection
        self._version = 0
        self._problem: CallboardError | None = None
        self._few_s = 0.0  # what writing a few operations takes
        self._be_patient(0.0)
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

    async def write(
        self, operation: Operation[T], *, after: Callable[[T], None] | None = None
    ) -> T:
        """Have an operation written; returns once it is on the disk.

        `after` is called with its result in the event loop before this returns, in the order of
        the file, also where this was cancelled meanwhile.

        Raises:
            CommitFailed: nothing of it was written. What the operation raises.
        """
        if self._problem is not None:
            raise self._problem
        waiting = _Waiting(operation, after)
        self._waiting.append(waiting)
        self._wake.set()
        return await waiting.answer.wait()  # type: ignore[no-any-return]

    async def run(self) -> None:
        """Write what comes, until `stop`; who is cancelled lets the others write their ends."""
        try:
            with self._scope:
                while True:
                    while self._waiting:
                        await self._write_some()
                    self._wake = anyio.Event()
                    await self._wake.wait()
        finally:
            self._problem = CommitFailed(f"{self._path} is closed")
            while self._waiting:
                self._waiting.popleft().answer.fail(self._problem)

    def stop(self) -> None:
        self._scope.cancel()

    async def _write_some(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        if not self._write_at_once(batch):
            with anyio.CancelScope(shield=True):
                await run_sync(self._write_in_thread, batch, limiter=self._limiter)
        for waiting in batch:
            if waiting.error is not None:
                waiting.answer.fail(waiting.error)
                continue
            if waiting.after is not None:
                waiting.after(waiting.result)
            waiting.answer.set(waiting.result)

    def _write_at_once(self, batch: list[_Waiting]) -> bool:
        """Write a few operations here. False: it takes waiting, and nothing was written."""
        if len(batch) > FEW or self._few_s > INLINE_S or not self._lock.acquire(blocking=False):
            return False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return False  # another process is writing; if it is anything else, the thread tells
        else:
            self._write_all(batch)
            return True
        finally:
            self._lock.release()

    def _write_in_thread(self, batch: list[_Waiting]) -> None:
        with self._lock:
            self._be_patient(BUSY_S)
            try:
                self._write_all(batch)
            finally:
                self._be_patient(0.0)

    def _be_patient(self, wait_s: float) -> None:
        """How long to wait where another process is writing; never in the event loop's thread."""
        self._connection.execute(f"PRAGMA busy_timeout = {round(wait_s * 1_000)}")

    def _write_all(self, batch: list[_Waiting]) -> None:
        """In one transaction, or each in its own, where only that shows which one fails."""
        try:
            self._write(batch)
        except Exception as error:  # the transaction: nothing of it was written
            is_busy = isinstance(error, sqlite3.Error) and code_of(error) in BUSY
            if len(batch) > 1 and not is_busy:
                for waiting in batch:
                    waiting.error = None
                    self._write_all([waiting])
                return
            if isinstance(error, sqlite3.Error):
                error = unwritten(error, self._path)
            for waiting in batch:
                waiting.error = error

    def _write(self, batch: list[_Waiting]) -> None:
        begun, connection = time.perf_counter(), self._connection
        if not connection.in_transaction:
            connection.execute("BEGIN IMMEDIATE")
        try:
            for waiting in batch:
                try:
                    waiting.result = waiting.operation(connection)
                except (ActorError, CommitFailed, ConfigurationError) as refused:
                    waiting.error = refused
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if len(batch) <= FEW:
            took_s = min(time.perf_counter() - begun, 3 * INLINE_S)
            self._few_s = 0.75 * self._few_s + 0.25 * took_s  # one slow commit is chance

    def has_news(self) -> bool:
        """Whether another process has written since the last time, as far as can be seen now."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return False  # it is seen the next time
        finally:
            self._lock.release()
        changed, self._version = version != self._version, version
        return bool(changed)

    def close(self) -> None:
        with self._lock:
            self._connection.close()
