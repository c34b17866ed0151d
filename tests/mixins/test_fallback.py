"""Where one model fails another one answers, and neither reads what only the other could."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard import (
    AssistantMessage,
    CompositionError,
    Outcome,
    ReActAgent,
    RunFailed,
    TextBlock,
    UserMessage,
)
from callboard.errors import ConfigurationError, ErrorCategory
from callboard.model import Capabilities
from callboard.testing import (
    ScriptedModel,
    call,
    check_layer,
    drop,
    eof,
    error,
    raw_call,
    say,
    stream,
    think,
)
from callboard.testing.script import ScriptItem
from callboard_mixins import (
    FallbackMixin,
    FallbackPolicy,
    MediaFilterMixin,
    RateLimit,
    RateLimiter,
    RateLimitMixin,
    RetryMixin,
    RetryPolicy,
)
from callboard_providers.models.chat_messages import ChatMessages
from tests.mixins.kit import attempts, png, shown, warnings, watched

pytestmark = pytest.mark.anyio

BUSY = error("busy", category="overloaded")
PNG = png()


class Falling(FallbackMixin, ReActAgent):
    """An agent with the layer under test."""


class Whole(FallbackMixin, RateLimitMixin, RetryMixin, MediaFilterMixin, ReActAgent):
    """One with all layers around the model."""


def model(name: str, *script: ScriptItem, **options: Any) -> ScriptedModel:
    return ScriptedModel(script, name=name, **options)


def agent_of(own: ScriptedModel, *others: ScriptedModel, **options: Any) -> Falling:
    policy = FallbackPolicy(**options.pop("policy", {}))
    return Falling(model=own, fallback_models=others, fallback_policy=policy, **options)


def note() -> str:
    """Write a note."""
    return "noted"


def test_the_layer_keeps_the_laws() -> None:
    check_layer(FallbackMixin, make=lambda: {"fallback_models": [ScriptedModel()]}, orders=60)


async def test_the_next_model_answers_and_its_name_stands_on_the_message() -> None:
    agent = agent_of(model("a", BUSY), model("b", "done"))
    reply, events = await watched(agent)
    assert reply.message is not None
    assert (reply.text, reply.message.model) == ("done", "b")
    assert attempts(agent) == [("a", "failed"), ("b", "complete")]
    assert warnings(events) == ["a failed (busy); asking b"]


async def test_models_are_asked_in_order_until_one_answers() -> None:
    agent = agent_of(model("a", BUSY), model("b", BUSY), model("c", "done"), model("d"))
    await agent.run("go")
    assert [name for name, _ in attempts(agent)] == ["a", "b", "c"]


async def test_a_partial_answer_of_the_first_is_voided() -> None:
    agent = agent_of(model("a", stream("Once ", BUSY)), model("b", stream("The ", "end")))
    reply, events = await watched(agent)
    assert (shown(events), reply.text) == ("The end", "The end")


async def test_if_all_fail_the_last_failure_is_raised() -> None:
    agent = agent_of(model("a", BUSY), model("b", error("no credit", category="quota")))
    with pytest.raises(RunFailed, match="no credit"):
        await agent.run("go")


@pytest.mark.parametrize("category", ["auth", "bad_request", "content_filter", "context_overflow"])
async def test_what_the_caller_must_mend_moves_on_only_where_it_is_named(category: str) -> None:
    fails = error("no", category=category)
    with pytest.raises(RunFailed):
        await agent_of(model("a", fails), model("b", "done")).run("go")
    named = {"categories": frozenset({ErrorCategory(category)})}
    agent = agent_of(model("a", fails), model("b", "done"), policy=named)
    assert (await agent.run("go")).text == "done"


@pytest.mark.parametrize("last", ["", stream("x", eof()), stream("x", drop())])
async def test_a_model_that_gives_no_answer_is_followed_by_the_next(last: ScriptItem) -> None:
    agent = agent_of(model("a", last, last, last), model("b", "done"))
    assert (await agent.run("go")).text == "done"


async def test_no_answer_can_be_an_end() -> None:
    agent = agent_of(model("a", "", "", ""), model("b", "x"), policy={"no_answer": False})
    assert (await agent.run("go")).outcome is Outcome.EMPTY_REPLY


async def test_msg_03_a_refusal_is_not_taken_to_another_model() -> None:
    agent = agent_of(model("a", say(stop="refusal")), model("b", "done"))
    assert (await agent.run("go")).outcome is Outcome.REFUSED


async def test_a_model_that_acts_is_followed_by_none() -> None:
    acts = Capabilities(acts=True)
    agent = agent_of(model("a", BUSY, capabilities=acts), model("b", "done"))
    with pytest.raises(RunFailed, match="busy"):
        await agent.run("go")


class Kept(ScriptedModel):
    """A model that keeps connections while it is entered."""

    entered = 0
    left = 0

    async def __aenter__(self) -> Kept:
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left += 1


async def test_a_model_that_was_asked_keeps_its_connections_to_the_end() -> None:
    used, unused = Kept([call("note"), "done"], name="b"), Kept(name="c")
    own = ScriptedModel(name="a", then=BUSY)
    agent = agent_of(own, used, unused, tools=[note])
    await agent.run("go")
    assert (used.entered, used.left) == (1, 1)
    assert (unused.entered, unused.left) == (0, 0)


async def test_cancelling_asks_no_other_model() -> None:
    async def slow(_: object) -> str:
        await anyio.sleep(10)
        return "late"

    other = model("b", "done")
    agent = agent_of(model("a", slow), other)
    with anyio.move_on_after(1):
        await agent.run("go")
    assert other.used == 0


@pytest.mark.parametrize(
    ("stays", "asked"),
    [
        ("request", ["a", "b", "a", "b", "a", "b"]),
        ("run", ["a", "b", "b", "a", "b"]),
        ("agent", ["a", "b", "b", "b"]),
    ],
)
async def test_the_one_that_answered_stays_as_long_as_is_said(stays: str, asked: list[str]) -> None:
    own, other = ScriptedModel(name="a", then=BUSY), model("b", call("note"), "one", "two")
    agent = agent_of(own, other, policy={"stays": stays}, tools=[note])
    await agent.run("go")
    await agent.run("again")
    assert [name for name, _ in attempts(agent)] == asked


async def test_the_agents_own_model_follows_one_that_stays_and_fails() -> None:
    own, other = model("a", BUSY, "back"), model("b", call("note"), BUSY)
    agent = agent_of(own, other, policy={"stays": "run"}, tools=[note])
    assert (await agent.run("go")).text == "back"


async def test_the_summary_falls_back_too() -> None:
    agent = agent_of(model("a", call("note"), BUSY), model("b", "short"), tools=[note], max_iters=1)
    assert (await agent.run("go")).text == "short"


async def test_pi_66_the_next_model_gets_call_ids_and_thinking_that_it_can_read() -> None:
    first = say(think("hm", signature="S"), raw_call("note", "{}", id="call_1|fc_1"))
    other = model("b", "done")
    await agent_of(model("a", first, BUSY), other, tools=[note]).run("go")
    wire = ChatMessages(model="b").wire(other.requests[0].messages)
    assert wire[1]["tool_calls"][0]["id"] == wire[2]["tool_call_id"] != "call_1|fc_1"
    assert "hm" not in repr(wire)


def whole(own: ScriptedModel, other: ScriptedModel, **options: Any) -> Whole:
    policy = RetryPolicy(attempts=2, first_wait_s=0.1)
    return Whole(model=own, fallback_models=[other], retry_policy=policy, **options)


async def test_media_are_filtered_for_each_model_by_itself() -> None:
    sees, blind = model("a", BUSY, BUSY), model("b", "done", capabilities=Capabilities())
    shown_image = UserMessage(content=(TextBlock(text="see"), PNG))
    await whole(sees, blind).run(shown_image)
    first, last = sees.requests[0].messages[0], blind.requests[0].messages[0]
    assert first.content == shown_image.content
    assert last.text == "see[image omitted: this model takes no images]"


async def test_each_model_is_tried_again_before_the_next_is_asked() -> None:
    agent = whole(model("a", BUSY, BUSY), model("b", BUSY, "done"))
    reply, events = await watched(agent)
    assert [name for name, _ in attempts(agent)] == ["a", "a", "b", "b"]
    assert reply.text == "done"
    assert warnings(events) == ["a failed (busy (2 attempts)); asking b"]


async def test_each_model_waits_in_its_own_line() -> None:
    limits = RateLimiter({"a": RateLimit(requests_per_minute=1)})
    agent = whole(model("a", BUSY, BUSY), model("b", "done"), rate_limiter=limits)
    begun = anyio.current_time()
    await agent.run("go")
    assert anyio.current_time() - begun == pytest.approx(60)


async def test_a_model_without_room_is_followed_by_the_next_at_once() -> None:
    limits = RateLimiter({"a": RateLimit(requests_per_minute=1, longest_wait_s=1)})
    agent = whole(model("a", "one"), model("b", "two"), rate_limiter=limits)
    assert [(await agent.run("go")).text for _ in "12"] == ["one", "two"]


@pytest.mark.parametrize("inner", [RetryMixin, RateLimitMixin, MediaFilterMixin])
def test_the_layer_must_stand_outside_of_those_that_suit_one_model(inner: type[ReActAgent]) -> None:
    wrong: list[type[ReActAgent]] = [inner, FallbackMixin, ReActAgent]
    with pytest.raises(CompositionError, match=f"FallbackMixin must go outside {inner.__name__}"):
        type("Wrong", tuple(wrong), {})


def test_without_models_or_with_names_it_is_refused() -> None:
    for wrong in ([], ["openai:gpt-5"]):
        given: Any = wrong
        with pytest.raises(ConfigurationError, match="fallback_models"):
            Falling(model=ScriptedModel(), fallback_models=given)


def test_a_policy_that_makes_no_sense_is_refused() -> None:
    wrong: Any = "forever"
    with pytest.raises(ConfigurationError, match="stays='forever'"):
        FallbackPolicy(stays=wrong)


async def test_two_agents_do_not_share_who_stays() -> None:
    models = [model("a", BUSY, "own"), model("b", "other")]
    one, two = (agent_of(models[0], models[1], policy={"stays": "agent"}) for _ in "12")
    replies = [await one.run("go"), await two.run("go")]
    messages = [reply.message or AssistantMessage() for reply in replies]
    assert [message.model for message in messages] == ["b", "a"]
