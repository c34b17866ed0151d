"""Control messages that meet a run half way, above all on a journal that takes its time."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Proceed, Verdict
from callboard.decide import ToolExecution
from callboard.errors import ConfigurationError
from callboard.events import Event
from callboard.hooks import Hooks
from callboard.journaling.records import (
    ModelAttempted,
    Observed,
    RunFinished,
    Snapshot,
    ToolFinished,
)
from callboard.journaling.transcript import State
from callboard.messages import AssistantMessage, TextBlock, ToolCall, UserMessage
from callboard.model import ModelRequest
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import call, say
from tests.framework.kit import Ledger, SlowJournal, agent_of, assert_replays, shape, wait

SLOW_S = 0.01


def count(journal: SlowJournal, kind: type) -> int:
    return len([record for record in journal.records if isinstance(record, kind)])


class AsksAlways(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("why") if isinstance(verdict, Proceed) else verdict


@pytest.mark.anyio
async def test_a_model_call_that_ends_while_a_steer_is_written_is_counted() -> None:
    async def meanwhile(request: ModelRequest) -> str:
        group.start_soon(agent.steer, "more")
        await anyio.sleep(SLOW_S / 2)
        return "one"

    journal = SlowJournal(moment_s=SLOW_S)
    agent, _ = agent_of([meanwhile, "two"], journal=journal)
    async with anyio.create_task_group() as group:
        await agent.run("go")
    assert count(journal, ModelAttempted) == 2


@pytest.mark.anyio
async def test_each_of_many_calls_has_its_outcome_in_a_slow_journal() -> None:
    journal = SlowJournal(moment_s=SLOW_S)
    calls = [call("wait", f"c{at}", ms=3 * at) for at in range(6)]
    agent, _ = agent_of([say(*calls), "done"], wait, journal=journal)
    await agent.run("go")
    assert (count(journal, ToolFinished), count(journal, Observed)) == (6, 6)


@pytest.mark.anyio
async def test_messages_given_at_the_start_are_stored_once_where_two_come_at_once() -> None:
    old = [UserMessage.of("old"), AssistantMessage(content=(TextBlock(text="yes"),))]
    journal = SlowJournal(moment_s=SLOW_S)
    agent, _ = agent_of(["one", "two"], journal=journal, messages=old)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        group.start_soon(agent.steer, "more")
    assert count(journal, Snapshot) == 1


@pytest.mark.anyio
async def test_what_was_withdrawn_is_not_said_even_where_the_loop_is_about_to_take_it() -> None:
    items: list[str] = []
    gone: list[bool] = []

    async def second_thoughts(state: State) -> None:
        gone.append(await agent.withdraw(items.pop()))

    async def act() -> None:
        items.append(await agent.steer("secret"))

    hooks = Hooks(prepare_next_turn=second_thoughts)
    agent, _ = agent_of([call("act", "a"), "done"], act, hooks=hooks)
    await agent.run("go")
    assert gone == [True]
    assert "user: secret" not in shape(agent.messages)


@pytest.mark.anyio
async def test_a_message_that_waits_is_withdrawn_or_said_but_not_both() -> None:
    agent, _ = agent_of(["one", "two"], journal=SlowJournal(moment_s=SLOW_S), then="more")
    item = await agent.steer("secret")
    gone: list[bool] = []

    async def withdraw() -> None:
        gone.append(await agent.withdraw(item))

    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(SLOW_S * 1.5)
        group.start_soon(withdraw)
    assert gone[0] is not ("user: secret" in shape(agent.messages))


@pytest.mark.anyio
async def test_a_call_that_is_denied_while_steering_skips_it_has_one_result() -> None:
    ledger, journal = Ledger(), SlowJournal(moment_s=SLOW_S)
    agent, _ = agent_of(
        [say(call("charge", "a", amount=1), call("charge", "b", amount=2)), "done"],
        ledger.charge,
        kind=AsksAlways,
        journal=journal,
        steering_policy=SteeringPolicy.SKIP_PENDING,
    )
    asked = (await agent.run("go")).pending[0]
    await agent.steer("never mind")

    async def deny() -> None:
        await agent.deny(asked.id, by="amy")

    async with anyio.create_task_group() as group:
        group.start_soon(deny)
        group.start_soon(agent.resume)
    assert (count(journal, Observed), ledger.entries) == (2, [])
    assert_replays(agent)


@pytest.mark.anyio
async def test_an_interrupt_whose_run_ends_meanwhile_leaves_the_next_one_alone() -> None:
    ledger, journal = Ledger(), SlowJournal(moment_s=SLOW_S)
    agent, _ = agent_of(
        ["one", call("charge", "a", amount=1)], ledger.charge, kind=AsksAlways, journal=journal
    )
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "first")
        group.start_soon(agent.run, "second")
        while not count(journal, RunFinished):
            await anyio.sleep(SLOW_S / 10)
        await agent.interrupt()
    assert len(agent.pending) == 1


@pytest.mark.anyio
async def test_an_interrupt_after_the_park_closes_the_parked_run() -> None:
    class SlowToLeave(type(agent_of([])[1])):  # type: ignore[misc]
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *_: object) -> None:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)

    ledger = Ledger()
    model = SlowToLeave([call("charge", "a", amount=1)])
    agent = AsksAlways(model=model, tools=[ledger.charge])
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(0.5)
        await agent.interrupt()
    assert agent.pending == ()
    assert agent.state.last_outcome is Outcome.INTERRUPTED


@pytest.mark.anyio
async def test_a_generator_around_a_stream_can_be_closed() -> None:
    ledger = Ledger()
    agent, _ = agent_of([call("slow", "a"), "done"], ledger.slow)

    async def events() -> AsyncIterator[Event]:
        async with agent.stream("go") as stream:
            async for event in stream:
                yield event

    generator = events()
    await anext(generator)
    await generator.aclose()  # type: ignore[attr-defined]
    assert agent.state.run_id is None


@pytest.mark.real_clock
def test_a_second_thread_is_told_that_the_agent_runs_in_another() -> None:
    running, over = threading.Event(), threading.Event()

    def act() -> None:
        running.set()
        over.wait(5)

    agent, _ = agent_of([call("act", "a"), "done"], act, tool_execution=ToolExecution.SEQUENTIAL)
    thread = threading.Thread(target=agent.run_sync, args=("go",))
    thread.start()
    try:
        assert running.wait(5)
        with pytest.raises(ConfigurationError, match="thread"):
            agent.run_sync("go")
    finally:
        over.set()
        thread.join(5)
