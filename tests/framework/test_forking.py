"""Forks: a conversation from any earlier point, valid there, with nothing left running in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callboard import InMemoryJournal, SqliteJournal
from callboard.approvals import GrantScope
from callboard.decide import ToolExecution
from callboard.errors import ConfigurationError
from callboard.journaling.forking import forked
from callboard.journaling.records import Record, RunFinished, ToolStarted, Withdrawn
from callboard.journaling.sqlite_file import addresses
from callboard.journaling.transcript import fold
from callboard.replies import Outcome
from callboard.testing import call, say
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import Ledger, agent_of, echo, shape, statuses

pytestmark = pytest.mark.anyio


async def a_run() -> InMemoryJournal:
    """A run of two turns: a call of a tool, and a word."""
    journal = InMemoryJournal()
    await agent_of([call("echo", "a", x="1"), "done"], echo, journal=journal)[0].run("go")
    return journal


def place(journal: InMemoryJournal, kind: type[Record]) -> int:
    """The number of the first record of this kind."""
    return next(n for n, record in enumerate(journal.records) if isinstance(record, kind))


async def test_a_fork_is_the_same_conversation_with_the_same_ids() -> None:
    journal = await a_run()
    fork = await forked(journal)
    assert fork.records[: len(journal)] == journal.records
    assert fold(fork.records).messages == fold(journal.records).messages


async def test_an_agent_on_a_fork_goes_on_from_there_and_the_old_one_knows_nothing() -> None:
    journal = await a_run()
    agent, model = agent_of(["else"], echo, journal=await forked(journal, at=1))
    before = len(journal)
    assert (await agent.run("another way")).text == "else"
    assert shape(model.requests[0].messages) == ["user: go", "user: another way"]
    assert len(journal) == before


async def test_a_fork_says_where_it_came_from(tmp_path: Path) -> None:
    with SqliteJournal(tmp_path / "a.db", address="clerk/ann") as source:
        await agent_of(["done"], journal=source)[0].run("go")
        fork = await forked(source, at=2)
    assert fold(fork.records).layers["fork"] == [{"of": "clerk/ann", "at": 2}]


async def test_a_run_that_is_open_there_is_interrupted_in_the_fork() -> None:
    journal = await a_run()
    fork = fold((await forked(journal, at=2)).records)
    assert fork.run is None
    assert fork.last_run is not None
    assert fork.last_run.outcome is Outcome.INTERRUPTED
    assert fork.last_run.error == "forked at record 2"


async def test_a_call_that_was_started_there_is_of_unknown_outcome() -> None:
    journal, ledger = InMemoryJournal(), Ledger()
    script: Any = [say(call("charge", "a", amount=5), call("echo", "b", x="1")), "done"]
    one_by_one: Any = {"tool_execution": ToolExecution.SEQUENTIAL, "journal": journal}
    await agent_of(script, ledger.charge, echo, **one_by_one)[0].run("go")
    fork = await forked(journal, at=place(journal, ToolStarted))
    agent, _ = agent_of(["again"], ledger.charge, echo, journal=fork)
    await agent.run("and?")
    assert statuses(agent) == {"a": "unknown_outcome", "b": "cancelled"}
    assert ledger.entries == [5]


async def test_a_question_that_waits_is_withdrawn_in_the_fork() -> None:
    agent, _, ledger = guarded(charge("a"), "done", journal=InMemoryJournal())
    await agent.run("go")
    heir, _, _ = guarded("else", ledger=ledger, journal=await forked(agent.journal))
    assert (await heir.run("and?")).text == "else"
    assert [one.status for one in heir._conversation.state.approvals.values()] == ["withdrawn"]
    assert agent.pending != ()


async def test_what_was_granted_for_ever_does_not_hold_in_the_fork() -> None:
    agent, _, _ = guarded(charge("a"), "done", charge("b"), journal=InMemoryJournal(), key=b"k")
    asked = (await agent.run("go")).pending[0]
    await agent.approve(asked.id, by="amy", scope=GrantScope.CONVERSATION)
    await agent.resume()
    heir, _, ledger = guarded(charge("c"), journal=await forked(agent.journal), key=b"k")
    assert (await heir.run("again")).outcome is Outcome.AWAITING_APPROVAL
    assert (ledger.entries, len(agent.grants)) == ([], 1)


async def test_queued_messages_still_wait_in_the_fork() -> None:
    agent, _ = agent_of(["done"], journal=InMemoryJournal())
    await agent.run("go")
    await agent.steer("psst")
    heir, model = agent_of(["else"], journal=await forked(agent.journal))
    await heir.run("and?")
    assert shape(model.requests[0].messages)[2:] == ["user: and?", "user: psst"]


@pytest.mark.parametrize("at", [-1, 99, True, "3"])
async def test_a_point_that_is_none_is_refused_with_those_there_are(at: Any) -> None:
    journal = await a_run()
    with pytest.raises(ConfigurationError, match=rf"at={at!r}: .* 0 to {len(journal) - 1}"):
        await forked(journal, at=at)


async def test_an_empty_journal_has_nothing_to_fork() -> None:
    with pytest.raises(ConfigurationError, match="nothing to fork"):
        await forked(InMemoryJournal())


async def test_a_journal_that_holds_something_is_no_target() -> None:
    target = InMemoryJournal([Withdrawn("x")])
    with pytest.raises(ConfigurationError, match="holds records already"):
        await forked(await a_run(), into=target)
    assert target.records == [Withdrawn("x")]


@pytest.mark.real_clock
async def test_a_long_journal_is_forked_in_one_commit(tmp_path: Path) -> None:
    long = InMemoryJournal([Withdrawn(str(n)) for n in range(7_000)])
    with SqliteJournal(tmp_path / "a.db", address="a/b") as target:
        assert len(await (await forked(long, into=target)).read()) == 7_001
    assert addresses(tmp_path / "a.db") == {"a/b": 7_001}


async def test_where_a_message_ends_a_run_nothing_is_closed() -> None:
    journal = await a_run()
    added = (await forked(journal, at=place(journal, RunFinished))).records[len(journal) :]
    assert [record.kind for record in added] == ["layer"]
