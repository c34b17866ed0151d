"""What NatsEngine does where leases, connections and consumers come and go."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing, StoredAnswer
from callboard.actors.shards import SHARDS
from callboard.errors import CommitFailed, ConfigurationError, JournalConflict
from callboard.journaling.records import LayerFact
from callboard_providers.engines.nats import NatsEngine
from callboard_providers.engines.nats_server import NatsServers
from callboard_providers.engines.nats_worker import NatsWorker
from tests.providers.engines.conftest import wiped

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]
A = Address("clerk", "a")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def url(nats_servers: NatsServers) -> str:
    await wiped(nats_servers.url)
    return nats_servers.url


def forget(_: Callable[[Address], bool]) -> None:
    return


@asynccontextmanager
async def working(engine: NatsEngine) -> AsyncGenerator[NatsWorker]:
    async with engine.worker(["clerk"], on_lost=forget) as worker:
        yield worker


def letter(id: str) -> Letter:
    return Letter(id, A, {"value": id})


def fact(n: int) -> LayerFact:
    return LayerFact("test", {"n": n})


def be_late(worker: NatsWorker) -> None:
    """As an event loop that stood still for longer than the lease."""
    for lease in worker._leases.held.values():
        lease.until = 0.0


async def ids(worker: NatsWorker, count: int) -> list[str]:
    found: list[str] = []
    with anyio.fail_after(10):
        while len(found) < count:
            found += [one.id for one in await worker.next()]
    return found


async def test_a_letter_that_comes_while_the_lease_is_late_is_handed_out_later(url: str) -> None:
    async with NatsEngine(url, lease_s=2) as engine, working(engine) as worker:
        await engine.send(letter("1"))
        assert await ids(worker, 1) == ["1"]
        be_late(worker)
        await engine.send(letter("2"))
        assert await ids(worker, 1) == ["2"]


async def test_one_who_answers_from_outside_takes_no_address_over(url: str) -> None:
    async with NatsEngine(url) as engine, NatsEngine(url) as other, working(engine) as worker:
        await worker.commit(Commit(A, [fact(0)], 0, standing=Standing.WAITING))
        await other.commit(Commit(A, [fact(1)], 1))
        with pytest.raises(JournalConflict, match="holds 2 records and not 1"):
            await worker.commit(Commit(A, [fact(2)], 1))
        await worker.commit(Commit(A, [fact(2)], 2))
        assert await engine.records(A) == [fact(0), fact(1), fact(2)]


async def test_commits_of_one_address_at_once_stand_in_a_line(url: str) -> None:
    async with NatsEngine(url) as engine, working(engine) as worker:
        async with anyio.create_task_group() as group:
            group.start_soon(worker.commit, Commit(A, [fact(0)], 0))
            for number in range(5):
                answer = StoredAnswer(f"{number}", {"value": number})
                group.start_soon(worker.commit, Commit(A, answers=[answer]))
        assert await engine.records(A) == [fact(0)]
        assert (await engine.answer("4", timeout_s=1)).body == {"value": 4}


async def test_an_answer_that_was_not_heard_is_found_all_the_same(url: str) -> None:
    found: list[StoredAnswer] = []

    async def ask(engine: NatsEngine) -> None:
        found.append(await engine.answer("1", timeout_s=30))

    engine, other = NatsEngine(url), NatsEngine(url)
    async with engine, other, anyio.create_task_group() as group:
        group.start_soon(ask, engine)
        await anyio.sleep(0.2)
        client = engine.stream.client
        for subscription in client._subs.values():
            if subscription.subject.startswith("cb.ans"):
                await client._send_unsubscribe(subscription._id)
        await other.commit(Commit(A, answers=[StoredAnswer("1", {"value": 1})]))
    assert [one.body for one in found] == [{"value": 1}]


async def test_what_is_too_large_for_the_server_is_refused_with_its_size(url: str) -> None:
    async with NatsEngine(url) as engine:
        with pytest.raises(CommitFailed, match=r"2,000,\d+ bytes .* blobs"):
            await engine.send(Letter("1", A, {"value": "x" * 2_000_000}))
        assert await engine.actors() == []


@pytest.mark.parametrize(
    "spec", ["nats://secret@127.0.0.1:9", "nats://ann:secret@127.0.0.1:9,nats://secret@127.0.0.2:9"]
)
async def test_what_is_secret_in_a_url_is_told_nobody(spec: str) -> None:
    engine = NatsEngine(spec)
    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1:9") as told:
        async with engine:
            pytest.fail("there is a server")
    assert "secret" not in f"{told.value}{engine.name}{engine!r}"


@pytest.mark.slow
@pytest.mark.parametrize("servers", [1, 3])
async def test_a_letter_is_kept_by_one_server_and_by_three(tmp_path: Path, servers: int) -> None:
    with NatsServers(tmp_path, servers=servers) as started:
        async with NatsEngine(started.url) as engine:
            await engine.send(letter("1"))
            assert [one.unread for one in await engine.actors()] == [1]


@pytest.mark.slow
@pytest.mark.timeout(100)
async def test_workers_share_evenly_and_one_more_moves_its_share_only(url: str) -> None:
    async def settled(count: int) -> dict[str, frozenset[int]]:
        while True:
            found = {one.name: frozenset(one.shards["clerk"]) for one in await engine.workers()}
            sizes = [len(shards) for shards in found.values()]
            if len(sizes) == count and sum(sizes) == SHARDS and max(sizes) - min(sizes) <= 2:
                return found
            await anyio.sleep(0.1)

    with anyio.fail_after(60):
        async with NatsEngine(url) as engine, AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(working(engine))
            before = await settled(3)
            await stack.enter_async_context(working(engine))
            after = await settled(4)
            (newcomer,) = set(after) - set(before)
            assert len(after[newcomer]) == SHARDS // 4
            assert all(after[name] <= before[name] for name in before)
