"""Hand-offs: one conversation goes from agent to agent, and is valid wherever it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callboard.actors.ref import Ref
from callboard.actors.system import ActorSystem
from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.handing_over import Desk, handoff
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.messages import AssistantMessage, ToolCall, UserMessage
from callboard.replies import Outcome, RunFailed
from callboard.testing import ScriptedModel, call, drop, say, stream
from tests.framework.approval_kit import charge, guarded
from tests.framework.kit import agent_of, assert_replays, echo, results, shape

pytestmark = pytest.mark.anyio

TO = handoff({"billing": "Invoices.", "desk": "Anything else.", "nobody": "Not there."})


def over(to: str, id: str = "h") -> Any:
    return call("handoff", id, to=to, why="it is theirs")


def member(name: str, *script: Any, **options: Any) -> ReActAgent:
    return agent_of(script, TO, echo, name=name, system_prompt=f"You are {name}.", **options)[0]


def prompts(agent: ReActAgent) -> list[Any]:
    """The system prompts that the agent's model was given."""
    model = agent.state.model
    assert isinstance(model, ScriptedModel)
    return [request.system for request in model.requests]


def pair(
    *at_desk: Any, at_billing: Sequence[Any] = ("It was charged once.",), **options: Any
) -> tuple[Desk, ReActAgent, ReActAgent]:
    desk, billing = member("desk", *at_desk), member("billing", *at_billing)
    return Desk({"desk": desk, "billing": billing}, holder="desk", **options), desk, billing


async def test_without_a_hand_off_the_holder_answers() -> None:
    desk, _, _ = pair("Hello.")
    assert (await desk.run("Hi")).text == "Hello."
    assert desk.holder == "desk"


async def test_the_one_who_takes_over_answers_with_all_that_was_said() -> None:
    desk, _, billing = pair(over("billing"))
    assert (await desk.run("I was charged twice.")).text == "It was charged once."
    assert shape(billing.messages) == [
        "user: I was charged twice.",
        "calls: h",
        "h: billing goes on with the conversation from here.",
        "assistant: It was charged once.",
    ]
    assert_replays(billing)


async def test_the_user_goes_on_with_the_new_one() -> None:
    desk, _, billing = pair(over("billing"), at_billing=["Once.", "You are welcome."])
    await desk.run("I was charged twice.")
    assert (await desk.run("Thanks.")).text == "You are welcome."
    assert desk.holder == "billing"
    assert shape(billing.messages)[-2:] == ["user: Thanks.", "assistant: You are welcome."]


async def test_each_agent_keeps_its_own_system_prompt() -> None:
    desk, first, billing = pair(over("billing"))
    await desk.run("go")
    assert prompts(first) == ["You are desk."]
    assert prompts(billing) == ["You are billing."]


async def test_a_conversation_that_comes_back_is_gone_on_with() -> None:
    desk, first, billing = pair(
        over("billing", "1"), "All done.", at_billing=["Once.", over("desk", "2")]
    )
    await desk.run("I was charged twice.")
    assert (await desk.run("Something else.")).text == "All done."
    assert shape(first.messages)[-2:] == [
        "2: desk goes on with the conversation from here.",
        "assistant: All done.",
    ]
    assert shape(first.messages)[:-1] == shape(billing.messages)
    assert_replays(first)


async def test_a_hand_off_to_oneself_is_a_turn_of_ones_own() -> None:
    desk, _, _ = pair(over("desk"), "I am here.")
    assert (await desk.run("go")).text == "I am here."


async def test_agents_that_hand_over_to_each_other_for_ever_are_stopped() -> None:
    to_billing = [over("billing", str(n)) for n in range(9)]
    to_desk = [over("desk", f"b{n}") for n in range(9)]
    desk, first, billing = pair(*to_billing, at_billing=to_desk, most=3)
    reply = await desk.run("go")
    assert (reply.outcome, reply.limit, desk.holder) == (Outcome.BUDGET, "handoffs=3", "billing")
    assert len(prompts(first)) + len(prompts(billing)) == 4


