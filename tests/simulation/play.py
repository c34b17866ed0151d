"""Plays one case on a clock that jumps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
from anyio._backends._asyncio import CancelScope

from callboard.testing.virtual_time import virtual_backend
from tests.framework.histories.play import _seed_trio
from tests.simulation.case import Case
from tests.simulation.clients import Crowd
from tests.simulation.laws import check
from tests.simulation.process import Process
from tests.simulation.store import Store
from tests.simulation.world import World

FOR_EVER_S = 100_000.0
TROUBLE_S = 60.0  # how long things go wrong behind the last job
TO_THE_END_S = 400.0  # what is left may take so long once nothing goes wrong any more


def played(case: Case, store: type[Store] = Store) -> World:
    """Play it to its end. `world.broken` says which law does not hold.

    The scopes of anyio are kept in sets whose order rests on where in memory they lie. With one
    hash for all it is that of their making, so that a seed takes the same steps each time.
    """
    name, options = virtual_backend(case.backend, seed=case.seed)
    if name == "trio":
        _seed_trio(case.seed)
    by_place = CancelScope.__hash__
    setattr(CancelScope, "__hash__", _same_hash)  # noqa: B010  # it is none of ours
    try:
        return anyio.run(partial(_play, case, store), backend=name, backend_options=options)
    finally:
        setattr(CancelScope, "__hash__", by_place)  # noqa: B010  # or large sets would be slow


def _same_hash(_: CancelScope) -> int:
    return 0


async def _play(case: Case, store: type[Store]) -> World:
    world = World(case, store)
    processes = [Process(world, f"p{number}") for number in range(case.processes)]
    crowd = Crowd(world, processes)
    with anyio.move_on_after(FOR_EVER_S) as limit:
        async with anyio.create_task_group() as group:
            for process in processes:
                group.start_soon(process.run)
            group.start_soon(crowd.approve)
            group.start_soon(_kill, world, processes)
            group.start_soon(_continue, processes)
            group.start_soon(_end, world, crowd)
            await world.over.wait()
            group.cancel_scope.cancel()
    if limit.cancelled_caught:
        world.breaks("nothing hangs")
    return world


async def _kill(world: World, processes: Sequence[Process]) -> None:
    for at in sorted(world.case.deaths):
        await anyio.sleep(max(0.0, at - anyio.current_time()))
        life = world.chance.choice(processes).life
        if life is not None:
            life.die()


async def _continue(processes: Sequence[Process]) -> None:
    """Have those that were stopped go on in time, also where nothing in them waits for that."""
    while True:
        await anyio.sleep(0.5)
        for process in processes:
            if process.life is not None:
                process.life.go_on()


async def _end(world: World, crowd: Crowd) -> None:
    """Have all jobs done, then everything brought to its end, and look at what came of it."""
    async with anyio.create_task_group() as group:
        for job in world.case.jobs:
            group.start_soon(crowd.do, job)
    await _is_quiet(world, TROUBLE_S)
    world.is_calm = True
    world.tell("nothing goes wrong any more")
    if not await _is_quiet(world, TO_THE_END_S):
        world.was_stuck = True
        world.tell(f"stuck, so all begin anew: {world.store.left()}")
        await _begin_anew(crowd.processes)
        if not await _is_quiet(world, TO_THE_END_S):
            world.breaks("everything comes to its end", *world.store.left())
    for job in world.case.jobs:
        reply = await crowd.result(job)
        if reply is not None:
            world.replies[job.id] = reply
    check(world, await world.store.dead(limit=1_000))
    world.over.set()


async def _is_quiet(world: World, within_s: float) -> bool:
    """Whether nothing is left to do, soon enough."""
    with anyio.move_on_after(within_s):
        while world.store.left():  # nobody tells
            await anyio.sleep(0.5)
        return True
    return False


async def _begin_anew(processes: Sequence[Process]) -> None:
    """A rolling restart."""
    for process in processes:
        life = process.life
        if life is not None and life.is_up:
            life.leave.set()
        await anyio.sleep(20.0)
