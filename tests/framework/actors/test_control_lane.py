"""The lane of control letters when their address is lost and comes back."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from callboard import ReActAgent
from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.control_lane import ControlLane
from callboard.actors.engine import Commit, Letter
from callboard.testing import ScriptedModel

pytestmark = pytest.mark.anyio
CLERK = Address("clerk", "a")


class SlowDesk:
    """Keeps a commit once it may."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks, self.may_keep = tasks, anyio.Event()
        self.begun, self.done, self.gone = list[str](), list[str](), list[str]()

    async def keep(self, commit: Commit) -> None:
        self.begun += commit.done
        await self.may_keep.wait()
        self.done += commit.done

    async def actor(self, address: Address) -> Actor:
        return ReActAgent(address=address, model=ScriptedModel([]))

    def start(self, work: Any, *arguments: Any) -> None:
        self.tasks.start_soon(work, *arguments)

    def answered(self, letter_id: str, value: Any, error: BaseException | None) -> None: ...
    def let_go(self, address: Address) -> None: ...
    def moved(self, letter_id: str) -> None:
        self.gone.append(letter_id)


def word(id: str) -> Letter:
    return Letter(id, CLERK, {"control": "interrupt"}, control=True)


async def test_what_is_handed_out_again_is_done_once_behind_what_was_begun() -> None:
    """The old lane's letters are forgotten, and those that come back have a lane of their own."""
    async with anyio.create_task_group() as tasks:
        desk = SlowDesk(tasks)
        lane = ControlLane(desk)
        for id in "12":
            lane.put(word(id))
        await anyio.wait_all_tasks_blocked()
        lane.forget(lambda address: address == CLERK)
        for id in "23":
            lane.put(word(id))
        await anyio.wait_all_tasks_blocked()
        desk.may_keep.set()
        await anyio.wait_all_tasks_blocked()
        assert (desk.gone, sorted(desk.done)) == (["1", "2"], ["1", "2", "3"])
        assert not lane.is_busy