async def test_somebody_who_is_not_there_is_named() -> None:
    desk, _, _ = pair(over("nobody"), "Then I do it.")
    with pytest.raises(ConfigurationError, match="'nobody' is not at this desk; there: desk, bill"):
        await desk.run("go")
    assert desk.holder == "desk"
    assert (await desk.run("And now?")).text == "Then I do it."


async def test_a_name_that_the_tool_does_not_have_is_an_invalid_call() -> None:
    desk, first, _ = pair(over("the moon"), "Then I do it.")
    assert (await desk.run("go")).text == "Then I do it."
    assert "to: " in results(first)["h"].text


async def test_who_calls_another_tool_beside_the_hand_off_answers_the_prompt_itself() -> None:
    desk, _, billing = pair(say(over("billing"), call("echo", "e", x="1")), "Over to billing.")
    assert (await desk.run("go")).text == "Over to billing."
    assert (await desk.run("Well?")).text == "It was charged once."
    assert shape(billing.messages)[-3] == "assistant: Over to billing."


async def test_an_agent_with_another_conversation_does_not_lose_it() -> None:
    desk, _, billing = pair(over("billing"), at_billing=["Hello."])
    await billing.run("Who are you?")
    with pytest.raises(ConfigurationError, match="has a conversation of its own"):
        await desk.run("go")
    assert desk.holder == "desk"
    assert shape(billing.messages) == ["user: Who are you?", "assistant: Hello."]


async def test_an_agent_that_waits_for_a_human_takes_nothing_over() -> None:
    billing, _, _ = guarded(charge("a"), name="billing")
    await billing.run("pay")
    with pytest.raises(ConfigurationError, match="is not finished"):
        await billing.take_over(())


async def test_calls_without_a_result_get_one() -> None:
    agent, model = agent_of(["done"], echo)
    said = AssistantMessage(content=(ToolCall(id="lost", name="echo", raw='{"x":"1"}'),))
    await agent.take_over((UserMessage.of("go"), said))
    assert (await agent.resume()).text == "done"
    assert shape(model.requests[0].messages)[-1].startswith("lost: unknown_outcome")


async def test_a_run_that_waits_for_a_human_is_gone_on_with_and_then_handed_over() -> None:
    first, _, ledger = guarded(charge("a"), over("billing"), name="desk", more=[TO])
    billing = member("billing", "Once.")
    desk = Desk({"desk": first, "billing": billing}, holder="desk")
    asked = (await desk.run("pay")).pending[0]
    await first.approve(asked.id, by="amy")
    assert (await desk.resume()).text == "Once."
    assert (ledger.entries, desk.holder) == ([1], "billing")


async def test_a_failure_of_the_new_one_is_raised_and_it_keeps_the_conversation() -> None:
    broken = [stream(drop()), "Once."]
    desk, _, _ = pair(over("billing"), at_billing=broken)
    with pytest.raises(RunFailed):
        await desk.run("go")
    assert desk.holder == "billing"
    assert (await desk.resume()).text == "Once."


async def test_actors_hand_over_to_each_other() -> None:
    billing = member("billing", "Once.", "Welcome.")
    async with ActorSystem() as system:
        refs: dict[str, ReActAgent | Ref] = {
            "desk": await system.spawn(member("desk", over("billing"))),
            "billing": await system.spawn(billing),
        }
        desk = Desk(refs, holder="desk")
        assert (await desk.run("go")).text == "Once."
        assert (await desk.run("Thanks.")).text == "Welcome."
    assert shape(billing.messages)[0] == "user: go"


async def test_what_was_taken_over_outlives_the_process(tmp_path: Path) -> None:
    def journal() -> SqliteJournal:
        return SqliteJournal(tmp_path / "a.db", address="agent/billing", synchronous="NORMAL")

    first = member("desk", over("billing"))
    billing = member("billing", "Once.", journal=journal())
    await Desk({"desk": first, "billing": billing}, holder="desk").run("go")
    again = member("billing", "Welcome.", journal=journal())
    assert (await again.run("Thanks.")).text == "Welcome."
    assert shape(again.messages)[:2] == ["user: go", "calls: h"]


def test_a_desk_without_its_holder_and_a_hand_off_to_nobody_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'x' is not at this desk; there: nobody"):
        Desk({}, holder="x")
    with pytest.raises(ConfigurationError, match="names nobody"):
        handoff({})
