"""The time in which a worker of an engine's file takes part."""

from __future__ import annotations

from contextlib import AsyncExitStack
from types import TracebackType

import anyio

from callboard_providers.engines.sqlite_worker import SqliteWorker

RELEASE_S = 5.0  # what giving everything back may take


class WorkerTerm:
    """Renews a worker's lease, and releases at the end."""

    def __init__(self, worker: SqliteWorker, workers: list[SqliteWorker]) -> None:
        self._worker = worker
        self._workers = workers
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> SqliteWorker:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(group.cancel_scope.cancel)
        self._workers.append(self._worker)
        try:
            await self._worker.renew()
        except BaseException:
            self._workers.remove(self._worker)
            await self._stack.aclose()
            raise
        group.start_soon(self._worker.keep_renewing)
        return self._worker

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            with anyio.move_on_after(RELEASE_S, shield=True):
                await self._worker.release()
        finally:
            self._workers.remove(self._worker)
            await self._stack.aclose()  # without the error, which the group would wrap
        return None
