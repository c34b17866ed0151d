"""The one timer that all deadlines of an asyncio loop share."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callboard.tooling.deadlines import Bounds

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


async def test_short_deadlines_beside_a_long_one_leave_no_timers_behind() -> None:
    loop: Any = asyncio.get_running_loop()
    long = Bounds(1_000)
    for _ in range(10):
        short = Bounds(0.001)
        with short.scope:
            await asyncio.sleep(5)
        assert short.scope.cancelled_caught
        short.end()
    long.end()
    assert len([timer for timer in loop._scheduled if not timer.cancelled()]) <= 2
