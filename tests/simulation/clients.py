"""Who sends from outside: clients that try until they are heard, and a human who approves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import anyio
import anyio.lowlevel

from callboard.actors.engine import Standing
from callboard.errors import ActorError, AskTimeout, CommitFailed
from callboard.replies import Reply, RunFailed
from tests.simulation.case import Job
from tests.simulation.process import Life, Process
from tests.simulation.world import World

T = TypeVar("T")
REST_S = 0.5
LONGEST_S = 200.0  # that one try may take, more than any deadline of a case


class Crowd:
    """All clients of one case."""

    def __init__(self, world: World, processes: Sequence[Process]) -> None:
        self.world = world
        self.processes = processes

    async def heard(self, act: Callable[[Life], Awaitable[T]]) -> T:
        """Do it in one process or another, until it is done."""
        while True:
            up = [one.life for one in self.processes if one.life is not None and one.life.is_up]
            if up:
                life = self.world.chance.choice(up)
                with life.visit(), anyio.move_on_after(LONGEST_S):
                    try:
                        return await act(life)
                    except CommitFailed as error:
                        self.world.tell(f"a client in {life.name} is told {error}")
                if not life.is_dead and life.is_up:
                    await anyio.lowlevel.checkpoint()
            await anyio.sleep(REST_S)

    async def do(self, job: Job) -> None:
        """Have one job done, or find that it takes too long."""
        await anyio.sleep(job.at)
        payload = _payload(job)
        if not job.asked or job.after_s:
            await self.heard(
                lambda life: life.system.ref(job.to).tell(payload, id=job.id, after_s=job.after_s)
            )
            self.world.acknowledged.add(job.id)
            return
        try:
            answer = await self.heard(
                lambda life: life.system.ref(job.to).ask(
                    payload, id=job.id, timeout_s=job.timeout_s
                )
            )
        except (AskTimeout, RunFailed, ActorError) as error:
            self.world.answers[job.id] = error
        else:
            self.world.answers[job.id] = answer
        self.world.tell(f"{job.id} got {self.world.answers[job.id]!r:.100}")

    async def result(self, job: Job) -> Reply | None:
        """How the run of a job ended; None if it never began."""
        stored = self.world.books.answers.get(job.id)
        if stored is None or not stored.final or "reply" not in stored.body:
            return None
        try:
            return await self.heard(lambda life: life.system.result(job.id, timeout_s=5.0))
        except RunFailed as failed:
            return failed.reply

    async def approve(self) -> None:
        """Look for what waits, again and again, and answer it."""
        while True:
            await anyio.sleep(1.0)
            waiting = [
                address
                for address, stored in self.world.store.addresses.items()
                if stored.standing is Standing.WAITING
            ]
            for address in waiting:
                with anyio.move_on_after(20.0):
                    await self.heard(partial(self._answer, str(address)))

    async def _answer(self, to: str, life: Life) -> None:
        ref = life.system.ref(to)
        try:
            for asked in await ref.pending():
                if sum(map(ord, asked.call_id)) % 4 == 0:
                    if await ref.deny(asked.id, by="ann"):
                        self.world.denied.add(asked.call_id)
                else:
                    await ref.approve(asked.id, by="ann")
        except ActorError as error:
            self.world.tell(f"the human in {life.name} is told {error!r}")


def _payload(job: Job) -> object:
    if job.kind in ("clerk", "chief"):
        return job.text
    return {"number": job.number, "turns": job.turns}
