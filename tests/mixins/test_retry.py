"""The model is asked again where that may help, after the right time, and nothing counts twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
import tenacity

from callboard import Budget, ModelError, Outcome, ReActAgent, RunFailed
from callboard.errors import ConfigurationError, ErrorCategory
from callboard.model import Capabilities
from callboard.testing import ScriptedModel, call, check_layer, drop, eof, error, stream, usage
from callboard.testing.script import ScriptItem
from callboard_mixins import RetryMixin, RetryPolicy
from tests.mixins.kit import attempts, retries, run_without, shown, watched

pytestmark = pytest.mark.anyio

BUSY = error("busy", category="overloaded")
MANY = error("slow down", category="rate_limited", status=429, retry_after_s=1.0)
Script = list[ScriptItem]
ACTS = Capabilities(acts=True)


class Retrying(RetryMixin, ReActAgent):
    """An agent with the layer under test."""


def agent_of(script: Sequence[ScriptItem], **options: Any) -> Retrying:
    capabilities = options.pop("capabilities", Capabilities())
    model = ScriptedModel(script, capabilities=capabilities)
    given: dict[str, Any] = {"first_wait_s": 0.1, **options.pop("policy", {})}
    policy = RetryPolicy(**given)
    return Retrying(model=model, retry_policy=policy, **options)


def test_the_layer_keeps_the_laws() -> None:
    check_layer(RetryMixin, orders=60)


async def test_pi_72_a_provider_that_asks_for_a_second_gets_a_second() -> None:
    agent = agent_of([MANY, "done"])
    begun = anyio.current_time()
    reply = await agent.run("go")
    assert reply.text == "done"
    assert anyio.current_time() - begun == pytest.approx(1.0)


async def test_pi_72_a_failure_that_the_provider_calls_final_is_not_tried_again() -> None:
    final = ModelError("no", category=ErrorCategory.OVERLOADED, final=True)
    agent = agent_of([final, "done"])
    with pytest.raises(RunFailed):
        await agent.run("go")
    assert len(attempts(agent)) == 1


async def test_pi_72_a_wait_above_the_cap_fails_at_once() -> None:
    agent = agent_of([error("later", category="rate_limited", retry_after_s=3600.0), "done"])
    begun = anyio.current_time()
    with pytest.raises(RunFailed, match="later"):
        await agent.run("go")
    assert anyio.current_time() == begun


async def test_the_cap_is_on_all_waits_of_a_request_together() -> None:
    slow = error("later", category="rate_limited", retry_after_s=50.0)
    agent = agent_of([slow, slow, slow, "done"])
    begun = anyio.current_time()
    with pytest.raises(RunFailed, match="later"):
        await agent.run("go")
    assert anyio.current_time() - begun == pytest.approx(100.0)


async def test_pi_72_without_a_cap_it_waits_as_long_as_it_is_told() -> None:
    hour = error("later", category="rate_limited", retry_after_s=3600.0)
    agent = agent_of([hour, "done"], policy={"total_wait_s": None})
    begun = anyio.current_time()
    await agent.run("go")
    assert anyio.current_time() - begun == pytest.approx(3600.0)


async def test_pi_72_cancelling_the_run_ends_the_wait() -> None:
    agent = agent_of([MANY, "done"])
    begun = anyio.current_time()
    with anyio.move_on_after(0.5):
        await agent.run("go")
    assert anyio.current_time() - begun == pytest.approx(0.5)
    assert agent.state.last_outcome is Outcome.INTERRUPTED


async def test_interrupting_the_run_ends_the_wait() -> None:
    agent = agent_of([MANY, "done"])
    replies: list[Any] = []

    async def run() -> None:
        replies.append(await agent.run("go"))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.sleep(0.5)
        await agent.interrupt()
    assert replies[0].outcome is Outcome.INTERRUPTED


async def test_str_10_what_was_shown_of_a_broken_attempt_is_voided() -> None:
    agent = agent_of([stream("Here is ", drop("reset")), stream("Here is the ", "plan")])
    reply, events = await watched(agent)
    assert shown(events) == reply.text == "Here is the plan"


async def test_qp_56_a_failure_in_mid_stream_is_voided_and_tried_again() -> None:
    agent = agent_of([stream("a", "b", BUSY), stream("a", "b", "c")])
    reply, events = await watched(agent)
    assert (reply.text, shown(events)) == ("abc", "abc")
    assert "busy; asking again in" in retries(events)[0]


async def test_every_attempt_stands_in_the_journal_and_counts() -> None:
    agent = agent_of([stream("x", usage(5, 1), BUSY), BUSY, stream("done", usage(5, 2))])
    reply = await agent.run("go")
    assert attempts(agent) == [("scripted", "failed")] * 2 + [("scripted", "complete")]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (10, 3)


async def test_attempts_spend_the_model_calls_of_the_budget() -> None:
    script: Script = [BUSY, BUSY, call("note"), "the summary"]
    agent = agent_of(script, budget=Budget(model_calls=3), tools=[note])
    reply = await agent.run("go")
    assert (reply.outcome, reply.limit) == (Outcome.BUDGET, "model_calls=3")


def note() -> str:
    """Write a note."""
    return "noted"


@pytest.mark.parametrize(
    "category", ["auth", "bad_request", "quota", "content_filter", "context_overflow"]
)
async def test_what_no_waiting_helps_is_raised_at_once(category: str) -> None:
    agent = agent_of([error("no", category=category), "done"])
    with pytest.raises(RunFailed) as failed:
        await agent.run("go")
    assert isinstance(failed.value.__cause__, ModelError)
    assert str(failed.value.__cause__) == "no"


@pytest.mark.parametrize("category", ["rate_limited", "overloaded", "network", "malformed_output"])
async def test_what_passes_is_tried_again(category: str) -> None:
    assert (await agent_of([error("no", category=category), "done"]).run("go")).text == "done"


async def test_it_gives_up_after_the_last_attempt() -> None:
    agent = agent_of([BUSY] * 3, policy={"attempts": 3})
    with pytest.raises(RunFailed, match=r"busy \(3 attempts\)"):
        await agent.run("go")
    assert len(attempts(agent)) == 3


async def test_what_it_gave_up_on_is_not_asked_again_by_the_loop() -> None:
    """A stream that breaks off is the loop's to ask again, but not once more for each attempt."""
    agent = agent_of([stream("a", drop("reset"))] * 2, policy={"attempts": 2})
    with pytest.raises(RunFailed, match="reset"):
        await agent.run("go")


