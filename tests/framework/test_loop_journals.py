"""The loop on journals that take time, that are shared, and that outlive an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Proceed, Verdict
from callboard.errors import CommitFailed
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.journaling.records import (
    MessageAdded,
    Observed,
    Record,
    RunFinished,
    ToolStarted,
)
from callboard.messages import ThinkingBlock, ToolCall
from callboard.replies import Outcome
from callboard.testing import (
    ScriptedModel,
    call,
    call_piece,
    pairing_faults,
    pause,
    say,
    stream,
    think,
)
from tests.framework.kit import (
    Ledger,
    Script,
    SlowJournal,
    agent_of,
    assert_replays,
    echo,
    marks,
    results,
    shape,
    statuses,
    wait,
)

pytestmark = pytest.mark.anyio


class AskingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and verdict.call.name == "charge":
            return verdict.ask("costs money")
        return verdict


async def test_a_run_on_a_slow_journal_is_the_same_run() -> None:
    script: Script = [say(call("wait", "a", ms=20), call("wait", "b", ms=10)), "done"]
    agent, _ = agent_of(script, wait, journal=SlowJournal())
    assert (await agent.run("go")).text == "done"
    assert shape(agent.messages)[2:4] == ["a: 20", "b: 10"]
    assert_replays(agent)


async def test_a_result_is_durable_when_it_completes_and_not_with_its_slowest_sibling() -> None:
    script: Script = [say(call("wait", "a", ms=2000), call("wait", "b", ms=10)), "done"]
    agent, _ = agent_of(script, wait, journal=SlowJournal())
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        written = [r.call_id for r in await agent.journal.read() if isinstance(r, Observed)]
        assert written == ["b"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("step", range(1, 40, 2))
async def test_a_native_cancel_at_any_step_leaves_a_journal_that_can_be_gone_on_with(
    step: int,
) -> None:
    """A native cancel pierces anyio's shields, so an append may end unknown."""
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, then="done", journal=SlowJournal(moment_s=0))
    task = asyncio.create_task(agent.run("go"))
    for _ in range(step):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert (await agent.run("again")).text == "done"
    assert_replays(agent)
    assert pairing_faults(agent.messages) == []
    assert len(ledger.entries) <= 1


@pytest.mark.parametrize("at", [0.0005 * step for step in range(1, 40, 3)])
async def test_a_cancel_at_any_time_leaves_a_journal_that_can_be_gone_on_with(at: float) -> None:
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=1), "done"]
    agent, _ = agent_of(script, ledger.charge, then="done", journal=SlowJournal())
    with anyio.move_on_after(at):
        await agent.run("go")
    assert (await agent.run("again")).text == "done"
    assert_replays(agent)
    assert pairing_faults(agent.messages) == []
    assert len(ledger.entries) <= 1


async def test_steering_while_a_commit_is_written_loses_nothing() -> None:
    agent, _ = agent_of([], echo, then="ok", journal=SlowJournal(moment_s=1))

    async def steer() -> None:
        for at in range(5):
            await anyio.sleep(0.7)
            await agent.steer(f"s{at}")

    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        group.start_soon(steer)
    while agent.state.queued:
        await agent.resume()
    asked = [word for word in shape(agent.messages) if word.startswith("user: s")]
    assert asked == [f"user: s{at}" for at in range(5)]
    assert_replays(agent)


async def test_mem_04_two_agents_on_one_journal_conflict_before_any_effect() -> None:
    journal, ledger = InMemoryJournal(), Ledger()
    one, _ = agent_of(["hello", "more"], journal=journal)
    await one.run("go")
    two, _ = agent_of([call("charge", "a", amount=1)], ledger.charge, journal=journal)
    await two.interrupt()
    await one.run("again")
    with pytest.raises(CommitFailed):
        await two.run("go")
    assert ledger.entries == []


async def test_mem_04_an_agent_that_opens_a_journal_fences_its_older_owner() -> None:
    journal, ledger = SlowJournal(), Ledger()
    one, _ = agent_of(["hello", call("charge", "a", amount=1)], ledger.charge, journal=journal)
    await one.run("go")
    two, _ = agent_of(["mine"], journal=journal)
    await two.interrupt()
    with pytest.raises(CommitFailed):
        await one.run("again")
    assert (await two.run("go")).text == "mine"
    assert ledger.entries == []


@pytest.mark.parametrize("kind", [InMemoryJournal, SlowJournal])
async def test_apr_03_an_approval_outlives_its_agent(kind: type[InMemoryJournal]) -> None:
    ledger, journal = Ledger(), kind()
    first, _ = agent_of(
        [call("charge", "a", amount=5)], ledger.charge, kind=AskingMixin, journal=journal
    )
    asked = (await first.run("go")).pending[0]
    heir, _ = agent_of(["done"], ledger.charge, kind=AskingMixin, journal=kind(journal.records))
    assert (await heir.resume()).pending == (asked,)
    assert await heir.approve(asked.id, by="amy")
    assert (await heir.resume()).text == "done"
    assert (ledger.entries, statuses(heir)) == ([5], {"a": "ok"})


async def test_apr_03_a_grant_under_another_key_releases_nothing() -> None:
    ledger = Ledger()
    script: Script = [call("charge", "a", amount=5)]
    first, _ = agent_of(script, ledger.charge, kind=AskingMixin, digest_key=b"1" * 32)
    asked = (await first.run("go")).pending[0]
    journal = InMemoryJournal(list(await first.journal.read()))
    heir, _ = agent_of(
        ["done"], ledger.charge, kind=AskingMixin, digest_key=b"2" * 32, journal=journal
    )
    await heir.approve(asked.id, by="amy")
    assert (await heir.resume()).outcome is Outcome.AWAITING_APPROVAL
    assert ledger.entries == []


