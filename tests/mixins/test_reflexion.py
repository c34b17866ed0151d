"""Answers are judged and tried again; nothing is asked or judged twice, whatever comes between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from callboard import Budget, Outcome, Proceed, Prompt, ReActAgent, Reply, RunFailed, Verdict
from callboard.errors import ConfigurationError
from callboard.events import Warned
from callboard.journaling.journal import InMemoryJournal
from callboard.messages import ToolCall
from callboard.testing import ScriptedModel, call, check_layer
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import tool
from callboard_mixins import Judgement, ReflexionMixin, ReflexionPolicy
from callboard_mixins.judging import Evaluator, judgement_of
from tests.mixins.kit import watched

pytestmark = pytest.mark.anyio


class Reflecting(ReflexionMixin, ReActAgent):
    """An agent with the layer under test."""


class AskingReflecting(ReflexionMixin, ReActAgent):
    """One that asks a human about each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("may it?") if isinstance(verdict, Proceed) else verdict


def good(prompt: Prompt, reply: Reply) -> Judgement:
    """Good answers say so."""
    return Judgement(1.0) if "good" in reply.text else Judgement(0.5, "say that it is good")


def agent_of(
    script: Sequence[ScriptItem], evaluator: Evaluator | None = good, **options: Any
) -> tuple[Reflecting, ScriptedModel]:
    model = ScriptedModel(script)
    policy = ReflexionPolicy(evaluator=evaluator, **options.pop("policy", {}))
    return Reflecting(model=model, reflexion_policy=policy, **options), model


def test_the_layer_keeps_the_laws() -> None:
    check_layer(
        ReflexionMixin,
        make=lambda: {"reflexion_policy": ReflexionPolicy(evaluator=lambda prompt, reply: True)},
        orders=40,
    )


async def test_a_good_answer_is_not_tried_again() -> None:
    agent, model = agent_of(["it is good"])
    assert (await agent.run("go")).text == "it is good"
    assert len(model.requests) == 1


async def test_the_next_attempt_reads_what_was_wrong() -> None:
    agent, model = agent_of(["so so", "now it is good"])
    assert (await agent.run("the task")).text == "now it is good"
    said = model.requests[1].messages[-1].text
    assert "say that it is good" in said
    assert "the task" in said


async def test_the_best_of_all_attempts_is_returned() -> None:
    scores = iter([0.2, 0.9, 0.4])
    agent, _ = agent_of(["one", "two", "three"], lambda prompt, reply: next(scores))
    reply = await agent.run("go")
    assert (reply.text, reply.outcome) == ("two", Outcome.FINISHED)
    assert reply.message is not None
    assert reply.message.text == "two"


async def test_attempts_are_bounded() -> None:
    agent, model = agent_of(["x"] * 9, lambda prompt, reply: False, policy={"most_attempts": 2})
    await agent.run("go")
    assert len(model.requests) == 2


async def test_a_score_that_passes_is_enough() -> None:
    agent, model = agent_of(["x"] * 9, lambda p, r: 0.8, policy={"passing_score": 0.7})
    await agent.run("go")
    assert len(model.requests) == 1


async def test_an_evaluator_may_be_async() -> None:
    async def judge(prompt: Prompt, reply: Reply) -> bool:
        return reply.text == "b"

    agent, _ = agent_of(["a", "b"], judge)
    assert (await agent.run("go")).text == "b"


async def test_each_prompt_is_judged_by_itself() -> None:
    agent, model = agent_of(["so so", "good", "meh", "good again"])
    await agent.run("first")
    assert (await agent.run("second")).text == "good again"
    assert len(model.requests) == 4


async def test_a_limit_keeps_its_outcome_and_the_best_text_before_it() -> None:
    agent, _ = agent_of(["so so", "summary"], budget=Budget(model_calls=1))
    reply = await agent.run("go")
    assert (reply.outcome, reply.text) == (Outcome.BUDGET, "so so")


