"""What is counted of a request, what cutting results saves, and what a summary is made of."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import UserMessage, tool
from callboard.messages import AssistantMessage, TextBlock, ToolResultMessage
from callboard.model import Capabilities, ModelRequest, ToolOffer
from callboard.testing import ScriptedModel, call, finish, stream, usage
from callboard.testing.script import ScriptItem
from callboard_mixins import CompactionMixin, CompactionPolicy
from callboard_mixins.compacting import Compacted, trimmer
from callboard_mixins.compaction_size import Measure
from callboard_mixins.summing_up import summary_request, to_sum_up
from tests.mixins.kit import png

pytestmark = pytest.mark.anyio


@tool(effect="pure")
async def look(size: int) -> str:
    """Look at something of that size."""
    return "x" * size


def agent_of(script: list[ScriptItem], **policy: Any) -> tuple[CompactionMixin, ScriptedModel]:
    model = ScriptedModel(script)
    chosen = CompactionPolicy(keep_recent=1, **policy)
    return CompactionMixin(model=model, tools=[look], compaction_policy=chosen), model


def purposes(model: ScriptedModel) -> list[str]:
    return [str(request.purpose) for request in model.requests]


async def test_results_that_are_cut_already_save_nothing_more() -> None:
    """The second time the model says that it is too much, something else must go."""
    counted = stream("one", usage(3_000), finish())
    script: list[ScriptItem] = [call("look", "a", size=4_000), counted, "a sum", "two"]
    agent, model = agent_of(script, at_tokens=900, longest_result_bytes=100)
    await agent.run("1")
    assert purposes(model) == ["answer", "answer"]
    await agent.run("2")
    assert purposes(model)[2:] == ["compaction", "answer"]


async def test_cutting_is_not_enough_where_the_model_counted_more_than_was_estimated() -> None:
    counted = stream(call("look", "b", size=1), usage(3_000), finish("tool_use"))
    script: list[ScriptItem] = [call("look", "a", size=4_000), counted, "a sum", "done"]
    agent, model = agent_of(script, at_tokens=1_500, longest_result_bytes=100)
    await agent.run("go")
    assert purposes(model) == ["answer", "answer", "compaction", "answer"]


async def test_the_system_prompt_and_the_tools_count() -> None:
    model = ScriptedModel(["one", "a sum", "two"])
    policy = CompactionPolicy(keep_recent=1, at_tokens=200)
    agent = CompactionMixin(model=model, system_prompt="s" * 1_000, compaction_policy=policy)
    await agent.run("1")
    await agent.run("2")
    assert purposes(model) == ["answer", "compaction", "answer"]


def test_tools_that_change_are_counted_anew() -> None:
    measure, model = Measure(), ScriptedModel([])
    few = ModelRequest(model=model, messages=(UserMessage.of("x"),))
    many = ModelRequest(model=model, messages=few.messages, offer=ToolOffer(tools=(look,)))
    first = measure.tokens(few, Compacted(), fresh=1)
    assert measure.tokens(many, Compacted(), fresh=1) > first
    assert measure.tokens(few, Compacted(), fresh=1) == first


def test_the_earlier_summary_stays_whole_however_much_is_new() -> None:
    summary = UserMessage.of("THE OLD SUMMARY" + "s" * 9_000)
    new = [UserMessage.of("y" * 4_000) for _ in range(60)]
    text = to_sum_up(new, head=(summary,))
    assert summary.text in text
    assert "earlier messages are left out" in text
    assert len(text) < 205_000


async def test_a_second_summary_is_made_of_the_first() -> None:
    script: list[ScriptItem] = ["a" * 400, "THE FIRST", "b" * 400, "THE SECOND", "c"]
    agent, model = agent_of(script, at_tokens=120)
    for prompt in ("1", "2", "3"):
        await agent.run(prompt)
    assert "THE FIRST" in model.requests[3].messages[0].text


def test_a_small_window_is_asked_for_the_half_of_it() -> None:
    model = ScriptedModel([], capabilities=Capabilities(context_tokens=1_000))
    request = ModelRequest(model=model, messages=())
    old = [UserMessage.of("y" * 500) for _ in range(60)]
    asked = summary_request(request, old, head=(), instructions="sum up")
    assert 1_000 < len(asked.messages[0].text) < 2_200


def test_images_leave_a_trace() -> None:
    seen = ToolResultMessage(call_id="a", tool_name="look", content=(png(),))
    said = UserMessage(content=(TextBlock(text="What is it?"), png()))
    text = to_sum_up([said, AssistantMessage.of("Hm."), seen])
    assert "user: What is it? [image/png]" in text
    assert "result of look (ok): [image/png]" in text


def test_images_of_a_result_that_is_cut_leave_a_trace() -> None:
    content = (TextBlock(text="x" * 1_000), png())
    seen = ToolResultMessage(call_id="a", tool_name="look", content=content)
    assert trimmer(100)(seen).text.endswith("(left out: [image/png])")
