"""A plan is made, carried out and revised; a park and a restart go on in the middle of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from callboard import Outcome, Proceed, ReActAgent, Verdict
from callboard.errors import ConfigurationError
from callboard.journaling.journal import InMemoryJournal
from callboard.messages import ToolCall
from callboard.testing import ScriptedModel, call, check_layer
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import tool
from callboard_mixins import PlanAndSolveMixin, PlanPolicy, ReflexionMixin
from callboard_mixins.planning import problem_in, steps_of

pytestmark = pytest.mark.anyio

PLAN = "1. look it up\n2. add it up"


class Planning(PlanAndSolveMixin, ReActAgent):
    """An agent with the layer under test."""


class AskingPlanning(PlanAndSolveMixin, ReActAgent):
    """One that asks a human about each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("may it?") if isinstance(verdict, Proceed) else verdict


def agent_of(script: Sequence[ScriptItem], **options: Any) -> tuple[Planning, ScriptedModel]:
    model = ScriptedModel(script)
    return Planning(model=model, **options), model


def results(agent: PlanAndSolveMixin) -> list[str | None]:
    assert agent.plan is not None
    return [step.result for step in agent.plan.steps]


def test_the_layer_keeps_the_laws() -> None:
    check_layer(PlanAndSolveMixin, orders=40)
    check_layer(PlanAndSolveMixin, ReflexionMixin, orders=40)


async def test_the_steps_are_carried_out_in_order_and_then_answered() -> None:
    agent, model = agent_of([PLAN, "it is 3", "it makes 5", "The answer is 5."])
    reply = await agent.run("What is it?")
    assert reply.text == "The answer is 5."
    assert results(agent) == ["it is 3", "it makes 5"]
    assert model.requests[0].offer is None
    assert model.requests[1].messages[0].text == "What is it?"
    assert "step 2" in model.requests[2].messages[-1].text


async def test_the_plan_is_visible_state_and_no_message() -> None:
    agent, _ = agent_of([PLAN, "a", "b", "c"])
    await agent.run("go")
    assert agent.plan is not None
    assert str(agent.plan) == "1. look it up\n2. add it up"
    assert "look it up" not in agent.messages[0].text


async def test_a_step_may_use_tools() -> None:
    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    agent, _ = agent_of(["1. add", call("add", "a", a=1, b=2), "3", "three"], tools=[add])
    assert (await agent.run("go")).text == "three"


async def test_a_plan_that_cannot_work_is_revised_with_what_is_done() -> None:
    script = [PLAN, "it is 3", "REVISE: nothing to add to", "1. ask again", "2", "The answer."]
    agent, model = agent_of(script)
    await agent.run("go")
    asked = model.requests[3].messages[-1].text
    assert "look it up: it is 3" in asked
    assert "nothing to add to" in asked
    assert agent.plan is not None
    assert (agent.plan.revision, [step.text for step in agent.plan.steps]) == (1, ["ask again"])
    assert [step.result for step in agent.plan.done] == ["it is 3"]


async def test_revisions_are_bounded() -> None:
    script = ["1. a", "REVISE: no", "1. b", "REVISE: no", "The answer."]
    agent, _ = agent_of(script, plan_policy=PlanPolicy(most_revisions=1))
    assert (await agent.run("go")).text == "The answer."


async def test_a_step_that_ends_at_a_limit_ends_the_run_with_that_outcome() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "nothing"

    agent, _ = agent_of([PLAN, call("look", "a"), "I gave up."], tools=[look], max_iters=1)
    reply = await agent.run("go")
    assert (reply.outcome, reply.text) == (Outcome.MAX_ITERS, "I gave up.")


async def test_each_prompt_gets_a_plan_of_its_own() -> None:
    agent, _ = agent_of(["1. a", "x", "first", "1. b", "y", "second"])
    await agent.run("one")
    assert (await agent.run("two")).text == "second"
    assert results(agent) == ["y"]


async def test_a_restart_in_a_parked_step_plans_nothing_twice() -> None:
    done: list[str] = []

    @tool
    def act(text: str) -> str:
        """Act."""
        done.append(text)
        return "acted"

    journal = InMemoryJournal()
    script: list[ScriptItem] = ["1. act", call("act", "a", text="x")]
    first = AskingPlanning(model=ScriptedModel(script), tools=[act], journal=journal)
    assert (await first.run("go")).outcome is Outcome.AWAITING_APPROVAL
    second = AskingPlanning(
        model=ScriptedModel(["it is done", "The answer."]), tools=[act], journal=journal
    )
    await second.opened()
    await second.approve(second.pending[0].id, by="alice")
    reply = await second.resume()
    assert (reply.text, done, results(second)) == ("The answer.", ["x"], ["it is done"])


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. a\n2) b\n3: c", ["a", "b", "c"]),
        ("Here is the plan:\n- a\n* b", ["a", "b"]),
        ("just do\nit", ["just do it"]),
        ("1. a\n2. b\n3. c\n4. d", ["a", "b", "c"]),
    ],
)
def test_the_steps_of_a_plan(text: str, steps: list[str]) -> None:
    assert steps_of(text, most=3) == steps


def test_a_problem_is_a_line_of_its_own() -> None:
    assert problem_in("Well.\nREVISE: no way") == "no way"
    assert problem_in("REVISE:") == "the plan cannot work"
    assert problem_in("I will REVISE: the text") is None


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="most_steps=0"):
        PlanPolicy(most_steps=0)
