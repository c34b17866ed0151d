"""Layers, hooks and models that misbehave: the run still ends, once, and nothing runs twice."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Ask, Proceed, SealedCall, Verdict
from callboard.decide import ToolExecution
from callboard.events import Event, Warned
from callboard.hooks import Hooks
from callboard.journaling.journal import InMemoryJournal
from callboard.messages import Observation, ToolCall
from callboard.replies import Outcome, Prompt, Reply, RunFailed
from callboard.testing import ScriptedModel, call, say
from callboard.tooling.tools import Tool, tool
from tests.framework.kit import (
    Ledger,
    Script,
    SlowJournal,
    agent_of,
    assert_paired,
    assert_replays,
    boom,
    echo,
    marks,
    results,
    shape,
    statuses,
)

pytestmark = pytest.mark.anyio


async def extra() -> str:
    """Do something extra."""
    return "extra"


EXTRA: Tool = tool(extra)


class AddsTool(ReActAgent):
    def _tools(self) -> Sequence[Tool]:
        return (*super()._tools(), EXTRA)


class AsksForExtra(AddsTool):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("why") if isinstance(verdict, Proceed) else verdict


class AsksForBoom(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        asks = isinstance(verdict, Proceed) and call.name == "boom"
        return verdict.ask("why") if asks and isinstance(verdict, Proceed) else verdict


class Louder(AsksForBoom):
    async def _deciding(self, call: ToolCall) -> Verdict:
        if call.name == "echo":
            call = call.with_arguments({"x": f"{call.arguments['x']}!"})
        return await super()._deciding(call)


def louder(call: ToolCall) -> ToolCall | None:
    return call.with_arguments({"x": f"{call.arguments['x']}!"}) if call.name == "echo" else None


@pytest.mark.parametrize(
    ("kind", "hooks"), [(Louder, Hooks()), (AsksForBoom, Hooks(before_tool=louder))]
)
async def test_a_call_behind_one_that_waits_is_rewritten_once(
    kind: type[ReActAgent], hooks: Hooks
) -> None:
    script: Script = [say(call("boom", "a"), call("echo", "b", x="hi")), "done"]
    agent, _ = agent_of(
        script, boom, echo, kind=kind, hooks=hooks, tool_execution=ToolExecution.SEQUENTIAL
    )
    asked = (await agent.run("go")).pending[0]
    await agent.approve(asked.id, by="amy")
    await agent.resume()
    assert results(agent)["b"].text == "hi!"


async def test_a_layer_that_adds_a_tool_adds_it_in_every_turn() -> None:
    agent, model = agent_of([call("extra"), call("echo", x="1"), "done"], echo, kind=AddsTool)
    assert (await agent.run("go")).text == "done"
    assert [len(asked.offer.tools) for asked in model.requests if asked.offer] == [2, 2, 2]


async def test_an_approved_call_of_a_tool_that_a_layer_added_runs_after_a_restart() -> None:
    first, _ = agent_of([call("extra", "a")], kind=AsksForExtra)
    asked = (await first.run("go")).pending[0]
    assert isinstance(first.journal, InMemoryJournal)
    heir, _ = agent_of(["done"], kind=AsksForExtra, journal=InMemoryJournal(first.journal.records))
    await heir.approve(asked.id, by="amy")
    await heir.resume()
    assert statuses(heir) == {"a": "ok"}


async def test_a_question_about_another_call_is_a_denial_and_never_journaled() -> None:
    class AsksAboutAnother(ReActAgent):
        async def _deciding(self, call: ToolCall) -> Verdict:
            await super()._deciding(call)
            return Ask(call.with_id("other"), "why")

    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, kind=AsksAboutAnother)
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"a": "denied"}
    assert_replays(agent)


async def test_a_hook_that_answers_with_another_call_runs_neither() -> None:
    hooks = Hooks(before_tool=lambda call: call.with_id("other"))
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo, hooks=hooks)
    await agent.run("go")
    assert statuses(agent) == {"a": "denied"}


class Forgets(ReActAgent):
    async def reply(self, prompt: Prompt) -> Reply:
        await super().reply(prompt)
        return None  # type: ignore[return-value]


async def test_a_reply_layer_that_forgets_to_return_fails_the_run() -> None:
    agent, _ = agent_of(["hello", "again"], kind=Forgets)
    with agent.watch() as watching, pytest.raises(RunFailed, match="not a Reply"):
        await agent.run("go")
    assert_paired([event async for event in watching])
    assert agent.state.last_outcome is Outcome.FAILED


class Hedges(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        found: list[Observation] = []

        async def one() -> None:
            found.append(await super(Hedges, self)._acting(call))

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        return found[-1]


@pytest.mark.parametrize("kind", [InMemoryJournal, SlowJournal])
async def test_a_layer_that_acts_twice_at_once_has_one_effect(kind: type[InMemoryJournal]) -> None:
    ledger = Ledger()
    agent, _ = agent_of(
        [call("charge", "a", amount=1), "done"], ledger.charge, kind=Hedges, journal=kind()
    )
    await agent.run("go")
    assert ledger.entries == [1]


class NeedsEntering(ScriptedModel):
    """Fails where it is told to: on the way in, or on the way out."""

    fails = ""

    async def __aenter__(self) -> None:
        if self.fails == "in":
            raise ConnectionError("no way in")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self.fails == "out":
            raise ConnectionError("no way out")
        return True  # "I have dealt with it"


async def _seen(agent: ReActAgent) -> tuple[Any, list[Event]]:
    with agent.watch() as watching:
        try:
            end: Any = await agent.run("go")
        except RunFailed as error:
            end = error
    return end, [event async for event in watching]


async def test_a_model_that_cannot_be_entered_fails_the_run() -> None:
    model = NeedsEntering(["hello"])
    model.fails = "in"
    end, events = await _seen(ReActAgent(model=model))
    assert isinstance(end, RunFailed)
    assert_paired(events)


async def test_a_model_that_cannot_be_left_does_not_take_the_reply_along() -> None:
    model = NeedsEntering(["hello"])
    model.fails = "out"
    end, events = await _seen(ReActAgent(model=model))
    assert end.text == "hello"
    assert any(isinstance(event, Warned) for event in events)
    assert_paired(events)


async def test_a_model_that_swallows_exceptions_does_not_swallow_the_end() -> None:
    end, _ = await _seen(ReActAgent(model=NeedsEntering([ValueError("boom")])))
    assert isinstance(end, RunFailed)


class Odd(BaseException):
    """Neither an error nor a cancellation, like pytest's own exceptions."""


async def test_a_run_that_something_odd_tears_down_has_its_end_and_goes_on_later() -> None:
    async def odd() -> None:
        raise Odd

    agent, _ = agent_of([call("odd", "a"), "done"], odd, then="again")
    with agent.watch() as watching, pytest.raises(Odd):
        await agent.run("go")
    assert marks([event async for event in watching])[-1] == "agent_end failed"
    await agent.run("more")
    assert shape(agent.messages)[1].startswith("calls: a")
    assert statuses(agent) == {"a": "unknown_outcome"}
