"""One fault each, with real processes over a SQLite file and over a NATS server: what is done
again, and what not.
"""

from __future__ import annotations

import random
import signal
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from callboard.actors.address import Address
from callboard.actors.engine import Engine
from callboard.actors.system import ActorSystem
from callboard.errors import AskTimeout, MailboxFull
from callboard.journaling.records import RunFinished
from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.replies import Outcome
from callboard.testing.engine_kit import letter, until
from callboard_providers.engines.nats_server import NatsServers
from callboard_providers.engines.sqlite import SqliteEngine
from tests.faults.engine.crew import SEED, Crew
from tests.faults.engine.nats_crew import NatsCrew

pytestmark = [
    pytest.mark.faults,
    pytest.mark.real_clock,
    pytest.mark.anyio,
    pytest.mark.timeout(120),
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
]
CLERK = Address("clerk", "a")


HANDS = "tests.faults.engine.hands"


@pytest.fixture
def file_crew(tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(tmp_path, module=HANDS)
    yield crew
    crew.close()


@pytest.fixture(params=["sqlite", "nats"])
def crew(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Crew]:
    if request.param == "sqlite":
        yield request.getfixturevalue("file_crew")
        return
    with NatsServers(tmp_path / "nats") as servers:
        crew = NatsCrew.at(tmp_path, servers, HANDS)
        yield crew
        crew.close()


@asynccontextmanager
async def client(crew: Crew) -> AsyncGenerator[ActorSystem]:
    """A system that serves nothing. Leaving it ends the workers."""
    async with ActorSystem(crew.engine()) as system:
        yield system


async def started(crew: Crew) -> subprocess.Popen[str]:
    return await anyio.to_thread.run_sync(crew.start)


async def ended(crew: Crew, worker: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    await anyio.to_thread.run_sync(crew.kill, worker, number)


def noted(crew: Crew, name: str) -> list[str]:
    """What stands in the ledger under a name, in order."""
    return [text for found, text, _ in crew.noted() if found == name]


async def results(engine: Engine | None) -> list[tuple[str, str]]:
    """How the calls of the clerk ended."""
    assert engine is not None
    messages = fold(list(await engine.records(CLERK))).messages
    return [(m.tool_name, m.status) for m in messages if isinstance(m, ToolResultMessage)]


# -- a process is killed ---------------------------------------------------------------------------


async def test_a_plain_actor_that_is_killed_does_its_letter_again_and_tells_it_once(
    crew: Crew, tmp_path: Path
) -> None:
    text = f"die until {tmp_path / 'enough'}"
    async with client(crew) as system:
        first = await started(crew)
        await system.ref("teller/t").tell(text)
        await anyio.to_thread.run_sync(first.wait, 20)
        (tmp_path / "enough").touch()
        await started(crew)
        await until(lambda: bool(noted(crew, "note")), within_s=10)
        await system.ref("note/sink").ask("last", timeout_s=10)
    assert noted(crew, "teller") == [text, text]
    assert noted(crew, "note") == [text, "last"]


async def test_a_letter_that_kills_each_process_is_dead_and_the_next_one_is_done(
    crew: Crew,
) -> None:
    async with client(crew) as system:
        await system.ref("teller/t").tell("die", id="poison")
        await system.ref("teller/t").tell("harmless")
        for _ in range(4):  # the first one is not counted: nobody suspected it yet
            worker = await anyio.to_thread.run_sync(partial(crew.start, lives=False))
            await anyio.to_thread.run_sync(worker.wait, 20)
        await started(crew)
        await until(lambda: "harmless" in noted(crew, "note"), within_s=10)
        assert system.engine is not None
        (dead,) = await system.engine.dead()
    assert (dead.letter.id, noted(crew, "note")) == ("poison", ["harmless"])
    assert "and it was never done" in (dead.error or "")


async def test_an_effect_that_was_cut_off_is_not_done_again_and_the_model_hears_it(
    crew: Crew,
) -> None:
    hang = crew.folder / "ledger.hang"
    hang.touch()
    async with client(crew) as system:
        first = await started(crew)
        await system.ref(CLERK).tell("order 1", id="run-1")
        await until(lambda: bool(noted(crew, "effect_note")), within_s=10)
        await ended(crew, first)
        hang.unlink()
        await started(crew)
        reply = await system.result("run-1", timeout_s=20)
        assert reply.outcome is Outcome.FINISHED
        assert ("effect_note", "unknown_outcome") in await results(system.engine)
    assert noted(crew, "effect_note") == ["1"]


async def test_a_killed_process_is_taken_over_in_a_moment(crew: Crew) -> None:
    async with client(crew) as system:
        first = await started(crew)
        await system.ref("note/a").ask("before", timeout_s=10)
        await started(crew)
        await ended(crew, first)
        with anyio.fail_after(1.25 * crew.lease_s + 2.5):
            for number in range(20):
                await system.ref(f"note/{number}").ask("after", timeout_s=10)


async def test_a_caller_that_is_killed_leaves_a_run_that_ends(crew: Crew) -> None:
    async with client(crew) as system:
        with anyio.move_on_after(0.3) as scope:
            await system.ref(CLERK).tell("order 1", id="run-1")
            scope.cancel()
    await started(crew)
    async with client(crew) as system:
        assert (await system.result("run-1", timeout_s=20)).outcome is Outcome.FINISHED


# -- a process stands still ------------------------------------------------------------------------


async def test_one_that_was_stopped_past_its_lease_writes_nothing_when_it_goes_on(
    crew: Crew,
) -> None:
    hang = crew.folder / "ledger.hang"
    hang.touch()
    async with client(crew) as system:
        zombie = await started(crew)
        await system.ref(CLERK).tell("order 1", id="run-1")
        await until(lambda: bool(noted(crew, "effect_note")), within_s=10)
        zombie.send_signal(signal.SIGSTOP)
        hang.unlink()
        await started(crew)
        with anyio.fail_after(crew.lease_s * 1.25 + 2):
            await system.result("run-1", timeout_s=20)
        assert system.engine is not None
        before = list(await system.engine.records(CLERK))
        zombie.send_signal(signal.SIGCONT)
        await anyio.sleep(crew.lease_s)
        assert list(await system.engine.records(CLERK)) == before
        assert [isinstance(record, RunFinished) for record in before].count(True) == 1
        await ended(crew, crew.workers[1])
        await system.ref("note/a").ask("it works on", timeout_s=10)
        assert zombie.poll() is None
    assert noted(crew, "effect_note") == ["1"]


# -- two processes, coming and going ---------------------------------------------------------------


async def test_two_processes_share_and_nobody_is_served_twice_or_out_of_turn(crew: Crew) -> None:
    async with client(crew) as system:
        first = await started(crew)
        for number in range(60):
            if number == 20:
                await started(crew)
            if number == 40:
                await ended(crew, first, signal.SIGTERM)
            for key in "abcd":
                await system.ref(f"slow/{key}").tell(f"{key}{number}")
        await until(lambda: len(noted(crew, "slow")) >= 240, within_s=30)
        done = noted(crew, "slow")
    for key in "abcd":
        assert [one for one in done if one[0] == key] == [f"{key}{n}" for n in range(60)]
    assert len({process for _, _, process in crew.noted()}) == 2


async def test_a_rolling_restart_under_load_interrupts_nothing_that_could_finish(
    crew: Crew,
) -> None:
    async with client(crew) as system:
        for _ in range(2):
            await started(crew)
        async with anyio.create_task_group() as group:
            for clerk in range(8):
                group.start_soon(asks, system, clerk)
            for _ in range(4):
                await anyio.sleep(0.3)
                await started(crew)
                await ended(crew, crew.workers[0], signal.SIGTERM)
        assert system.engine is not None
        for clerk in range(8):
            records = list(await system.engine.records(Address("clerk", f"{clerk}")))
            found = [m for m in fold(records).messages if isinstance(m, ToolResultMessage)]
            assert [one.status for one in found] == ["ok"] * 24
    assert len(noted(crew, "effect_note")) == len(set(noted(crew, "effect_note"))) == 96


async def asks(system: ActorSystem, clerk: int) -> None:
    for number in range(12):
        await system.ref(f"clerk/{clerk}").ask(f"order {clerk}-{number}", timeout_s=60)


async def test_records_and_what_they_send_are_kept_together_wherever_it_is_killed(
    tmp_path: Path,
) -> None:
    """Other stores have to send again what was recorded; here both are one transaction."""
    crew, chance = Crew(tmp_path, module="tests.faults.engine.committing"), random.Random(SEED)
    for _ in range(5):
        worker = await started(crew)
        await anyio.sleep(chance.uniform(0.01, 0.2))
        await ended(crew, worker)
    async with SqliteEngine(crew.file) as engine:
        told = {entry.address.key: entry for entry in await engine.actors("kind")}
    assert told["a"].records == told["b"].unread > 0


# -- too much, too late ----------------------------------------------------------------------------


async def test_a_mailbox_that_is_full_refuses_and_empties_in_order(file_crew: Crew) -> None:
    async with SqliteEngine(file_crew.file, mailbox_bound=50) as engine:
        with pytest.raises(MailboxFull, match="the mailbox of slow/a is full: 50 letters"):
            for number in range(60):
                await engine.send(letter(f"{number}", Address("slow", "a")))
        await started(file_crew)
        await until(lambda: len(noted(file_crew, "slow")) == 50, within_s=20)
    assert noted(file_crew, "slow") == [f"{number}" for number in range(50)]


async def test_ten_thousand_mailboxes_are_emptied(file_crew: Crew) -> None:
    async with SqliteEngine(file_crew.file, synchronous="NORMAL") as engine:
        for start in range(0, 10_000, 500):
            some = range(start, start + 500)
            await engine.send(*[letter(f"{n}", Address("note", f"{n}")) for n in some])
        await started(file_crew)
        await until(lambda: len(noted(file_crew, "note")) >= 10_000, within_s=90)
        entries = await engine.actors("note", limit=20_000)
    assert len(set(noted(file_crew, "note"))) == len(noted(file_crew, "note")) == 10_000
    assert sum([entry.unread for entry in entries]) == 0


async def test_who_gave_up_before_anybody_came_is_not_served(crew: Crew) -> None:
    async with client(crew) as system:
        with pytest.raises(AskTimeout):
            await system.ref(CLERK).ask("order 1", timeout_s=0.2)
        await started(crew)
        await system.ref(CLERK).ask("order 2", timeout_s=20)
    assert noted(crew, "effect_note") == ["2"]


async def test_who_gives_up_in_the_middle_of_a_tool_ends_the_run_elsewhere(crew: Crew) -> None:
    (crew.folder / "ledger.hang").touch()
    async with client(crew) as system:
        await started(crew)
        with pytest.raises(AskTimeout):
            await system.ref(CLERK).ask("order 1", timeout_s=1.0, id="run-1")
        reply = await system.result("run-1", timeout_s=10)
    assert (reply.outcome, noted(crew, "effect_note")) == (Outcome.INTERRUPTED, ["1"])


async def test_an_approval_waits_past_its_process_and_comes_from_another_one(
    crew: Crew,
) -> None:
    async with client(crew) as system:
        first = await started(crew)
        reply = await system.ref("guarded/g").ask("order 1", timeout_s=20)
        assert reply.outcome is Outcome.AWAITING_APPROVAL
        await anyio.sleep(0.6)  # it is put away
        await ended(crew, first)
    async with client(crew) as system:
        await started(crew)
        ref = system.ref("guarded/g")
        while asked := await ref.pending():
            assert await ref.approve(asked[0].id, by="alice")
            await anyio.sleep(0.1)
        assert (await system.result(reply.run_id, timeout_s=20)).outcome is Outcome.FINISHED
    assert noted(crew, "effect_note") == ["1"]
