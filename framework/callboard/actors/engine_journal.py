"""The journal of one address in an engine. What a record does to letters goes into its commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Engine, Standing, StoredAnswer
from callboard.actors.payloads import to_body
from callboard.driving import reply_of
from callboard.errors import Fenced
from callboard.journaling.records import Queued, Record, RunFinished, RunStarted


class EngineJournal:
    """A Journal whose appends also say what became of letters, in the same commit.

    A run has the id of the letter that asked for it, and so has a queued message. So RunStarted
    and Queued take that letter out of the mailbox, and RunFinished answers it.
    """

    def __init__(
        self, engine: Engine, address: Address, keep: Callable[[Commit], Awaitable[None]]
    ) -> None:
        self.digest_key = engine.digest_key
        self._engine = engine
        self.address = address
        self._keep = keep
        self._is_sealed = False

    def __repr__(self) -> str:
        return f"EngineJournal({self._engine.name!r}, {self.address})"

    def seal(self) -> None:
        """Write nothing more: what is cut off from here on looks as if the process had died, and
        whoever owns the address next goes on with it.
        """
        self._is_sealed = True

    async def append(self, records: Sequence[Record], expected: int) -> None:
        """As `Journal.append`.

        Raises:
            Fenced: another process owns the address, or this one is on its way out.
        """
        if self._is_sealed:
            raise Fenced(f"{self.address}: this process gave it back and writes no more")
        done: list[str] = []
        answers: list[StoredAnswer] = []
        standing: Standing | None = None
        for record in records:
            if isinstance(record, RunStarted):
                done.append(record.run_id)
                standing = Standing.RUNNING
            elif isinstance(record, Queued):
                done.append(record.item_id)
                standing = Standing.RUNNING if record.wake else standing
            elif isinstance(record, RunFinished):
                answers.append(StoredAnswer(record.run_id, to_body(reply_of(record))))
                standing = Standing.IDLE
        await self._keep(
            Commit(
                self.address,
                records,
                expected,
                done=done,
                answers=answers,
                standing=standing,
            )
        )

    async def read(self, start: int = 0) -> Sequence[Record]:
        """As `Journal.read`."""
        return await self._engine.records(self.address, start)
