"""What holds for every run: pairing, one result a call, journal and state agree, events pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.agent import ReActAgent
from callboard.approvals import Ask, Deny, Proceed, SealedCall, Verdict
from callboard.decide import ToolExecution
from callboard.errors import ScriptError, StopRun
from callboard.events import Event
from callboard.messages import Observation, ToolCall
from callboard.replies import RunFailed
from callboard.testing import ScriptedModel, drop, eof, error, pairing_faults, say, stream, think
from callboard.testing.script import Answer, ScriptedCall
from callboard.testing.virtual_time import virtual_backend
from callboard.tooling.tools import tool
from tests.framework.kit import SlowJournal, assert_paired, assert_replays

pytestmark = pytest.mark.timeout(60)

NAMES = ("good", "quick", "slow", "boom", "stop", "done", "deny", "nope", "alone", "ask")
PACES = {"good": 1.0, "slow": 3.0, "alone": 0.5}


class Tools:
    """Tools of every temper, and the names of those that ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.granted = 0

    def all(self) -> list[Any]:
        alone = tool(name="alone", sequential=True)(partial(self.run, "alone"))
        done = tool(name="done", terminate=True)(partial(self.run, "done"))
        names = ("good", "quick", "slow", "boom", "stop", "deny", "ask")
        return [alone, done, *[tool(name=name)(partial(self.run, name)) for name in names]]

    async def run(self, name: str, x: int = 0) -> str:
        self.ran.append(name)
        if name in PACES:
            await anyio.sleep(PACES[name])
        if name == "boom":
            raise ValueError("boom")
        if name == "stop":
            raise StopRun("stopped")
        return f"{name} {x}"


class GuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and verdict.call.name == "deny":
            return Deny("not this one")
        if isinstance(verdict, Proceed) and verdict.call.name == "ask":
            return Ask(verdict.call.call, "may it?")
        return verdict


class RewritingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        return await super()._deciding(call.with_arguments({"x": 7}))


class PausingMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        await anyio.sleep(0.25)
        seen = await super()._acting(call)
        await anyio.sleep(0.25)
        return seen


class BreakingMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        seen = await super()._acting(call)
        if call.name == "quick":
            raise RuntimeError("broken layer")
        return seen


LAYERS = (RewritingMixin, PausingMixin, BreakingMixin)


@dataclass(frozen=True)
class Case:
    """One run: what the model says, how the agent is made, and when it is cut off."""

    script: Sequence[Answer]
    layers: Sequence[type[ReActAgent]]
    execution: ToolExecution
    max_iters: int
    cut: str | None
    cut_at: float
    backend: str
    slow_journal: bool
    answers: Sequence[bool]  # of the human, in order; then yes
    steered_at: float | None


calls = st.builds(
    ScriptedCall,
    st.sampled_from(NAMES),
    st.sampled_from(['{"x":1}', '{"x":"2"}', "", '{"x":"no"}', "[1]", '{"x":']),
    st.sampled_from([None, None, None, "", "same"]),
)
stops = st.sampled_from([None, None, None, "end", "length", "refusal", "filter", "other"])


def answer(text: str, made: list[ScriptedCall], stop: str | None) -> Answer:
    return say(text, *made, stop=stop)


called = st.builds(
    answer,
    st.sampled_from(["", "let me see"]),
    st.lists(calls, min_size=1, max_size=4),
    stops,
)
broken = st.sampled_from(
    [
        say(""),
        stream(think("hm")),
        stream("par", drop()),
        stream("half", eof()),
        stream("x", error("down")),
    ]
)
cases = st.builds(
    Case,
    st.lists(st.one_of(called, called, called, broken), max_size=4),
    st.permutations(LAYERS).flatmap(lambda order: st.integers(0, 3).map(lambda n: order[:n])),
    st.sampled_from(ToolExecution),
    st.integers(1, 3),
    st.sampled_from([None, None, "cancel", "interrupt", "cancel_call"]),
    st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.3, 2.6]),
    st.sampled_from(["asyncio", "trio"]),
    st.booleans(),
    st.lists(st.booleans(), max_size=4),
    st.sampled_from([None, 0.0, 0.5, 1.3]),
)


