"""What holds for every run: pairing, one result a call, journal and state agree, events pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, SealedCall, Verdict
from callboard.decide import ToolExecution
from callboard.errors import ScriptError, StopRun
from callboard.events import AgentEnd, Event
from callboard.messages import Observation, ToolCall
from callboard.replies import RunFailed
from callboard.testing import ScriptedModel, drop, eof, error, pairing_faults, say, stream, think
from callboard.testing.script import Answer, ScriptedCall
from callboard.testing.virtual_time import virtual_backend
from callboard.tools import tool
from tests.framework.kit import assert_replays

NAMES = ("good", "quick", "slow", "boom", "stop", "done", "deny", "nope", "alone")
PACES = {"good": 1.0, "slow": 3.0, "alone": 0.5}


class Tools:
    """Tools of every temper, and the names of those that ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def all(self) -> list[Any]:
        alone = tool(name="alone", sequential=True)(partial(self.run, "alone"))
        done = tool(name="done", terminate=True)(partial(self.run, "done"))
        names = ("good", "quick", "slow", "boom", "stop", "deny")
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


class DenyingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        denied = isinstance(verdict, Proceed) and verdict.call.name == "deny"
        return Deny("not this one") if denied else verdict


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


calls = st.builds(
    ScriptedCall,
    st.sampled_from(NAMES),
    st.sampled_from(['{"x":1}', '{"x":"2"}', "", '{"x":"no"}', "[1]", '{"x":']),
    st.sampled_from([None, None, None, "", "same"]),
)
stops = st.sampled_from([None, None, None, "end", "length", "refusal", "filter", "other"])
called = st.builds(
    lambda text, made, stop: say(text, *made, stop=stop),
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
)


async def play(case: Case) -> tuple[ReActAgent, Tools, list[Event]]:
    tools = Tools()
    kind = type("Stack", (DenyingMixin, *case.layers), {})
    model = ScriptedModel(case.script, then="done")
    agent: ReActAgent = kind(
        model=model, tools=tools.all(), tool_execution=case.execution, max_iters=case.max_iters
    )
    with agent.watch(limit=10_000) as events:
        await cut_off(agent, case)
        told_once = list(tools.ran)
        await anyio.sleep(100)
        assert tools.ran == told_once, "a tool ran on after the run"
        model._script = ()
        await attempt(agent, "again")
    return agent, tools, [event async for event in events]


async def attempt(agent: ReActAgent, prompt: str) -> None:
    try:
        await agent.run(prompt)
    except RunFailed as failed:
        if isinstance(failed.__cause__, ScriptError):
            raise failed.__cause__ from None


async def cut_off(agent: ReActAgent, case: Case) -> None:
    if case.cut == "cancel":
        with anyio.move_on_after(case.cut_at):
            await attempt(agent, "go")
        return
    async with anyio.create_task_group() as group:
        if case.cut is not None:
            group.start_soon(cut_later, agent, case)
        await attempt(agent, "go")


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


often = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
def test_every_start_has_one_end(case: Case) -> None:
    _, _, events = played(case)
    for kind in ("agent", "turn", "message", "tool"):
        starts = keys(events, f"{kind}_start", started=True)
        assert starts == keys(events, f"{kind}_end", started=False)
        assert all(count == 1 for key, count in starts.items() if kind in ("tool", "message"))
    assert isinstance(events[-1], AgentEnd)


def keys(events: Sequence[Event], kind: str, *, started: bool) -> Counter[str]:
    read: Callable[[Any], Any] = {
        "tool": lambda e: e.call.id if started else e.call_id,
        "message": lambda e: e.message_id,
        "turn": lambda e: f"{e.run_id} {e.turn}",
        "agent": lambda e: e.run_id,
    }[kind.split("_")[0]]
    return Counter([str(read(event)) for event in events if event.kind == kind])