async def reloaded(agent: ReActAgent, *script: Any) -> tuple[ReActAgent, ScriptedModel]:
    journal: Journal = InMemoryJournal(list(await agent.journal.read()))
    return agent_of(script, echo, journal=journal)


async def test_thk_01_signed_thinking_survives_the_journal() -> None:
    answer = stream(
        think("I need echo", signature="AAA"),
        call_piece('{"x":"1"}', id="a", name="echo", index=0),
    )
    agent, _ = agent_of([answer, "done"], echo)
    await agent.run("go")
    heir, model = await reloaded(agent, "more")
    await heir.run("again")
    thought = model.requests[0].messages[1].content[0]
    assert thought == ThinkingBlock(text="I need echo", signature="AAA")


async def test_can_06_a_reloaded_agent_knows_what_the_cancelled_one_knew() -> None:
    agent, _ = agent_of([stream("part one ", pause(5), "part two")])
    with anyio.move_on_after(1):
        await agent.run("go")
    heir, model = await reloaded(agent, "done")
    assert shape(heir.messages) == shape(agent.messages) == ["user: go"]
    assert (await heir.resume()).text == "done"
    assert shape(model.requests[0].messages) == ["user: go"]


async def test_queued_messages_survive_the_journal() -> None:
    agent, _ = agent_of(["done"])
    await agent.steer("now")
    heir, model = await reloaded(agent, "done")
    await heir.run("go")
    assert shape(model.requests[0].messages) == ["user: go", "user: now"]


async def test_a_result_that_was_not_observed_is_not_made_again() -> None:
    """A crash between `tool_finished` and `observed`: the recorded outcome goes through again."""
    seen: list[str] = []

    class MaskingMixin(ReActAgent):
        async def _acting(self, call: Any) -> Any:
            found = await super()._acting(call)
            seen.append(found.text)
            return replace(found, details="masked")

    ledger = Ledger()
    agent, _ = agent_of([call("charge", "a", amount=5), "done"], ledger.charge, kind=MaskingMixin)
    await agent.run("go")
    records = list(await agent.journal.read())
    cut = next(at for at, record in enumerate(records) if isinstance(record, Observed))
    heir, _ = agent_of(
        ["done"], ledger.charge, kind=MaskingMixin, journal=InMemoryJournal(records[:cut])
    )
    await heir.resume()
    assert (ledger.entries, seen) == ([5], ["charged 5", "charged 5"])
    assert results(heir)["a"].text == "charged 5"


async def test_a_steer_after_a_failed_commit_does_not_let_the_run_write_on() -> None:
    class FailingJournal(SlowJournal):
        async def append(self, records: Sequence[Record], expected: int) -> None:
            if any(isinstance(r, Observed) and r.call_id == "a" for r in records) and not failed:
                failed.append(len(self.records))
                raise OSError("disk is full")
            await super().append(records, expected)

    async def tidy() -> str:
        try:
            await anyio.sleep(60)
        finally:
            with anyio.CancelScope(shield=True):
                await agent.steer("meanwhile")
                await anyio.sleep(5)
        return "never"

    failed: list[int] = []
    script = [say(call("wait", "a", ms=10), call("tidy", "b"))]
    agent, _ = agent_of(script, wait, tidy, then="done", journal=FailingJournal())
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    kinds = [record.kind for record in (await agent.journal.read())[failed[0] :]]
    assert set(kinds) <= {"queued"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_result_whose_append_was_cut_off_is_told_all_the_same() -> None:
    agent, _ = agent_of([call("wait", "a", ms=1000)], wait, journal=SlowJournal(moment_s=0.1))
    with agent.watch() as events:
        task = asyncio.create_task(agent.run("go"))
        while not any(isinstance(record, Observed) for record in agent.journal.records):  # type: ignore[attr-defined]
            await anyio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
    assert statuses(agent) == {"a": "ok"}
    told = marks([event async for event in events])
    assert [told.count(mark) for mark in ("ts a", "te a", "me a")] == [1, 1, 1]


async def test_no_effect_begins_after_a_cancel_that_came_while_its_intent_was_written() -> None:
    ledger, journal = Ledger(), SlowJournal(moment_s=1)
    agent, _ = agent_of([call("charge", "a", amount=1)], ledger.charge, journal=journal)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(agent.run, "go")
            while not any(isinstance(record, ToolStarted) for record in journal.records):
                await anyio.sleep(0.5)
            await anyio.sleep(0.25)  # its append is still on its way
            scope.cancel()
    assert (ledger.entries, statuses(agent)) == ([], {"a": "unknown_outcome"})
    assert_replays(agent)


async def test_no_effect_begins_after_an_interrupt_that_was_written_before_its_intent() -> None:
    ledger, journal = Ledger(), SlowJournal(moment_s=1)
    script = [say(call("charge", "a", amount=1), call("charge", "b", amount=2))]
    agent, _ = agent_of(script, ledger.charge, journal=journal)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(2.5)  # the message with the calls is on its way
        assert not any(isinstance(record, MessageAdded) for record in journal.records)
        await agent.interrupt()
    assert ledger.entries == []
    assert statuses(agent) == {"a": "unknown_outcome", "b": "unknown_outcome"}


async def test_a_cancel_that_comes_while_the_end_is_written_tells_that_end() -> None:
    journal = SlowJournal(moment_s=1)
    agent, _ = agent_of(["done"], journal=journal)
    with agent.watch() as events, anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(agent.run, "go")
            while not any(isinstance(record, RunFinished) for record in journal.records):
                await anyio.sleep(0.5)
            scope.cancel()
    assert marks([event async for event in events])[-1] == "agent_end finished"
