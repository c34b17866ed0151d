"""Whoever comes, waits, is cancelled or leaves: the limits hold and nobody is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.errors import ModelError
from callboard.testing import virtual_backend
from callboard_mixins.rate_limiter import Lane
from callboard_mixins.rate_window import WINDOW_S, RateLimit


@dataclass(frozen=True)
class Guest:
    """Somebody who asks for a place."""

    comes_s: float
    stays_s: float
    patience_s: float | None  # until it is cancelled
    pauses: bool  # the provider says "too many requests" when it leaves


SECONDS = st.integers(0, 50).map(lambda tenths: tenths / 10)
GUESTS = st.lists(
    st.builds(
        Guest,
        comes_s=SECONDS,
        stays_s=SECONDS,
        patience_s=st.none() | SECONDS,
        pauses=st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=80, deadline=None)
@given(GUESTS, st.integers(1, 3), st.integers(1, 6), st.sampled_from(["asyncio", "trio"]))
def test_limits_hold_in_order_and_every_place_comes_back(
    guests: Sequence[Guest], concurrency: int, requests: int, backend: str
) -> None:
    limit = RateLimit(
        concurrency=concurrency, requests_per_minute=requests, pause_s=3, longest_wait_s=None
    )
    name, options = virtual_backend(backend)
    anyio.run(partial(_visited, guests, limit), backend=name, backend_options=options)


async def _visited(guests: Sequence[Guest], limit: RateLimit) -> None:
    lane = Lane(limit)
    inside: set[int] = set()
    let_in: list[tuple[float, int]] = []
    came: list[int] = []

    async def visit(at: int, guest: Guest) -> None:
        await anyio.sleep(guest.comes_s + at / 1000)  # nobody comes at the same time
        came.append(at)
        with anyio.move_on_after(guest.patience_s):
            await lane.enter("m", 0)
            inside.add(at)
            let_in.append((anyio.current_time(), at))
            assert len(inside) <= (limit.concurrency or 0)
            try:
                await anyio.sleep(guest.stays_s)
            finally:
                inside.remove(at)
                if guest.pauses:
                    lane.pause(None)
                lane.leave()

    async with anyio.create_task_group() as group:
        for at, guest in enumerate(guests):
            group.start_soon(visit, at, guest)
    order = [at for _, at in let_in]
    assert order == [at for at in came if at in order], "first come, first served"
    assert {at for at, guest in enumerate(guests) if guest.patience_s is None} <= set(order)
    most = limit.requests_per_minute or 0
    times = [time for time, _ in let_in]
    assert all(b - a >= WINDOW_S - 1e-3 for a, b in zip(times, times[most:], strict=False))
    assert (lane._running, len(lane._line)) == (0, 0)


@settings(max_examples=30, deadline=None)
@given(st.lists(SECONDS, min_size=1, max_size=8), st.integers(1, 9))
def test_who_gives_up_does_so_in_time(stays: Sequence[float], longest_s: int) -> None:
    async def run() -> None:
        lane = Lane(RateLimit(concurrency=1, longest_wait_s=longest_s))

        async def visit(stay_s: float) -> None:
            begun = anyio.current_time()
            try:
                await lane.enter("m", 0)
            except ModelError:
                assert abs(anyio.current_time() - begun - longest_s) < 1e-3
                return
            assert anyio.current_time() - begun <= longest_s + 1e-3
            await anyio.sleep(stay_s)
            lane.leave()

        async with anyio.create_task_group() as group:
            for stay_s in stays:
                group.start_soon(visit, stay_s)
        assert (lane._running, len(lane._line)) == (0, 0)

    name, options = virtual_backend("asyncio")
    anyio.run(run, backend=name, backend_options=options)
