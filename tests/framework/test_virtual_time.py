"""Virtual time: sleeps take no time, threads and sockets are still waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
import pytest

from callboard.errors import ConfigurationError
from callboard.testing.virtual_time import virtual_backend, virtual_backends

Main = Callable[[], Awaitable[object]]


def run(main: Main, backend: str, seed: int | None = None) -> object:
    name, options = virtual_backend(backend, seed=seed)
    return anyio.run(main, backend=name, backend_options=options)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_hour_takes_no_time(backend: str) -> None:
    async def main() -> float:
        begin = anyio.current_time()
        await anyio.sleep(3600)
        return anyio.current_time() - begin

    started = time.monotonic()
    assert run(main, backend) == pytest.approx(3600)
    assert time.monotonic() - started < 1


def test_timers_strike_in_their_order(backend: str) -> None:
    struck: list[float] = []

    async def strike(after: float) -> None:
        await anyio.sleep(after)
        struck.append(after)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for after in (3.0, 1.0, 2.0):
                group.start_soon(strike, after)

    run(main, backend)
    assert struck == [1.0, 2.0, 3.0]


def test_a_thread_is_waited_for_before_a_later_deadline(backend: str) -> None:
    async def main() -> str:
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync(time.sleep, 0.05)
        return "in time"

    assert run(main, backend) == "in time"


def test_a_deadline_strikes_beside_a_busy_thread(backend: str) -> None:
    async def main() -> bool:
        with anyio.move_on_after(0.02) as scope:
            await anyio.to_thread.run_sync(time.sleep, 0.2, abandon_on_cancel=True)
        return scope.cancelled_caught

    assert run(main, backend) is True


def test_time_jumps_again_after_a_thread(backend: str) -> None:
    async def main() -> None:
        await anyio.to_thread.run_sync(time.sleep, 0.01)
        await anyio.sleep(3600)

    started = time.monotonic()
    run(main, backend)
    assert time.monotonic() - started < 2


def test_a_socket_is_waited_for_before_a_later_deadline(backend: str) -> None:
    heard: list[bytes] = []

    async def main() -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with listener, anyio.create_task_group() as group:
            group.start_soon(partial(listener.serve, _greet))
            with anyio.fail_after(60):
                async with await anyio.connect_tcp("127.0.0.1", port) as client:
                    heard.append(await client.receive())
            group.cancel_scope.cancel()

    run(main, backend)
    assert heard == [b"hello"]


async def _greet(client: anyio.abc.SocketStream) -> None:
    async with client:
        await anyio.to_thread.run_sync(time.sleep, 0.02)
        await client.send(b"hello")


async def _order_of_ten() -> list[int]:
    order: list[int] = []

    async def note(number: int) -> None:
        await anyio.lowlevel.checkpoint()
        order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(note, number)
    return order


def test_a_seed_shuffles_tasks() -> None:
    orders = {str(run(_order_of_ten, "asyncio", seed)) for seed in range(5)}
    assert len(orders) > 1


def test_a_seed_shuffles_repeatably() -> None:
    assert run(_order_of_ten, "asyncio", 7) == run(_order_of_ten, "asyncio", 7)


def test_without_a_seed_the_order_is_that_of_asyncio() -> None:
    assert run(_order_of_ten, "asyncio") == list(range(10))


def test_an_executor_of_asyncio_is_waited_for() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        with anyio.fail_after(60):
            await loop.run_in_executor(None, time.sleep, 0.02)
        return "in time"

    assert run(main, "asyncio") == "in time"


def test_another_backend_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'curio' is no backend"):
        virtual_backend("curio")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", virtual_backends(), ids=["asyncio", "trio"])
async def test_the_pytest_plugin_takes_virtual_backends() -> None:
    await anyio.sleep(3600)
