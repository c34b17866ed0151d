"""Answers that come in pieces, break off, are empty, or think."""

from __future__ import annotations

from collections.abc import Iterable

import anyio
import pytest

from callboard.events import Event, MessageUpdate
from callboard.journaling.records import DraftInterrupted, ModelAttempted
from callboard.messages import AssistantMessage, StopReason, ThinkingBlock, Usage
from callboard.model import AttemptDiscarded, TextDelta
from callboard.replies import Outcome, RunFailed
from callboard.testing import (
    call,
    call_piece,
    drop,
    eof,
    error,
    finish,
    say,
    stream,
    think,
    usage,
)
from callboard.testing.script import Answer
from callboard.tooling.tools import ToolContext, tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    echo,
    marks,
    results,
    shape,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio


def shown(events: Iterable[Event]) -> str:
    """The text as a client puts it together from the updates."""
    text = ""
    for event in events:
        match event:
            case MessageUpdate(delta=TextDelta(text=more)):
                text += more
            case MessageUpdate(delta=AttemptDiscarded()):
                text = ""
            case _:
                pass
    return text


async def test_pi_04_an_update_for_each_delta_between_one_start_and_one_end() -> None:
    agent, _ = agent_of([stream("he", "llo")])
    reply, events = await watched(agent)
    kinds = [mark for mark in marks(events) if mark.startswith(("ms a", "me a", "message_update"))]
    assert kinds[:3] == ["ms assistant", "message_update", "message_update"]
    assert (kinds[-1], kinds.count("me assistant")) == ("me assistant", 1)
    assert (shown(events), reply.text) == ("hello", "hello")


async def test_pi_04_a_whole_answer_has_a_start_and_an_end_and_no_update() -> None:
    agent, _ = agent_of(["done"])
    _, events = await watched(agent)
    kinds = [mark for mark in marks(events) if mark.startswith(("ms a", "me a", "message_update"))]
    assert kinds == ["ms assistant", "me assistant"]


async def test_the_start_the_updates_and_the_end_of_a_message_share_its_id() -> None:
    agent, _ = agent_of([stream("he", "llo")])
    reply, events = await watched(agent)
    ids = {getattr(event, "message_id", None) for event in events[4:-2]}
    assert reply.message is not None
    assert ids == {reply.message.id}


async def test_str_01_usage_after_the_stop_reason_counts() -> None:
    agent, _ = agent_of([stream("he", "llo", finish("end"), usage(8, 4))])
    reply = await agent.run("go")
    assert (reply.text, reply.usage.input_tokens, reply.usage.output_tokens) == ("hello", 8, 4)


async def test_str_02_fragments_without_an_index_join_the_last_call() -> None:
    answer = stream(
        call_piece('{"x":', id="a", name="echo"),
        call_piece('"1"}'),
        call_piece('{"x":"2"}', id="b", name="echo"),
        call_piece('{"x":"3"}', id="c", name="echo", index=5),
    )
    agent, _ = agent_of([answer, "done"], echo)
    await agent.run("go")
    assert shape(agent.messages)[1:5] == ["calls: a b c", "a: 1", "b: 2", "c: 3"]


async def test_str_03_another_id_under_the_same_index_is_another_call() -> None:
    answer = stream(
        call_piece('{"x":"1"}', id="a", name="echo", index=0),
        call_piece('{"x":"2"}', id="b", name="echo", index=0),
    )
    agent, _ = agent_of([answer, "done"], echo)
    await agent.run("go")
    assert shape(agent.messages)[2:4] == ["a: 1", "b: 2"]


def unterminated() -> Answer:
    return stream(call_piece('{"amount":1}', id="a", name="charge"), eof())


async def test_str_07_a_stream_without_a_stop_reason_runs_nothing_and_is_asked_again() -> None:
    ledger = Ledger()
    agent, model = agent_of([unterminated(), "done"], ledger.charge)
    assert (await agent.run("go")).text == "done"
    assert (ledger.entries, len(model.requests)) == ([], 2)
    assert shape(agent.messages) == ["user: go", "assistant: done"]


async def test_str_07_it_ends_as_incomplete_after_two_retries() -> None:
    ledger = Ledger()
    agent, model = agent_of([], ledger.charge, then=unterminated())
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.INCOMPLETE, 3)
    assert (ledger.entries, shape(agent.messages)) == ([], ["user: go"])


async def test_str_10_a_retry_voids_what_was_shown() -> None:
    script: Script = [stream("Here is ", drop("reset")), stream("Here is the plan")]
    agent, _ = agent_of(script)
    reply, events = await watched(agent)
    assert (shown(events), reply.text) == ("Here is the plan", "Here is the plan")
    assert {e.attempt for e in events if isinstance(e, MessageUpdate)} == {0, 1}
    assert marks(events).count("ms assistant") == marks(events).count("me assistant") == 1


async def test_qp_56_a_broken_stream_does_not_double_the_text() -> None:
    agent, model = agent_of([stream("a", "b", drop()), stream("a", "b")])
    _, events = await watched(agent)
    assert (shown(events), model.open_streams) == ("ab", 0)
    assert "retry" in marks(events)


async def test_str_12_run_and_stream_and_whole_answers_tell_the_same() -> None:
    script: Script = [
        say(call("echo", "a", x="1"), usage=Usage(input_tokens=3, output_tokens=2)),
        say("ok", usage=Usage(input_tokens=5, output_tokens=1)),
    ]
    one, _ = agent_of(script, echo)
    other, _ = agent_of(script, echo)
    reply, watched_events = await watched(one)
    async with other.stream("go") as events:
        streamed_events = [event async for event in events]
    assert events.reply is not None
    assert shape(events.reply.messages) == shape(reply.messages)
    assert events.reply.usage == reply.usage
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (8, 3)
    assert marks(streamed_events) == marks(watched_events)


