"""A conversation that is brought in is mended before it is sent; nothing is run again."""

from __future__ import annotations

import pytest

from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.journaling.records import Repaired, Snapshot
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    SystemMessage,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.testing import call, pairing_faults
from callboard.tooling.tools import wire_name
from tests.framework.kit import Ledger, agent_of, assert_replays, echo, shape

pytestmark = pytest.mark.anyio


def user(text: str) -> UserMessage:
    return UserMessage.of(text)


def said(text: str) -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text),))


def calls(*ids: str, name: str = "charge") -> AssistantMessage:
    made = [ToolCall(id=id, name=name, raw='{"amount":1}') for id in ids]
    return AssistantMessage(content=tuple(made))


def result(id: str, text: str = "r", name: str = "charge") -> ToolResultMessage:
    return ToolResultMessage(call_id=id, tool_name=name, content=(TextBlock(text=text),))


async def sent(*history: ConversationMessage) -> list[str]:
    """What the model is sent after this history and one more prompt. No tool runs."""
    ledger = Ledger()
    agent, model = agent_of(["done"], ledger.charge, messages=history)
    await agent.run("go on")
    assert ledger.entries == []
    assert_replays(agent)
    return shape(model.requests[0].messages)


async def test_orph_05_a_dangling_call_gets_a_result_at_its_place_and_a_record() -> None:
    history = (user("q"), calls("c1", "c2"), result("c1", "a"))
    found = await sent(*history)
    assert found[:3] == ["user: q", "calls: c1 c2", "c1: a"]
    assert found[3].startswith("c2: unknown_outcome:")
    assert "interrupted" in found[3]
    assert found[4] == "user: go on"


async def test_orph_05_the_mending_is_a_record() -> None:
    agent, _ = agent_of(["done"], messages=(user("q"), calls("c1")))
    await agent.run("go on")
    records = await agent.journal.read()
    assert isinstance(records[0], Snapshot)
    assert isinstance(records[1], Repaired)
    assert "c1" in records[1].notes[0]


async def test_pi_64_a_missing_result_stands_between_the_others_and_the_user() -> None:
    found = await sent(user("x"), calls("a", "b"), result("a"), user("y"))
    assert [word.split(":")[0] for word in found] == ["user", "calls", "a", "b", "user", "user"]


async def test_pi_64_a_trailing_call_gets_its_result_at_the_end() -> None:
    found = await sent(user("x"), calls("a"))
    assert [word.split(":")[0] for word in found] == ["user", "calls", "a", "user"]


async def test_qp_54_results_move_to_their_calls_and_strangers_go() -> None:
    history = (user("x"), calls("1", "2"), result("9"), user("y"), result("2"), result("1"))
    found = await sent(*history)
    assert found == ["user: x", "calls: 1 2", "1: r", "2: r", "user: y", "user: go on"]


async def test_qp_54_equal_ids_of_one_message_are_told_apart() -> None:
    history = (user("x"), calls("k", "k"), result("k", "one"), result("k", "two"))
    agent, model = agent_of(["done"], messages=history)
    await agent.run("go on")
    messages = model.requests[0].messages
    assert pairing_faults(messages) == []
    assert [message.text for message in messages[2:4]] == ["one", "two"]


async def test_qp_54_equal_ids_of_two_messages_are_told_apart() -> None:
    history = (user("x"), calls("k"), result("k", "one"), calls("k"), result("k", "two"))
    agent, model = agent_of(["done"], messages=history)
    await agent.run("go on")
    ids = [m.call_id for m in model.requests[0].messages if isinstance(m, ToolResultMessage)]
    assert len(set(ids)) == 2


async def test_empty_messages_are_left_out() -> None:
    found = await sent(user("x"), AssistantMessage(content=()), said("y"))
    assert found == ["user: x", "assistant: y", "user: go on"]


async def test_a_sound_conversation_is_taken_as_it_is() -> None:
    history = (SystemMessage.of("A"), user("x"), calls("a"), result("a"), said("y"))
    agent, model = agent_of(["done"], messages=history)
    await agent.run("go on")
    assert tuple(model.requests[0].messages)[:5] == history
    assert not any(isinstance(r, Repaired) for r in await agent.journal.read())


async def test_msg_04_system_messages_keep_their_places_in_the_transcript() -> None:
    history = (SystemMessage.of("A"), SystemMessage.of("B"), user("hi"), said("hello"))
    found = await sent(*history, SystemMessage.of("hint C"))
    assert found == [
        *["system: A", "system: B", "user: hi", "assistant: hello", "system: hint C"],
        "user: go on",
    ]


async def test_an_agents_messages_make_another_agent() -> None:
    one, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    await one.run("go")
    two, model = agent_of(["more"], echo, messages=one.messages)
    await two.run("again")
    assert shape(model.requests[0].messages) == [*shape(one.messages), "user: again"]
    assert len(one.messages) == 4


async def test_an_id_of_the_given_messages_is_not_used_again() -> None:
    history = (user("x"), calls("k"), result("k"), said("y"))
    agent, model = agent_of([call("echo", "k", x="1"), "done"], echo, messages=history)
    await agent.run("go on")
    ids = [m.call_id for m in model.requests[1].messages if isinstance(m, ToolResultMessage)]
    assert len(set(ids)) == 2


async def test_given_messages_that_end_with_a_prompt_are_answered_by_resume() -> None:
    agent, model = agent_of(["done"], messages=(user("x"),))
    assert (await agent.resume()).text == "done"
    assert shape(model.requests[0].messages) == ["user: x"]


async def test_given_messages_and_a_journal_with_records_are_refused() -> None:
    agent, model = agent_of(["done"])
    await agent.run("go")
    heir = ReActAgent(model=model, journal=agent.journal, messages=agent.messages)
    with pytest.raises(ConfigurationError, match="give one"):
        await heir.run("go")


async def test_orph_05_a_dangling_call_is_not_run_again() -> None:
    ran: list[str] = []

    async def echo(x: str) -> str:
        ran.append(x)
        return x

    history = (user("q"), calls("c1", "c2"), result("c1", "a"))
    agent, model = agent_of(["done"], echo, messages=history)
    assert (await agent.run("continue")).text == "done"
    assert (ran, len(model.requests)) == ([], 1)
    assert pairing_faults(model.requests[0].messages) == []


async def test_qp_54_a_call_without_a_name_or_arguments_can_be_sent() -> None:
    nameless = AssistantMessage.of("", ToolCall(id="k", name="", raw='{"x'))
    agent, model = agent_of(["done"], messages=(user("x"), nameless, result("k", "one")))
    await agent.run("go on")
    answer = model.requests[0].messages[1]
    assert isinstance(answer, AssistantMessage)
    assert answer.calls[0].sendable_raw == "{}"
    assert wire_name(answer.calls[0].name)


async def test_qp_54_a_result_under_another_tools_name_is_renamed() -> None:
    other = ToolResultMessage(call_id="c1", tool_name="other", content=(TextBlock(text="r"),))
    agent, model = agent_of(["done"], messages=(user("x"), calls("c1"), other))
    await agent.run("go on")
    found = model.requests[0].messages[2]
    assert isinstance(found, ToolResultMessage)
    assert (found.tool_name, found.text) == ("charge", "r")