async def test_the_agent_s_own_model_may_judge() -> None:
    script = ["so so", '{"score": 0.1, "reflection": "be bold"}', "bold", '```{"score": 1}```']
    agent, model = agent_of(script, None)
    reply, events = await watched(agent)
    assert reply.text == "bold"
    assert "be bold" in model.requests[2].messages[-1].text
    assert [message.text for message in agent.messages if message.role == "assistant"] == [
        "so so",
        "bold",
    ]
    assert "score" not in str(events)


async def test_a_judge_that_cannot_be_read_lets_the_answer_stand() -> None:
    agent, model = agent_of(["so so", "I like it"], None)
    reply, events = await watched(agent)
    assert (reply.text, len(model.requests)) == ("so so", 2)
    assert any([isinstance(event, Warned) and "no judgement" in event.text for event in events])


async def test_an_evaluator_that_raises_fails_the_run_and_the_answer_is_kept() -> None:
    def broken(prompt: Prompt, reply: Reply) -> bool:
        raise OSError("no disk")

    agent, _ = agent_of(["so so"], broken)
    with pytest.raises(RunFailed, match="no disk"):
        await agent.run("go")
    assert agent.messages[-1].text == "so so"


async def test_a_park_is_no_attempt_and_a_restart_in_mid_attempt_goes_on_with_it() -> None:
    """The agent is dropped while its second attempt waits for a human, and made again."""
    done: list[str] = []

    @tool
    def act(text: str) -> str:
        """Act."""
        done.append(text)
        return "acted"

    journal = InMemoryJournal()
    policy = ReflexionPolicy(evaluator=good)
    script: list[ScriptItem] = ["so so", call("act", "a", text="x"), "good"]
    first = AskingReflecting(
        model=ScriptedModel(script), tools=[act], journal=journal, reflexion_policy=policy
    )
    parked = await first.run("go")
    assert parked.outcome is Outcome.AWAITING_APPROVAL
    judged: list[str] = []

    def counting(prompt: Prompt, reply: Reply) -> Judgement:
        judged.append(reply.text)
        return good(prompt, reply)

    second = AskingReflecting(
        model=ScriptedModel(["good"]),
        tools=[act],
        journal=journal,
        digest_key=None,
        reflexion_policy=ReflexionPolicy(evaluator=counting),
    )
    await second.opened()
    await second.approve(second.pending[0].id, by="alice")
    reply = await second.resume()
    assert (reply.text, done, judged) == ("good", ["x"], ["good"])


async def test_a_crash_between_answer_and_judgement_asks_the_model_nothing_twice() -> None:
    calls = [0]

    def judge(prompt: Prompt, reply: Reply) -> bool:
        calls[0] += 1
        if calls[0] == 1:
            raise KeyboardInterrupt
        return True

    journal = InMemoryJournal()
    agent, _ = agent_of(["an answer"], judge, journal=journal)
    with pytest.raises(KeyboardInterrupt):
        await agent.run("go")
    again, model = agent_of([], judge, journal=journal)
    assert (await again.resume()).text == "an answer"
    assert model.requests == []


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 0.5}', 0.5),
        ('Sure:\n{"score": 7, "reflection": "x"}', 1.0),
        ('{"score": "0.25"}', 0.25),
        ("good", None),
        ('{"points": 1}', None),
        ("{", None),
    ],
)
def test_what_a_judge_says_is_read_or_not(text: str, score: float | None) -> None:
    found = judgement_of(text)
    assert (None if found is None else found.score) == score


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="most_attempts=0"):
        ReflexionPolicy(most_attempts=0)
    with pytest.raises(ConfigurationError, match="passing_score=2"):
        ReflexionPolicy(passing_score=2)
    with pytest.raises(ConfigurationError, match="score=-1"):
        Judgement(-1)


async def test_an_evaluator_that_says_nothing_is_told_so() -> None:
    agent, _ = agent_of(["x"], lambda prompt, reply: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(RunFailed, match="the evaluator said None"):
        await agent.run("go")
