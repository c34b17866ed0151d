"""Group commit: what waits to be written goes into one transaction, in one thread.

At synchronous=FULL a commit waits for the disk; 64 operations in one transaction wait once.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from callboard.actors.waiting import Answer
from callboard.errors import ActorError, CallboardError, CommitFailed, ConfigurationError
from callboard.journaling.sqlite_file import BUSY_S, unwritten

MOST = 256  # operations in one transaction
CHECKPOINT_BYTES = 8_000_000
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
        self._limiter = anyio.CapacityLimiter(1)
        self._lock = Lock()  # of the connection
        self._version = 0
        self._problem: CallboardError | None = None
        connection.execute(f"PRAGMA busy_timeout = {round(BUSY_S * 1_000)}")

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
        """Write what comes, until cancelled."""
        try:
            while True:
                while self._waiting:
                    await self._write_some()
                self._wake = anyio.Event()
                await self._wake.wait()
        finally:
            self._problem = CommitFailed(f"{self._path} is closed")
            while self._waiting:
                self._waiting.popleft().answer.fail(self._problem)

    async def _write_some(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        with anyio.CancelScope(shield=True):
            try:
                await run_sync(self._write, batch, limiter=self._limiter)
            except Exception as error:  # the transaction: nothing of it was written
                problem = error
                if isinstance(error, sqlite3.Error):
                    problem = unwritten(error, self._path)
                for waiting in batch:
                    waiting.error = problem
        for waiting in batch:
            if waiting.error is not None:
                waiting.answer.fail(waiting.error)
                continue
            if waiting.after is not None:
                waiting.after(waiting.result)
            waiting.answer.set(waiting.result)

    def _write(self, batch: list[_Waiting]) -> None:
        with self._lock:
            connection = self._connection
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

    def has_news(self) -> bool:
        """Whether another process has written since the last time, as far as can be seen now."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        finally:
            self._lock.release()
        changed, self._version = version != self._version, version
        return bool(changed)

    def close(self) -> None:
        with self._lock:
            self._connection.close()
