"""What every journal does: one module of tests over the one in memory and the one in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import InMemoryJournal, Journal, ReActAgent, SqliteJournal
from callboard.approvals import Proceed, Verdict
from callboard.errors import JournalConflict
from callboard.journaling.records import LayerFact, Record, Withdrawn
from callboard.journaling.transcript import fold
from callboard.messages import ToolCall
from callboard.testing import call, pairing_faults, say
from tests.framework.kit import Ledger, Script, agent_of, echo, shape, statuses

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]
A, B, C = Withdrawn("a"), Withdrawn("b"), LayerFact("c", {"x": ("\ud800", 1.5)})


@pytest.fixture(params=["memory", "full", "normal"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    if request.param == "memory":
        yield InMemoryJournal()
        return
    with SqliteJournal(tmp_path / "agent.db", synchronous=request.param.upper()) as found:
        yield found


async def test_a_new_journal_is_empty(journal: Journal) -> None:
    assert list(await journal.read()) == []


async def test_records_are_read_back_in_order(journal: Journal) -> None:
    await journal.append([A, B], 0)
    await journal.append([C], 2)
    assert list(await journal.read()) == [A, B, C]
    assert list(await journal.read(2)) == [C]
    assert list(await journal.read(3)) == []


@pytest.mark.parametrize("expected", [0, 2, 99])
async def test_another_length_is_a_conflict_and_nothing_is_written(
    journal: Journal, expected: int
) -> None:
    await journal.append([A], 0)
    with pytest.raises(JournalConflict, match=rf"holds 1 records.* not {expected}"):
        await journal.append([B, C], expected)
    assert list(await journal.read()) == [A]


async def test_after_a_conflict_the_journal_goes_on(journal: Journal) -> None:
    with pytest.raises(JournalConflict):
        await journal.append([A], 1)
    await journal.append([B], 0)
    assert list(await journal.read()) == [B]


async def test_an_append_of_nothing_writes_nothing(journal: Journal) -> None:
    await journal.append([], 0)
    assert list(await journal.read()) == []


async def test_many_records_at_once_are_one_append(journal: Journal) -> None:
    many = [Withdrawn(str(n)) for n in range(10_000)]
    await journal.append(many, 0)
    assert list(await journal.read()) == many


async def test_of_many_appends_at_one_length_one_wins(journal: Journal) -> None:
    ends: list[str] = []

    async def append(record: Record) -> None:
        try:
            await journal.append([record], 0)
        except JournalConflict:
            ends.append("conflict")
        else:
            ends.append("written")

    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(append, Withdrawn(str(n)))
    assert sorted(ends) == ["conflict"] * 9 + ["written"]
    assert len(await journal.read()) == 1


async def test_a_run_is_its_journal(journal: Journal) -> None:
    script: Script = [say(call("echo", "a", x="é"), call("charge", "b", amount=5)), "done"]
    agent, _ = agent_of(script, echo, Ledger().charge, journal=journal)
    assert (await agent.run("go")).text == "done"
    replayed = fold(await journal.read())
    assert shape(replayed.messages) == shape(agent.messages)
    assert pairing_faults(agent.messages) == []


async def test_the_next_agent_on_the_journal_goes_on(journal: Journal) -> None:
    first, _ = agent_of([call("echo", "a", x="1"), "done"], echo, journal=journal)
    await first.run("go")
    heir, model = agent_of(["again"], echo, journal=journal)
    await heir.run("and now?")
    assert model.requests[0].messages[:-1] == first.messages


class AskingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("costs money") if isinstance(verdict, Proceed) else verdict


async def test_an_approval_holds_for_the_next_agent(journal: Journal) -> None:
    ledger = Ledger()
    make: Callable[..., Any] = lambda *script: agent_of(  # noqa: E731
        script, ledger.charge, kind=AskingMixin, journal=journal
    )[0]
    asked = (await make(call("charge", "a", amount=5)).run("go")).pending[0]
    assert await make().approve(asked.id, by="amy")
    heir = make("done")
    assert (await heir.resume()).text == "done"
    assert (ledger.entries, statuses(heir)) == ([5], {"a": "ok"})
