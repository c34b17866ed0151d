"""Ways to run an agent: run, run_sync, stream, watch, resume; one run at a time."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import anyio
import pytest

from callboard.errors import ConfigurationError
from callboard.events import AgentEnd, Event
from callboard.messages import TextBlock, Usage, UserMessage
from callboard.model import ModelRequest
from callboard.replies import Outcome, RunFailed
from callboard.testing import call, error, pause, say, stream
from callboard.testing.script import Answer
from callboard.watching import STREAM_LIMIT
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    echo,
    marks,
    shape,
    statuses,
    wait,
    watched,
)

pytestmark = pytest.mark.anyio


async def test_a_prompt_may_be_text_a_message_several_or_blocks() -> None:
    for prompt in ("hi", UserMessage.of("hi"), [UserMessage.of("hi")], [TextBlock(text="hi")]):
        agent, model = agent_of(["done"])
        await agent.run(prompt)
        assert shape(model.requests[0].messages) == ["user: hi"]


@pytest.mark.parametrize("prompt", ["", []])
async def test_an_empty_prompt_is_refused(prompt: str) -> None:
    agent, model = agent_of(["done"])
    with pytest.raises(ConfigurationError, match="empty prompt"):
        await agent.run(prompt)
    assert (model.requests, agent.messages) == ([], ())


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_run_sync_answers_without_a_loop(anyio_backend: str) -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    assert agent.run_sync("go").text == "done"


async def test_run_sync_inside_a_loop_is_a_clear_error() -> None:
    agent, model = agent_of(["done"])
    with pytest.raises(ConfigurationError, match=r"await agent\.run"):
        agent.run_sync("go")
    assert model.requests == []


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_loop_01_one_agent_works_in_three_event_loops(anyio_backend: str) -> None:
    agent, _ = agent_of([], wait, then="done")
    for _ in range(3):
        assert asyncio.run(agent.run("go")).text == "done"
    anyio.run(agent.run, "go", backend="trio")
    assert len(agent.messages) == 8


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_loop_01_a_run_that_was_cut_off_in_one_loop_goes_on_in_another(anyio_backend: str) -> None:
    async def cut_off() -> None:
        with anyio.move_on_after(0.01):
            await agent.run("go")

    agent, _ = agent_of([stream(pause(60)), "done", "more"], max_concurrency=2)
    asyncio.run(cut_off())
    assert asyncio.run(agent.run("again")).text == "done"


async def test_mem_01_runs_of_one_agent_are_served_one_at_a_time_in_order() -> None:
    def answer(request: ModelRequest) -> Answer:
        last = request.messages[-1]
        if last.role == "user":
            return say(call("wait", ms=30))
        return say(request.messages[-3].text)

    agent, _ = agent_of([], wait, then=answer)
    words = [f"word {at}" for at in range(10)]
    replies: dict[str, str] = {}

    async def ask(word: str) -> None:
        replies[word] = (await agent.run(word)).text

    async with anyio.create_task_group() as group:
        for word in words:
            group.start_soon(ask, word)
    assert replies == {word: word for word in words}
    assert_replays(agent)


async def test_qp_32_two_runs_queue_up_first_come_first_served() -> None:
    agent, _ = agent_of([stream(pause(1), "one"), "two"])
    ended: list[str] = []

    async def ask(word: str) -> None:
        ended.append((await agent.run(word)).text)

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "a")
        await anyio.sleep(0.1)
        group.start_soon(ask, "b")
    assert ended == ["one", "two"]
    assert shape(agent.messages)[0::2] == ["user: a", "user: b"]


async def test_a_waiting_run_that_is_cancelled_leaves_the_line() -> None:
    agent, model = agent_of([stream(pause(5), "one"), "three"])

    async def give_up() -> None:
        with anyio.move_on_after(1):
            await agent.run("b")

    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "a")
        await anyio.sleep(0.1)
        group.start_soon(give_up)
    assert (await agent.run("c")).text == "three"
    assert "user: b" not in shape(model.requests[1].messages)


async def test_two_agents_run_side_by_side() -> None:
    agents = [agent_of([stream(pause(1), f"{at}")])[0] for at in range(10)]
    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(agent.run, "go")
    assert anyio.current_time() - started == pytest.approx(1)
    assert [agent.messages[-1].text for agent in agents] == [f"{at}" for at in range(10)]


async def test_a_stream_gives_the_events_and_then_the_reply() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    async with agent.stream("go") as events:
        told = [event async for event in events]
    assert isinstance(told[-1], AgentEnd)
    assert events.reply is not None
    assert events.reply.text == "done"


async def test_a_stream_of_a_run_that_fails_raises_it() -> None:
    agent, _ = agent_of([error("down")])
    told: list[Event] = []
    with pytest.raises(RunFailed, match="down"):
        async with agent.stream("go") as events:
            async for event in events:
                told.append(event)  # noqa: PERF401  what came before the failure is kept
    assert marks(told)[-1] == "agent_end failed"


async def test_what_the_reader_raises_is_raised_as_it_is() -> None:
    agent, _ = agent_of([stream("a", pause(60), "b")])
    with pytest.raises(KeyError, match="mine"):
        async with agent.stream("go") as events:
            async for _ in events:
                raise KeyError("mine")
    assert agent.state.last_outcome is Outcome.INTERRUPTED


async def test_loop_06_leaving_a_stream_early_cancels_the_run() -> None:
    ledger = Ledger()
    agent, model = agent_of([call("slow", "a"), "more"], ledger.slow)
    async with agent.stream("go") as events:
        async for event in events:
            if event.kind == "tool_start":
                break
    assert model.open_streams == 0
    assert agent.state.last_outcome is Outcome.INTERRUPTED
    assert set(statuses(agent).values()) <= {"cancelled", "unknown_outcome"}
    assert (await agent.run("again")).text == "more"


async def test_loop_06_a_stream_whose_reader_is_cancelled_from_another_task_ends() -> None:
    agent, model = agent_of([stream("a", pause(60), "b")])

    async def read() -> None:
        async with agent.stream("go") as events:
            async for _ in events:
                seen.set()

    seen = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await seen.wait()
        await anyio.sleep(1)
        group.cancel_scope.cancel()
    assert (model.open_streams, agent.state.streaming) == (0, False)
    assert agent.state.last_outcome is Outcome.INTERRUPTED


async def test_a_slow_reader_slows_the_run_and_loses_nothing() -> None:
    pieces = [f"{at} " for at in range(STREAM_LIMIT * 3)]
    agent, _ = agent_of([stream(*pieces)])
    most = 0
    text = ""
    async with agent.stream("go") as events:
        async for event in events:
            most = max(most, len(events._events))
            await anyio.sleep(0.001)
            text += getattr(getattr(event, "delta", None), "text", "")
    assert text == "".join(pieces)
    assert most <= STREAM_LIMIT + 1


async def test_a_watcher_that_falls_behind_is_told_how_much_it_missed() -> None:
    agent, _ = agent_of([stream(*"abcdefghij")])
    with agent.watch(limit=5) as events:
        await agent.run("go")
    told = [event async for event in events]
    assert len(told) == 5
    assert events.missed == told[0].sequence - 1
    assert events.missed == 0
    assert isinstance(told[-1], AgentEnd)


async def test_a_watcher_never_slows_the_run() -> None:
    agent, _ = agent_of([stream(*["x"] * STREAM_LIMIT * 3)])
    with agent.watch(limit=10):
        started = anyio.current_time()
        await agent.run("go")
        assert anyio.current_time() == started


async def test_a_watcher_follows_all_runs_until_it_leaves() -> None:
    agent, _ = agent_of(["one", "two", "three"])
    with agent.watch() as events:
        await agent.run("a")
        await agent.run("b")
    await agent.run("c")
    ends = [event for event in [e async for e in events] if isinstance(event, AgentEnd)]
    assert [end.text for end in ends] == ["one", "two"]


async def test_resume_with_nothing_to_do_returns_the_last_reply() -> None:
    agent, model = agent_of(["done"])
    reply = await agent.run("go")
    again = await agent.resume()
    assert (again.text, again.run_id, len(model.requests)) == ("done", reply.run_id, 1)


async def test_resume_of_an_agent_that_was_never_asked_is_an_error() -> None:
    agent, _ = agent_of([])
    with pytest.raises(ConfigurationError, match="never asked"):
        await agent.resume()


async def test_pi_45_resume_goes_on_from_an_unanswered_result() -> None:
    agent, model = agent_of([call("echo", "a", x="1"), error("down"), "done"], echo)
    with pytest.raises(RunFailed):
        await agent.run("go")
    assert (await agent.resume()).text == "done"
    assert shape(model.requests[2].messages)[-1] == "a: 1"


async def test_pi_46_resume_takes_what_waits_behind_an_answer() -> None:
    agent, _ = agent_of(["done", "r1", "r2"])
    await agent.run("go")
    await agent.steer("s1")
    await agent.steer("s2")
    await agent.resume()
    assert [m.role for m in agent.messages[2:]] == ["user", "assistant", "user", "assistant"]


async def test_the_control_lane_never_waits_behind_a_run() -> None:
    agent, _ = agent_of([stream(pause(60), "done"), "more"])
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        started = anyio.current_time()
        await agent.withdraw(await agent.steer("x"))
        assert anyio.current_time() == started


async def test_the_state_follows_the_agent() -> None:
    agent, model = agent_of([stream(pause(5), "done")], echo)
    state = agent.state
    assert (state.model, [tool.name for tool in state.tools]) == (model, ["echo"])
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(1)
        assert (agent.state.streaming, state.run_id is not None) == (True, True)
    assert (agent.state.streaming, state.last_outcome) == (False, Outcome.FINISHED)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
def test_str_12_the_synchronous_way_is_the_same_loop(anyio_backend: str) -> None:
    script: Script = [
        say(call("echo", "a", x="1"), usage=Usage(input_tokens=3, output_tokens=2)),
        say("ok", usage=Usage(input_tokens=5, output_tokens=1)),
    ]
    one, _ = agent_of(script, echo)
    other, _ = agent_of(script, echo)
    here, there = one.run_sync("go"), asyncio.run(other.run("go"))
    assert shape(here.messages) == shape(there.messages)
    assert here.usage == there.usage == Usage(input_tokens=8, output_tokens=3)


async def test_mem_01_different_conversations_run_side_by_side() -> None:
    replies: dict[str, str] = {}

    async def ask(word: str) -> None:
        agent, _ = agent_of([call("wait", ms=30), word], wait)
        replies[word] = (await agent.run(word)).text

    words = [f"word {at}" for at in range(10)]
    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        for word in words:
            group.start_soon(ask, word)
    assert replies == {word: word for word in words}
    assert anyio.current_time() - started == pytest.approx(0.03, abs=0.005)


async def test_loop_06_the_reader_of_a_stream_keeps_its_context() -> None:
    async def look() -> str:
        variable.set("inside")
        return "seen"

    variable = ContextVar("variable", default="outside")
    agent, _ = agent_of([call("look", "a"), "done"], look)
    async with agent.stream("go") as events:
        seen = {variable.get() async for _ in events}
    assert seen == {variable.get()} == {"outside"}


async def test_qp_06_a_prompt_given_again_after_a_failure_stands_once() -> None:
    agent, model = agent_of([error("500"), "done", "more"])
    prompt = UserMessage.of("hi")
    with pytest.raises(RunFailed):
        await agent.run(prompt)
    _, events = await watched(agent, prompt)
    assert shape(model.requests[1].messages) == ["user: hi"]
    assert "ms user" not in marks(events)
    await agent.run(prompt)
    assert shape(agent.messages)[2:] == ["user: hi", "assistant: more"]
    assert_replays(agent)


async def test_pi_45_a_user_tail_is_answered_without_events_of_old_messages() -> None:
    agent, model = agent_of([error("500"), "done"])
    with pytest.raises(RunFailed):
        await agent.run("hi")
    with agent.watch() as events:
        await agent.resume()
    told = [m for m in marks([event async for event in events]) if m.startswith("m")]
    assert told == ["ms assistant", "me assistant"]
    assert len(model.requests) == 2