async def test_a_stream_without_a_stop_reason_is_left_to_the_loop() -> None:
    agent = agent_of([stream("a", eof()), "done"])
    assert (await agent.run("go")).text == "done"
    assert attempts(agent) == [("scripted", "incomplete"), ("scripted", "complete")]


async def test_waits_grow_and_are_bounded() -> None:
    policy = {"attempts": 9, "first_wait_s": 1.0, "longest_wait_s": 4.0}
    agent = agent_of([BUSY] * 8 + ["done"], policy=policy)
    begun = anyio.current_time()
    await agent.run("go")
    assert 0 < anyio.current_time() - begun <= 1 + 2 + 6 * 4


async def test_any_wait_of_tenacity_can_be_given() -> None:
    agent = agent_of([BUSY, BUSY, "done"], policy={"wait": tenacity.wait_fixed(7)})
    begun = anyio.current_time()
    await agent.run("go")
    assert anyio.current_time() - begun == pytest.approx(14.0)


@pytest.mark.parametrize("before", [[], ["a"]])
async def test_a_provider_that_acts_is_not_asked_again_once_it_began(before: list[str]) -> None:
    """Before the first word only its status tells whether it had room."""
    status = 503 if before else 500
    busy = error("busy", category="overloaded", status=status)
    agent = agent_of([stream(*before, busy), "done"], capabilities=ACTS)
    with pytest.raises(RunFailed, match="busy"):
        await agent.run("go")


@pytest.mark.parametrize("last", [drop("reset"), eof()])
async def test_what_broke_off_of_a_provider_that_acts_is_not_sent_again(last: Any) -> None:
    agent = agent_of([stream("a", last), "done"], capabilities=ACTS)
    reply = await agent.run("go")
    assert (reply.outcome, len(attempts(agent))) == (Outcome.INCOMPLETE, 1)


async def test_a_provider_that_acts_is_asked_again_if_it_had_no_room() -> None:
    assert (await agent_of([MANY, "done"], capabilities=ACTS).run("go")).text == "done"


async def test_the_summary_is_tried_again_too() -> None:
    agent = agent_of([call("note"), BUSY, "in short"], max_iters=1, tools=[note])
    assert (await agent.run("go")).text == "in short"


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": True},
        {"first_wait_s": -1},
        {"total_wait_s": float("nan")},
        {"categories": frozenset({ErrorCategory.AUTH})},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name):
        RetryPolicy(**wrong)


def test_without_tenacity_the_extra_is_named() -> None:
    done = run_without("tenacity", "import callboard_mixins; callboard_mixins.RetryPolicy()")
    assert "MissingExtra: 'tenacity' is not installed" in done.stderr
