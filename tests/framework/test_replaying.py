"""Replays: a journal is run against the code, and the first difference is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from callboard import Deny, InMemoryJournal, Journal, ReActAgent, StopRun, Tool, replaces
from callboard.approvals import Verdict
from callboard.budget import Budget
from callboard.errors import ConfigurationError
from callboard.hooks import Hooks
from callboard.journaling.forking import forked
from callboard.journaling.records import Activated, Record, RunFinished, ToolStarted
from callboard.messages import ToolCall, Usage
from callboard.model import Model
from callboard.questions import ask_user
from callboard.queues import SteeringPolicy
from callboard.testing import (
    Replay,
    ScriptedModel,
    call,
    eof,
    error,
    pause,
    replayed,
    say,
    stream,
    usage,
)
from callboard.testing.script import ScriptItem
from tests.framework.approval_kit import GuardMixin, answer, charge
from tests.framework.kit import Ledger, boom, echo, wait


async def stop() -> None:
    """Stop."""
    raise StopRun("enough", output={"x": 1})


class World:
    """An agent that is recorded, and the same one again; what its tools did is in the ledger."""

    def __init__(self, kind: type[ReActAgent] = ReActAgent, **options: Any) -> None:
        self.kind = kind
        self.options = options
        self.ledger = Ledger()
        self.journal = InMemoryJournal()

    def agent(self, *script: ScriptItem, **more: Any) -> ReActAgent:
        """One that writes the journal."""
        return self.make(model=ScriptedModel(script), journal=self.journal, **more)

    def make(self, *, model: Model, journal: Journal, **more: Any) -> ReActAgent:
        own = (self.ledger.charge, self.ledger.slow)
        tools: list[Any] = [echo, boom, wait, stop, ask_user, *own]
        return self.kind(model=model, journal=journal, tools=tools, **self.options, **more)

    def replay(self, records: Sequence[Record] = (), **changed: Any) -> Replay:
        """The replay of the journal, with an agent that has these options instead."""
        before, self.options = list(self.ledger.entries), {**self.options, **changed}
        replay = replayed(records or self.journal.records, self.make)
        assert self.ledger.entries == before, "no tool runs in a replay"
        return replay

    def assert_same(self) -> None:
        replay = self.replay()
        replay.assert_same()
        assert (replay.matched, replay.recorded) == (len(self.journal), len(self.journal))


def test_a_run_with_tools_is_the_same_again() -> None:
    world = World()
    together = say("look", call("echo", "a", x="é"), call("charge", "b", amount=3), call("boom"))
    world.agent(together, call("nothing", "c"), call("echo", "d", y=1), "done").run_sync("go")
    world.assert_same()
    assert world.ledger.entries == [3]


def test_several_runs_of_one_agent_are_the_same_again() -> None:
    world = World()
    agent = world.agent("one", call("echo", "a", x="1"), "two")
    agent.run_sync("first")
    agent.run_sync(["second", "and more"])
    world.assert_same()


def test_calls_that_ended_in_another_order_are_the_same_again() -> None:
    world = World()
    slow_first = say(call("wait", "a", ms=30), call("wait", "b", ms=10), call("wait", "c", ms=20))
    world.agent(slow_first, "done").run_sync("go")
    world.assert_same()


# -- what differs ----------------------------------------------------------------------------------


def test_a_tool_that_is_gone_is_a_difference_with_its_record() -> None:
    world = World()
    world.agent(call("charge", "a", amount=3), "done").run_sync("go")
    world.kind = BareMixin
    difference = world.replay().difference
    assert difference is not None
    assert isinstance(difference.recorded, ToolStarted)
    assert world.journal.records[difference.number] is difference.recorded
    assert "There is no tool 'charge'" in str(difference)


class BareMixin(ReActAgent):
    @replaces
    def _tools(self) -> Sequence[Tool]:
        return ()


class SternMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        await super()._deciding(call)
        return Deny("never")


def test_a_layer_that_decides_otherwise_is_a_difference() -> None:
    world = World()
    world.agent(call("charge", "a", amount=3), "done").run_sync("go")
    world.kind = SternMixin
    with pytest.raises(AssertionError, match="recorded: tool_started .*\n.*now: decided .*never"):
        world.replay().assert_same()


def test_a_hook_that_changes_what_the_model_reads_is_a_difference_in_words() -> None:
    world = World()
    world.agent(call("echo", "a", x="1"), "done").run_sync("go")
    hooks = Hooks(after_tool=lambda call, seen: type(seen).of("other"))
    difference = world.replay(hooks=hooks).difference
    assert difference is not None
    assert difference.detail == 'observation.content.0.text was "1" and is "other"'


def test_a_lower_limit_is_a_difference_where_it_strikes() -> None:
    world = World()
    world.agent(call("echo", "a", x="1"), call("echo", "b", x="2"), "done").run_sync("go")
    difference = world.replay(max_iters=1).difference
    assert difference is not None
    assert world.journal.records[difference.number].kind == "model_attempt"
    assert difference.detail == 'purpose was "answer" and is "summary"'


def test_code_that_goes_on_where_the_run_ended_is_a_difference() -> None:
    world = World()
    world.agent(call("echo", "a", x="1"), "summary", max_iters=1).run_sync("go")
    difference = world.replay(max_iters=5).difference
    assert difference is not None
    assert difference.detail == 'purpose was "summary" and is "answer"'


# -- what the model and the tools did --------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        [say("", usage=Usage(input_tokens=1)), "done"],
        ["", "", ""],
        [stream("he", "llo ", eof()), stream("again", usage(input_tokens=3))],
        [stream("a", eof()), stream("b", eof()), stream("c", eof())],
        [say("no", stop="refusal")],
        [say(call("charge", "a", amount=1), stop="length"), "done"],
    ],
    ids=["empty once", "empty", "broken off", "incomplete", "refused", "cut"],
)
def test_answers_that_are_no_use_are_the_same_again(script: list[ScriptItem]) -> None:
    world = World()
    world.agent(*script).run_sync("go")
    world.assert_same()


def test_a_run_that_failed_fails_again() -> None:
    world = World()
    agent = world.agent(error(category="auth"), "done")
    with pytest.raises(Exception, match="the run failed"):
        agent.run_sync("go")
    agent.run_sync("again")
    world.assert_same()


def test_a_tool_that_ended_the_run_ends_it_again() -> None:
    world = World()
    agent = world.agent(say(call("stop", "a"), call("slow", "b")))
    assert agent.run_sync("go").text == "enough"
    world.assert_same()


@pytest.mark.anyio
async def test_the_seconds_of_then_count_towards_a_budget() -> None:
    world = World(budget=Budget(seconds=0.05))
    await world.agent(call("wait", "a", ms=40), call("wait", "b", ms=40), "so far").run("go")
    assert world.journal.records[-1].kind == "run_finished"
    await anyio.to_thread.run_sync(world.assert_same)


@pytest.mark.anyio
async def test_a_model_that_was_cut_off_by_a_budget_is_cut_off_again() -> None:
    world = World(budget=Budget(seconds=5))
    await world.agent(stream("on", pause(9), " and on"), "so far").run("go")
    await anyio.to_thread.run_sync(world.assert_same)


# -- what people did -------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("yes", [True, False])
async def test_an_approval_is_answered_as_it_was(yes: bool) -> None:
    world = World(GuardMixin)
    agent = world.agent(say(charge("a", 5), call("echo", "b", x="1")), "done")
    await agent.run("go")
    await answer(agent, "a", yes=yes, reason="too much")
    await agent.resume()
    await anyio.to_thread.run_sync(world.assert_same)


@pytest.mark.anyio
async def test_a_question_of_a_tool_is_answered_as_it_was() -> None:
    world = World()
    agent = world.agent(call("ask_user", "a", question="which?"), "done")
    asked = (await agent.run("go")).pending[0]
    await agent.answer(asked.id, "this one", by="amy")
    await agent.resume()
    await anyio.to_thread.run_sync(world.assert_same)


@pytest.mark.anyio
@pytest.mark.parametrize("policy", list(SteeringPolicy))
async def test_steering_comes_at_the_same_point(policy: SteeringPolicy) -> None:
    world = World(steering_policy=policy, tool_execution="sequential")
    together = say(call("wait", "a", ms=500), call("echo", "b", x="1"))
    agent = world.agent(together, "done", "and done")
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(0.1)
        await agent.steer("wait!")
        await agent.follow_up("and then?")
    await anyio.to_thread.run_sync(world.assert_same)


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["interrupt", "cancel"])
async def test_a_run_that_was_stopped_in_a_tool_stops_there_again(how: str) -> None:
    world = World()
    agent = world.agent(say(call("slow", "a"), call("echo", "b", x="1")), "done", "again")
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await agent.run("go")

        group.start_soon(run)
        await anyio.sleep(0.1)
        await (agent.interrupt() if how == "interrupt" else anyio.lowlevel.checkpoint())
        scope.cancel()
    assert isinstance(world.journal.records[-1], RunFinished)
    await agent.run("next")
    await anyio.to_thread.run_sync(world.assert_same)


@pytest.mark.anyio
async def test_a_parked_run_that_was_interrupted_is_so_again() -> None:
    world = World(GuardMixin)
    agent = world.agent(charge("a"), "done")
    await agent.run("go")
    await agent.interrupt()
    await agent.run("next")
    await anyio.to_thread.run_sync(world.assert_same)


# -- crashes and forks -----------------------------------------------------------------------------


def test_a_process_that_died_in_a_tool_dies_there_again() -> None:
    """The journal up to the start of the effect, and what the next process made of it."""
    first = World()
    first.agent(call("charge", "a", amount=5), "done").run_sync("go")
    records = first.journal.records
    place = next(n for n, one in enumerate(records) if isinstance(one, ToolStarted))
    world = World()
    world.journal = InMemoryJournal([*records[: place + 1], Activated(1)])
    assert anyio.run(world.agent("I see").resume).text == "I see"
    world.assert_same()


@pytest.mark.parametrize("end", range(2, 9))
def test_a_recording_that_breaks_off_anywhere_is_the_same_as_far_as_it_goes(end: int) -> None:
    world = World()
    world.agent(call("charge", "a", amount=5), "done").run_sync("go")
    replay = world.replay(world.journal.records[:end])
    replay.assert_same()
    assert replay.matched == end


@pytest.mark.anyio
async def test_a_fork_is_replayed_from_its_beginning() -> None:
    world = World()
    await world.agent(call("charge", "a", amount=5), "done").run("go")
    world.journal = await forked(world.journal, at=5)
    await world.agent("another way").run("and now?")
    await anyio.to_thread.run_sync(world.assert_same)


# -- what it tells ---------------------------------------------------------------------------------


def test_a_view_that_a_hook_makes_is_noted_and_no_difference() -> None:
    world = World(hooks=Hooks(transform_context=lambda messages: messages[-1:]))
    agent = world.agent("one", "two")
    agent.run_sync("first")
    agent.run_sync("second")
    replay = world.replay()
    replay.assert_same()
    assert [note[:42] for note in replay.notes] == ["record 7: the request's 1 messages are not"]


def forgetful(*, model: Model, journal: Journal) -> ReActAgent:
    return ReActAgent(model=model)


def test_an_agent_that_drops_the_journal_is_told() -> None:
    world = World()
    world.agent("done").run_sync("go")
    with pytest.raises(ConfigurationError, match="pass journal= on"):
        replayed(world.journal, forgetful)


@pytest.mark.anyio
async def test_inside_an_event_loop_it_says_where_to_call_it() -> None:
    with pytest.raises(ConfigurationError, match="call it outside"):
        replayed(InMemoryJournal(), ReActAgent)