async def test_usage_that_nobody_reported_is_unknown_and_not_zero() -> None:
    agent, _ = agent_of(["done"])
    assert (await agent.run("go")).usage.input_tokens is None


async def test_msg_01_nothing_empty_is_stored_or_sent() -> None:
    script: Script = [say(""), say("", call("echo", "a", x="1")), "done", "more"]
    agent, model = agent_of(script, echo)
    await agent.run("go")
    assert (await agent.run("again")).text == "more"
    assert all(m.content for request in model.requests for m in request.messages)


async def test_msg_03_an_empty_filtered_answer_is_refused_and_not_asked_again() -> None:
    agent, model = agent_of([say("", stop="filter", detail="violence")])
    reply = await agent.run("go")
    assert (reply.outcome, reply.text, len(model.requests)) == (Outcome.REFUSED, "violence", 1)


async def test_msg_03_a_refusal_that_only_thought_keeps_the_thought_for_people() -> None:
    agent, model = agent_of([stream(think("hm"), finish("refusal"))])
    reply = await agent.run("go")
    assert (reply.outcome, len(model.requests)) == (Outcome.REFUSED, 1)
    kept = [r for r in await agent.journal.read() if isinstance(r, DraftInterrupted)]
    assert isinstance(kept[0].partial.content[0], ThinkingBlock)
    assert shape(agent.messages) == ["user: go"]


async def test_msg_03_a_refusal_in_words_is_the_reply() -> None:
    agent, _ = agent_of([say("I will not", stop="refusal")])
    reply = await agent.run("go")
    assert (reply.outcome, reply.text) == (Outcome.REFUSED, "I will not")
    assert reply.stop_reason is StopReason.REFUSAL


async def test_uni_01_halves_of_a_character_join_and_lone_ones_are_replaced() -> None:
    async def names() -> str:
        return "a\udce9"

    script: Script = [stream("\ud83d", "\ude00 hi \ud83d"), call("names", "a"), "done"]
    agent, _ = agent_of(script, names)
    assert (await agent.run("go \ud800")).text == "\N{GRINNING FACE} hi �"
    await agent.run("again")
    assert results(agent)["a"].text == "a�"
    assert all(m.text.encode() for m in agent.messages if m.text)


async def test_uni_02_long_results_are_cut_within_their_bytes() -> None:
    for limit in range(1000, 1011):
        zh = tool(name="zh", max_result_bytes=limit)(lambda: "中文\N{GRINNING FACE}" * 10_000)
        agent, _ = agent_of([call("zh", "a"), "done"], zh)
        await agent.run("go")
        assert 900 < len(results(agent)["a"].text.encode()) <= limit


async def test_thk_01_signed_thinking_is_sent_back_whole_and_first() -> None:
    answer = stream(
        think("I need echo"),
        think(signature="AAA"),
        think(signature="BBB"),
        call_piece('{"x":"1"}', id="a", name="echo", index=0),
    )
    agent, model = agent_of([answer, "done"], echo)
    await agent.run("go")
    sent = model.requests[1].messages[1]
    assert sent.content[0] == ThinkingBlock(text="I need echo", signature="AAABBB")


async def test_qp_18_a_message_of_thinking_alone_is_asked_again() -> None:
    agent, model = agent_of([stream(think("hm")), "done"])
    assert (await agent.run("go")).text == "done"
    assert len(model.requests) == 2


async def test_each_model_call_is_recorded_with_how_it_ended() -> None:
    agent, _ = agent_of([say(""), stream("x", eof()), "done"])
    await agent.run("go")
    attempts = [r for r in await agent.journal.read() if isinstance(r, ModelAttempted)]
    assert [attempt.ended for attempt in attempts] == ["complete", "incomplete", "complete"]


async def test_a_failed_model_call_is_recorded_with_its_error() -> None:
    agent, model = agent_of([stream("par", error("quota", category="quota"))])
    with pytest.raises(RunFailed, match="quota"):
        await agent.run("go")
    attempts = [r for r in await agent.journal.read() if isinstance(r, ModelAttempted)]
    assert [(a.ended, a.error) for a in attempts] == [("failed", "quota")]
    assert model.open_streams == 0


async def test_pi_20_progress_is_told_between_start_and_end_and_never_after() -> None:
    async def work(context: ToolContext) -> str:
        context.update(1)
        context.update(2)
        late.append(context)
        return "done"

    late: list[ToolContext] = []
    agent, _ = agent_of([call("work", "a"), "done"], work)
    with agent.watch() as events:
        await agent.run("go")
        late[0].update(3)
        await anyio.sleep(0.01)
    told = [m for m in marks([e async for e in events]) if m.endswith(" a")]
    assert told == ["ts a", "tu a", "tu a", "te a", "me a"]


async def test_an_answer_with_text_and_calls_keeps_both() -> None:
    agent, _ = agent_of([say("I look", call("echo", "a", x="1")), "done"], echo)
    await agent.run("go")
    answer = agent.messages[1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.text, len(answer.calls), statuses(agent)) == ("I look", 1, {"a": "ok"})


async def test_uni_01_a_system_prompt_with_half_a_character_can_be_sent() -> None:
    for system in ("be kind \ud83d", lambda: "be kind \ud83d"):
        agent, model = agent_of(["done"], system_prompt=system)
        await agent.run("go")
        assert model.requests[0].system == "be kind \N{REPLACEMENT CHARACTER}"
