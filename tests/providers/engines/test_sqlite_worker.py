"""What a worker of an SQLite file hands out while shards come and go, and while it reads."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing
from callboard.errors import ConfigurationError
from callboard.testing.engine_kit import A, Share, ids, letter, until, working
from callboard_providers.engines import sqlite_shares as shares
from callboard_providers.engines.sqlite import SqliteEngine
from callboard_providers.engines.sqlite_worker import WINDOW, SqliteWorker

pytestmark = pytest.mark.anyio
MANY = [Address("kind", f"{number}") for number in range(40)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def opened(file: Path, *, lease_s: float = 30.0, poll_s: float = 0.02) -> SqliteEngine:
    return SqliteEngine(file, lease_s=lease_s, poll_s=poll_s, synchronous="NORMAL")


async def renewed(share: Share) -> None:
    """What the worker does each quarter of its lease."""
    assert isinstance(share.worker, SqliteWorker)
    await share.worker.renew()


async def sent(engine: SqliteEngine, name: str, **more: Any) -> None:
    """One letter to each of the many."""
    await engine.send(*[letter(f"{name} {to.key}", to, **more) for to in MANY])


async def busy(engine: SqliteEngine, share: Share) -> None:
    """All of the many have a letter in hand, and half of them are wanted by another worker."""
    await sent(engine, "first")
    await share.letters(len(MANY))


async def test_words_on_the_control_lane_reach_who_is_about_to_move(file: Path) -> None:
    async with opened(file) as one, opened(file) as other, working(one) as share:
        await busy(one, share)
        async with working(other):
            await renewed(share)
            await sent(one, "word", control=True)
            assert len(await share.letters(len(MANY))) == len(MANY)


async def test_who_is_asked_by_one_at_work_is_handed_it_before_both_move(file: Path) -> None:
    """Else the one would wait for the other, and the other for the move."""
    async with opened(file) as one, opened(file) as other, working(one) as share:
        await busy(one, share)
        async with working(other):
            await renewed(share)
            await sent(one, "before")
            await sent(one, "asked", chain=(A,))
            found = await share.letters(2 * len(MANY))
    for to in MANY:
        assert [one.id for one in found if one.to == to] == [f"before {to.key}", f"asked {to.key}"]


async def test_what_waited_for_a_move_is_handed_out_when_it_does_not_come(file: Path) -> None:
    async with opened(file) as one, opened(file) as other, working(one) as share:
        await busy(one, share)
        async with working(other):
            await renewed(share)
            await sent(one, "second")
            found = list[Letter]()
            with anyio.move_on_after(0.3):
                while True:
                    found += await share.worker.next()
            assert 0 < len(found) < len(MANY)
        await renewed(share)
        assert len(found + await share.letters(len(MANY) - len(found))) == len(MANY)


async def test_letters_behind_a_question_do_not_keep_a_shard(file: Path) -> None:
    """A human may take days to answer, and others of the shard would wait as long."""
    async with opened(file) as one, opened(file) as other, working(one) as share:
        await busy(one, share)
        for to in MANY:
            await share.worker.commit(Commit(to, standing=Standing.WAITING))
        async with working(other) as heir:
            await renewed(share)
            await renewed(share)
            await renewed(heir)
            moved = [to for to in MANY if heir.worker.owns(to)]
            assert 0 < len(moved) < len(MANY)
            found = await heir.letters(len(moved))
            assert sorted(ids(found)) == sorted([f"first {to.key}" for to in moved])


async def test_one_that_runs_keeps_its_shard(file: Path) -> None:
    async with opened(file) as one, opened(file) as other, working(one) as share:
        for to in MANY:
            await share.worker.commit(Commit(to, standing=Standing.RUNNING))
        async with working(other):
            await renewed(share)
            await renewed(share)
            assert all([share.worker.owns(to) for to in MANY])


async def test_a_letter_that_is_withdrawn_does_not_come_when_it_is_due(file: Path) -> None:
    async with opened(file) as engine, working(engine) as share:
        await engine.send(letter("late", due=time.time() + 0.2))
        assert await engine.withdraw("late")
        assert await share.silent(0.4)


async def test_many_timers_of_one_address_keep_no_letter_back(file: Path) -> None:
    later = time.time() + 3_600
    async with opened(file) as engine, working(engine) as share:
        await engine.send(*[letter(f"timer {n}", due=later) for n in range(4 * WINDOW)])
        await engine.send(*[letter(f"{n}") for n in range(3 * WINDOW)])
        found: list[str] = []
        while len(found) < 3 * WINDOW:
            new = ids(await share.letters(1))
            await share.worker.commit(Commit(A, done=new))
            found += new
    assert found == [f"{n}" for n in range(3 * WINDOW)]


async def test_one_who_gives_up_waiting_misses_nothing(file: Path) -> None:
    async with opened(file, poll_s=60.0) as one, opened(file) as other, working(one) as share:
        await other.send(letter("1"))
        assert isinstance(share.worker, SqliteWorker)
        share.worker.look()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await share.worker.next()
        assert ids(await share.letters(1)) == ["1"]


async def test_the_first_letter_of_a_file_is_not_missed_by_a_renewal_before_it_is_read(
    file: Path,
) -> None:
    async with opened(file, poll_s=60.0) as one, opened(file) as other, working(one) as share:
        await other.send(letter("1"))
        await renewed(share)
        assert isinstance(share.worker, SqliteWorker)
        share.worker.look()
        assert ids(await share.letters(1)) == ["1"]


async def test_workers_share_at_once_and_take_what_is_given_back_at_once(file: Path) -> None:
    """They do not wait for the next renewal, which comes after a quarter of the lease."""
    one, other = opened(file, lease_s=60.0), opened(file, lease_s=60.0)
    async with one, other, working(one) as share:
        async with working(other) as heir:
            await until(lambda: any([heir.worker.owns(to) for to in MANY]), within_s=1)
        await until(lambda: all([share.worker.owns(to) for to in MANY]), within_s=1)


async def test_what_is_done_is_not_remembered_for_ever(file: Path) -> None:
    async with opened(file) as engine, working(engine) as share:
        for number in range(10):
            await engine.send(letter(f"{number}"))
            await share.letters(1)
            await share.worker.commit(Commit(A, done=(f"{number}",)))
        assert isinstance(share.worker, SqliteWorker)
        assert not share.worker._forgotten


class Late(SqliteEngine):
    """Lets something happen between a read and its use."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read(self, query: Callable[..., Any], *values: Any) -> Any:
        found = await super().read(query, *values)
        if query is shares.letters_of and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        return found