async def play(case: Case) -> tuple[ReActAgent, Tools, list[Event]]:
    tools = Tools()
    kind = type("Stack", (GuardMixin, *case.layers), {})
    model = ScriptedModel(case.script, then="done")
    agent: ReActAgent = kind(
        model=model,
        tools=tools.all(),
        tool_execution=case.execution,
        max_iters=case.max_iters,
        journal=SlowJournal() if case.slow_journal else None,
    )
    with agent.watch(limit=10_000) as events:
        await cut_off(agent, case)
        await answer_all(agent, tools, list(case.answers))
        told_once = list(tools.ran)
        await anyio.sleep(100)
        assert tools.ran == told_once, "a tool ran on after the run"
        model._script = ()
        await attempt(agent, "again")
    return agent, tools, [event async for event in events]


async def attempt(agent: ReActAgent, prompt: str | None = None) -> None:
    try:
        await (agent.resume() if prompt is None else agent.run(prompt))
    except RunFailed as failed:
        if isinstance(failed.__cause__, ScriptError):
            raise failed.__cause__ from None


async def answer_all(agent: ReActAgent, tools: Tools, answers: list[bool]) -> None:
    """A human answers what waits, until nothing does."""
    while agent.pending:
        for asked in agent.pending:
            if not answers or answers.pop(0):
                tools.granted += await agent.approve(asked.id, by="amy")
            else:
                await agent.deny(asked.id, by="amy")
        await attempt(agent)


async def cut_off(agent: ReActAgent, case: Case) -> None:
    if case.cut == "cancel":
        with anyio.move_on_after(case.cut_at):
            await attempt(agent, "go")
        return
    async with anyio.create_task_group() as group:
        if case.steered_at is not None:
            group.start_soon(steer_later, agent, case.steered_at)
        if case.cut is not None:
            group.start_soon(cut_later, agent, case)
        await attempt(agent, "go")


async def steer_later(agent: ReActAgent, at: float) -> None:
    await anyio.sleep(at)
    await agent.steer("plan B")


async def cut_later(agent: ReActAgent, case: Case) -> None:
    await anyio.sleep(case.cut_at)
    if case.cut == "interrupt":
        await agent.interrupt()
        return
    for call in agent.state.open_calls:
        agent.cancel_call(call.id)


def played(case: Case) -> tuple[ReActAgent, Tools, list[Event]]:
    name, options = virtual_backend(case.backend, seed=0)
    return anyio.run(partial(play, case), backend=name, backend_options=options)


often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@often
@given(cases)
def test_each_call_has_one_result_and_every_request_is_valid(case: Case) -> None:
    """ScriptedModel checks the requests themselves, the one after a cut-off run too."""
    agent, _, _ = played(case)
    assert pairing_faults(agent.messages) == []
    assert agent.state.open_calls == ()


@often
@given(cases)
def test_the_journal_makes_the_live_state_again(case: Case) -> None:
    assert_replays(played(case)[0])


@often
@given(cases)
def test_no_denied_and_no_unknown_call_ever_runs(case: Case) -> None:
    _, tools, _ = played(case)
    assert not {"deny", "nope"} & set(tools.ran)


@often
@given(cases)
def test_what_a_human_grants_runs_at_most_once(case: Case) -> None:
    _, tools, _ = played(case)
    assert tools.ran.count("ask") <= tools.granted


@often
@given(cases)
def test_what_is_queued_is_delivered_once(case: Case) -> None:
    agent, _, _ = played(case)
    said = [message.text for message in agent.messages if message.role == "user"]
    steered = case.steered_at is not None and case.cut != "cancel"
    assert said.count("plan B") == (1 if steered else 0)
    assert agent.state.queued == ()


@often
@given(cases)
def test_every_start_has_one_end(case: Case) -> None:
    assert_paired(played(case)[2])
