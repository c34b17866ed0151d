"""Old rounds are summed up for the model; nothing is split, lost, or asked twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Budget, InMemoryJournal, Outcome, ReActAgent, RunFailed, tool
from callboard.errors import ConfigurationError
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import ModelRequest, Purpose
from callboard.testing import ScriptedModel, call, check_layer, error, finish, stream, usage
from callboard.testing.script import ScriptItem
from callboard_mixins import CompactionMixin, CompactionPolicy
from callboard_mixins.compacted_view import head_of
from callboard_mixins.compacting import Compacted, cut_point, trimmer
from callboard_mixins.compaction_size import Measure
from tests.mixins.kit import watched

pytestmark = pytest.mark.anyio

TOO_LONG = error("too long", category="context_overflow")


class Compacting(CompactionMixin, ReActAgent):
    """An agent with the layer under test."""


@tool(effect="pure")
async def look(size: int) -> str:
    """Look at something of that size."""
    return "x" * size


def agent_of(script: Sequence[ScriptItem], **options: Any) -> tuple[Compacting, ScriptedModel]:
    model = ScriptedModel(script)
    policy = CompactionPolicy(**options.pop("policy", {}))
    return Compacting(model=model, tools=[look], compaction_policy=policy, **options), model


def asked(model: ScriptedModel) -> list[tuple[str, list[str]]]:
    """What each request was for, and the first words of its messages."""
    return [
        (str(request.purpose), [message.text[:20] for message in request.messages])
        for request in model.requests
    ]


def rounds(count: int, calls: int) -> list[ConversationMessage]:
    """A prompt and so many rounds of parallel calls."""
    messages: list[ConversationMessage] = [UserMessage.of("go")]
    for at in range(count):
        asked = [ToolCall(id=f"{at}.{n}", name="look", raw="{}") for n in range(calls)]
        messages.append(AssistantMessage(content=tuple(asked)))
        messages += [
            ToolResultMessage(call_id=one.id, tool_name="look", content=(TextBlock(text="seen"),))
            for one in asked
        ]
    return messages


def test_the_layer_keeps_the_laws() -> None:
    check_layer(CompactionMixin, orders=40)


def test_the_layer_keeps_the_laws_when_it_compacts_all_the_time() -> None:
    policy = CompactionPolicy(at_tokens=1, keep_recent=1)
    check_layer(CompactionMixin, make=lambda: {"compaction_policy": policy}, orders=40)


async def test_old_rounds_are_summed_up_and_the_conversation_stays_whole() -> None:
    script: list[ScriptItem] = ["a" * 400, "b" * 400, "They said a and b.", "c"]
    agent, model = agent_of(script, policy={"at_tokens": 150, "keep_recent": 1})
    for prompt in ("one", "two"):
        await agent.run(prompt)
    reply = await agent.run("three")
    assert reply.text == "c"
    assert [purpose for purpose, _ in asked(model)] == ["answer", "answer", "compaction", "answer"]
    assert asked(model)[-1][1] == ["(What was said befor", "three"]
    assert "They said a and b." in model.requests[-1].messages[0].text
    assert [m.text[:3] for m in agent.messages] == ["one", "aaa", "two", "bbb", "thr", "c"]


async def test_watchers_are_not_shown_the_summary_and_the_budget_counts_it() -> None:
    script: list[ScriptItem] = ["a" * 400, "a secret summary", "c"]
    options: dict[str, Any] = {"policy": {"at_tokens": 60, "keep_recent": 1}}
    agent, _ = agent_of(script, budget=Budget(model_calls=2), **options)
    await agent.run("one")
    reply, events = await watched(agent, "two")
    assert reply.text == "c"
    assert "a secret summary" not in str(events)


async def test_qp_58_the_newest_message_of_the_user_is_never_summed_up() -> None:
    agent, model = agent_of(["ok"], policy={"at_tokens": 50, "keep_recent": 3})
    assert (await agent.run("x" * 300)).text == "ok"
    assert asked(model) == [("answer", ["x" * 20])]


def test_ctx_01_cuts_stand_at_round_borders_and_at_least_the_last_round_stays() -> None:
    messages = rounds(30, 3)
    for keep in (1, 2, 10):
        assert cut_point(messages, 0, keep_recent=keep) == len(messages) - 4 * keep


async def test_ctx_02_the_current_round_is_shown_whole() -> None:
    script: list[ScriptItem] = [
        "hello",
        call("look", "a", size=8_000),
        call("look", "b", size=8_001),
        "a sum",
        "done",
    ]
    agent, model = agent_of(script, policy={"at_tokens": 2_100, "keep_recent": 1})
    await agent.run("hi")
    assert (await agent.run("go")).text == "done"
    last = model.requests[-1].messages
    assert [len(m.text) for m in last if m.role == "tool"] == [8_001]


async def test_cutting_old_results_may_be_enough() -> None:
    script: list[ScriptItem] = [call("look", "a", size=8_000), "seen", "fine"]
    policy = {"at_tokens": 1_500, "keep_recent": 1, "longest_result_bytes": 100}
    agent, model = agent_of(script, policy=policy)
    await agent.run("go")
    assert (await agent.run("and?")).text == "fine"
    shown = next(m.text for m in model.requests[-1].messages if m.role == "tool")
    assert shown.startswith("x" * 50)
    assert "the first 100 of its 8000 bytes are shown" in shown
    assert len(agent.messages[2].text) == 8_000


async def test_pi_74_a_request_that_is_too_long_is_compacted_and_asked_once_more() -> None:
    script: list[ScriptItem] = ["one", TOO_LONG, "a sum", "fine"]
    agent, model = agent_of(script, policy={"keep_recent": 1})
    await agent.run("hi")
    assert (await agent.run("go")).text == "fine"
    assert asked(model)[-1] == ("answer", ["(What was said befor", "go"])


async def test_pi_74_a_second_overflow_for_one_message_of_the_user_is_the_end() -> None:
    script: list[ScriptItem] = ["one", TOO_LONG, "a sum", TOO_LONG]
    agent, model = agent_of(script, policy={"keep_recent": 1})
    await agent.run("hi")
    with pytest.raises(RunFailed, match="too long"):
        await agent.run("go")
    model.assert_complete()


async def test_pi_74_an_overflow_with_nothing_to_sum_up_is_the_end() -> None:
    agent, model = agent_of([TOO_LONG])
    with pytest.raises(RunFailed, match="too long"):
        await agent.run("go")
    assert len(model.requests) == 1


async def test_pi_76_usage_from_before_a_summary_is_not_believed_and_later_one_is() -> None:
    script: list[ScriptItem] = [
        stream("one", usage(900), finish()),
        "a sum",
        stream("two", usage(40), finish()),
        "three",
    ]
    agent, model = agent_of(script, policy={"at_tokens": 500, "keep_recent": 1})
    for prompt in ("a", "b", "c"):
        await agent.run(prompt)
    assert [purpose for purpose, _ in asked(model)] == ["answer", "compaction", "answer", "answer"]


async def test_a_summary_that_fails_leaves_the_old_messages_out_and_says_so() -> None:
    broken = error("no", category="bad_request")
    script: list[ScriptItem] = ["a" * 400, broken, "c"]
    agent, model = agent_of(script, policy={"at_tokens": 60, "keep_recent": 1})
    await agent.run("one")
    reply, events = await watched(agent, "two")
    assert reply.text == "c"
    assert model.requests[-1].messages[0].text.startswith("(The messages before this point were")
    assert "could not be summed up" in str(events)


async def test_a_restart_shows_the_same_and_sums_up_nothing_twice() -> None:
    journal = InMemoryJournal()
    script: list[ScriptItem] = ["a" * 400, "They said a.", "b"]
    options: dict[str, Any] = {"policy": {"at_tokens": 100, "keep_recent": 1}, "journal": journal}
    agent, _ = agent_of(script, **options)
    await agent.run("one")
    await agent.run("two")
    again, model = agent_of(["c"], **options)
    await again.run("3")
    assert asked(model) == [("answer", ["(What was said befor", "two", "b", "3"])]


async def test_the_summary_at_a_limit_sees_the_compacted_view_too() -> None:
    script: list[ScriptItem] = ["a" * 400, "sum", call("look", "a", size=1), "what I know"]
    policy = {"at_tokens": 100, "keep_recent": 1}
    agent, model = agent_of(script, policy=policy, max_iters=1)
    await agent.run("one")
    reply = await agent.run("two")
    assert (reply.outcome, reply.text) == (Outcome.MAX_ITERS, "what I know")
    assert model.requests[-1].purpose is Purpose.SUMMARY
    last = model.requests[-1].messages
    assert last[0].text.startswith("(What was said before")
    assert [message.role for message in last] == ["user", "user", "assistant", "tool", "user"]
    assert last[1].text == "two"


def test_what_was_estimated_is_not_looked_at_again() -> None:
    measure = Measure()
    messages: list[ConversationMessage] = [UserMessage.of("x" * 400)] * 3
    request = ModelRequest(model=ScriptedModel([]), messages=messages)
    first = measure.tokens(request, Compacted(), fresh=3)
    messages.append(UserMessage.of("y" * 40))
    assert measure.tokens(request, Compacted(), fresh=4) == first + 14


@given(
    shape=st.lists(st.sampled_from(["user", "say", "call"]), min_size=1, max_size=20),
    keep=st.integers(1, 5),
    begun=st.integers(0, 5),
)
def test_no_call_is_parted_from_its_result(shape: list[str], keep: int, begun: int) -> None:
    """Whatever the conversation: whole rounds are summed up, and what must stay stays."""
    messages: list[ConversationMessage] = []
    for at, kind in enumerate(shape):
        if kind == "call":
            messages += rounds(1, 2)[1:]
        else:
            say = UserMessage.of(f"{at}") if kind == "user" else AssistantMessage.of(f"{at}")
            messages.append(say)
    borders = [at for at, m in enumerate(messages) if not isinstance(m, ToolResultMessage)]
    start = borders[min(begun, len(borders) - 1)]
    point = cut_point(messages, start, keep_recent=keep)
    assert point == start or point in borders
    assert point <= max(start, len(messages) - 1)
    made = Compacted(upto=messages[point - 1].id) if point > start else Compacted()
    users = [m for m in messages if isinstance(m, UserMessage)]
    shown = [*head_of(made, messages, point), *messages[point if point > start else 0 :]]
    assert not users or users[-1] in shown


def test_only_long_results_are_cut() -> None:
    trim = trimmer(100)
    short, prompt = rounds(1, 1)[2], UserMessage.of("x" * 1_000)
    assert trim(short) is short
    assert trim(prompt) is prompt


@pytest.mark.parametrize(
    ("keyword", "value"), [("at_tokens", 0), ("at_share", 0), ("at_share", 1.5), ("keep_recent", 0)]
)
def test_wrong_policies_are_refused(keyword: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=keyword):
        CompactionPolicy(**{keyword: value})  # type: ignore[arg-type]


async def test_a_long_run_on_one_prompt_keeps_the_prompt_as_it_is() -> None:
    looks: list[ScriptItem] = [call("look", str(at), size=400 + at) for at in range(4)]
    script = [*looks[:3], "saw three", looks[3], "done"]
    agent, model = agent_of(script, policy={"at_tokens": 300, "keep_recent": 1})
    assert (await agent.run("the question")).text == "done"
    shown = [message.text[:20] for message in model.requests[-2].messages]
    assert shown[:2] == ["(What was said befor", "the question"]
    assert [message.role for message in model.requests[-2].messages][2:] == ["assistant", "tool"]


async def test_a_summary_that_was_refused_or_cut_off_is_none() -> None:
    cut = stream("They said", finish("length"))
    script: list[ScriptItem] = ["a" * 400, cut, "c"]
    agent, model = agent_of(script, policy={"at_tokens": 60, "keep_recent": 1})
    await agent.run("one")
    await agent.run("two")
    assert model.requests[-1].messages[0].text.startswith("(The messages before this point were")