async def test_what_is_sent_while_a_window_is_filled_is_not_missed(file: Path) -> None:
    async with Late(file, synchronous="NORMAL", poll_s=60.0) as engine, working(engine) as share:
        await engine.send(*[letter(f"{n}") for n in range(WINDOW + 1)])
        found = await share.letters(WINDOW)
        engine.meanwhile = lambda: engine.send(letter("meanwhile"))
        await share.worker.commit(Commit(A, done=ids(found)))
        assert ids(await share.letters(2)) == [f"{WINDOW}", "meanwhile"]


async def test_one_operation_that_fails_takes_no_other_with_it(file: Path) -> None:
    """They share a transaction."""
    failed: list[BaseException] = []

    def broken(connection: Any) -> None:
        connection.execute("INSERT INTO seen VALUES ('half', 0)")
        raise KeyError("broken")

    async def spoil(engine: SqliteEngine) -> None:
        try:
            await engine.write(broken)
        except KeyError as error:
            failed.append(error)

    async with opened(file) as engine, working(engine) as share:
        async with anyio.create_task_group() as group:
            group.start_soon(engine.send, letter("1"))
            group.start_soon(spoil, engine)
            group.start_soon(engine.send, letter("2"))
        await engine.send(letter("half"))
        assert (len(failed), sorted(ids(await share.letters(3)))) == (1, ["1", "2", "half"])


async def test_an_id_that_is_no_text_is_refused(file: Path) -> None:
    async with opened(file) as engine:
        with pytest.raises(ConfigurationError, match=r"the id '\\ud800' of a letter is no Unicode"):
            await engine.send(letter("\ud800"))


async def test_an_error_that_is_no_text_is_buried_with_its_letter(file: Path) -> None:
    async with opened(file) as engine:
        await engine.send(letter("1"))
        await engine.bury(letter("1"), "failed", "no file \udce9")
        (dead,) = await engine.dead()
    assert dead.error == r"no file \udce9"


async def test_an_engine_on_a_file_that_cannot_be_had_may_be_entered_later(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "not yet" / "team.db")
    with pytest.raises(ConfigurationError, match="no folder"):
        await engine.__aenter__()
    (tmp_path / "not yet").mkdir()
    async with engine:
        await engine.send(Letter("1", A, {"value": 1}))
