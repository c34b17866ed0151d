"""What may have ended a process is handled alone, so that those beside it are not buried for it."""

from __future__ import annotations

import anyio
import pytest

from callboard.actors.suspects import WAIT_S, Suspects

pytestmark = pytest.mark.anyio


async def test_suspects_are_handled_one_at_a_time() -> None:
    suspects, now, most = Suspects(), 0, 0

    async def handle() -> None:
        nonlocal now, most
        async with suspects.alone():
            now += 1
            most = max(most, now)
            await anyio.sleep(0.1)
            now -= 1

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(handle)
    assert most == 1


async def test_who_is_asked_by_one_that_is_handled_goes_on_after_a_while() -> None:
    suspects, begun = Suspects(), anyio.current_time()

    async def asked() -> None:
        async with suspects.alone():
            assert anyio.current_time() - begun == pytest.approx(WAIT_S)

    async with suspects.alone(), anyio.create_task_group() as group:
        group.start_soon(asked)
    async with suspects.alone():  # it was given back once
        assert anyio.current_time() - begun == pytest.approx(WAIT_S)
