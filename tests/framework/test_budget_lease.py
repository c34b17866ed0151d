"""Agents that run inside other agents spend from the budget of the run around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from callboard import Budget, Outcome, ReActAgent, SqliteJournal, Usage, tool
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import Record, RunStarted, Spent
from callboard.lease import detached
from callboard.messages import UserMessage
from callboard.replies import Reply
from callboard.testing import ScriptedModel, call, pause, say, stream
from tests.framework.kit import Script, agent_of, assert_replays, echo, results

TOKENS = Usage(input_tokens=10, output_tokens=5)
LOOK = say(call("echo", x="a"), usage=TOKENS)


class Staff:
    """Agents that a lead may ask, each on a script of its own, and what they replied."""

    def __init__(self, *scripts: list[Any], then: Any = None, **options: Any) -> None:
        self.models = [ScriptedModel(script, then=then) for script in scripts]
        self.agents = [
            ReActAgent(name=f"child{at}", model=model, tools=[echo], **options)
            for at, model in enumerate(self.models)
        ]
        self.replies: list[Reply] = []

    async def ask(self, at: int = 0) -> str:
        """Ask the agent with this number."""
        self.replies.append(await self.agents[at].run("look"))
        return self.replies[-1].text


def asking(*numbers: int) -> Any:
    return say(*[call("ask", at=at) for at in numbers], usage=TOKENS)


def first_result(agent: ReActAgent) -> str:
    return next(iter(results(agent).values())).text


def looks(n: int) -> list[Any]:
    return [say(call("echo", x=str(i)), usage=TOKENS) for i in range(n)]


@pytest.mark.anyio
async def test_what_a_child_uses_is_part_of_what_its_parent_uses() -> None:
    staff = Staff([*looks(1), say("seen", usage=TOKENS)])
    agent, _ = agent_of([asking(0), say("done", usage=TOKENS)], staff.ask)
    reply = await agent.run("go")
    assert reply.usage == Usage(input_tokens=40, output_tokens=20)
    assert agent._conversation.state.use.model_calls == 4
    assert agent._conversation.state.use.turns == 2
    assert_replays(agent)


@pytest.mark.anyio
async def test_a_child_stops_with_a_summary_where_the_parents_budget_ends() -> None:
    staff = Staff([*looks(3), "what I know"])
    agent, model = agent_of([asking(0), "the sum"], staff.ask, budget=Budget(model_calls=4))
    reply = await agent.run("go")
    (child,) = staff.replies
    assert (child.outcome, child.limit) == (Outcome.BUDGET, "model_calls=4 of agent")
    assert child.text == "what I know"
    assert (reply.outcome, reply.limit, reply.text) == (Outcome.BUDGET, "model_calls=4", "the sum")
    model.assert_complete()


@pytest.mark.parametrize("budget", [Budget(tokens=40), Budget(model_calls=3)])
@pytest.mark.anyio
async def test_each_limit_of_the_parent_is_one_of_the_child(budget: Budget) -> None:
    staff = Staff(looks(20), max_iters=30)
    agent, _ = agent_of([asking(0), "the sum"], staff.ask, budget=budget)
    await agent.run("go")
    assert staff.replies[0].outcome is Outcome.BUDGET
    assert len(staff.models[0].requests) == 3  # the third is the summary


@pytest.mark.anyio
async def test_a_child_that_finds_nothing_left_asks_no_model() -> None:
    staff = Staff(["seen"], ["seen"])
    agent, _ = agent_of([asking(0), asking(1), "sum"], staff.ask, budget=Budget(model_calls=3))
    await agent.run("go")
    late = Staff(["seen"])
    agent, _ = agent_of([asking(0), "sum"], late.ask, budget=Budget(model_calls=1))
    await agent.run("go")
    (child,) = late.replies
    assert child.outcome is Outcome.BUDGET
    assert "model_calls=1 of agent" in child.text
    assert late.models[0].requests == []


@pytest.mark.anyio
async def test_children_side_by_side_share_one_budget() -> None:
    """Six calls are left for four of them: they make these, and a summary each where they began."""
    slow = [stream(pause(1), call("echo", x=str(i))) for i in range(9)]
    staff = Staff(*[list(slow) for _ in range(4)], max_iters=50)
    agent, _ = agent_of([asking(0, 1, 2, 3), "sum"], staff.ask, budget=Budget(model_calls=7))
    await agent.run("go")
    assert {reply.outcome for reply in staff.replies} == {Outcome.BUDGET}
    asked = sum(len(model.requests) for model in staff.models)
    assert asked <= 6 + 4
    assert_replays(agent)


@pytest.mark.anyio
async def test_the_price_of_a_child_is_paid_by_the_parent() -> None:
    staff = Staff(looks(9))
    budget = Budget(cost=0.5, prices=lambda name, usage: 0.0 if not usage.input_tokens else 0.2)
    agent, _ = agent_of([asking(0), say("sum", usage=TOKENS)], staff.ask, budget=budget)
    reply = await agent.run("go")
    (child,) = staff.replies
    assert child.limit == "cost=0.5 of agent"
    assert child.cost == pytest.approx(0.6)
    assert reply.cost == pytest.approx(1.0)


@pytest.mark.anyio
async def test_a_child_whose_price_is_not_known_is_refused_where_the_parents_cost_is_limited() -> (
    None
):
    staff = Staff(["seen"], budget=Budget(prices=lambda name, usage: None))
    budget = Budget(cost=0.5, prices=lambda name, usage: 0.01)
    agent, _ = agent_of([asking(0), say("done", usage=TOKENS)], staff.ask, budget=budget)
    await agent.run("go")
    assert "price of 'scripted' is not known" in first_result(agent)
    assert staff.models[0].requests == []


@pytest.mark.anyio
async def test_a_grandchild_spends_from_the_root() -> None:
    staff = Staff(looks(9), max_iters=20)
    middle, _ = agent_of([asking(0), "middle"], staff.ask, name="middle")

    async def delegate() -> str:
        return (await middle.run("look")).text

    agent, _ = agent_of([say(call("delegate")), "root"], delegate, budget=Budget(model_calls=5))
    await agent.run("go")
    assert staff.replies[0].limit == "model_calls=5 of agent"
    assert len(staff.models[0].requests) == 4
    assert agent._conversation.state.use.model_calls == 8  # and three summaries
    assert_replays(agent)
    assert_replays(middle)


@pytest.mark.anyio
async def test_a_detached_child_has_a_budget_of_its_own() -> None:
    staff = Staff([*looks(3), "seen"])

    async def ask() -> str:
        with detached():
            return await staff.ask()

    agent, _ = agent_of([say(call("ask")), "done"], ask, budget=Budget(model_calls=3))
    reply = await agent.run("go")
    assert (reply.outcome, staff.replies[0].text) == (Outcome.FINISHED, "seen")
    assert parents(staff.agents[0]) == [None]


def parents(agent: ReActAgent) -> list[str | None]:
    assert isinstance(agent.journal, InMemoryJournal)
    return [r.parent_run for r in agent.journal.records if isinstance(r, RunStarted)]


@pytest.mark.anyio
async def test_the_records_and_events_of_a_child_name_the_run_around_it() -> None:
    staff = Staff(["seen"])
    agent, _ = agent_of([asking(0), "done"], staff.ask)
    with staff.agents[0].watch() as watching:
        reply = await agent.run("go")
    events = [event async for event in watching]
    assert {event.parent_run for event in events} == {reply.run_id}
    assert parents(staff.agents[0]) == [reply.run_id]
    assert parents(agent) == [None]


@pytest.mark.anyio
async def test_a_child_in_a_thread_spends_too_and_at_once() -> None:
    model = ScriptedModel(looks(9))
    child = ReActAgent(name="child", model=model, tools=[echo], max_iters=20)
    replies: list[Reply] = []

    @tool
    def ask() -> str:
        """Ask in a thread, with an event loop of its own."""
        replies.append(child.run_sync("look"))
        return replies[-1].text

    agent, _ = agent_of([say(call("ask")), "sum"], ask, budget=Budget(model_calls=4))
    reply = await agent.run("go")
    assert replies[0].limit == "model_calls=4 of agent"
    assert (reply.limit, agent._conversation.state.use.model_calls) == ("model_calls=4", 6)
    assert_replays(agent)


@pytest.mark.anyio
async def test_a_cancelled_child_has_spent_what_it_spent() -> None:
    staff = Staff([*looks(1), stream(pause(60), "seen")])
    agent, _ = agent_of([asking(0), "done"], staff.ask)
    with anyio.move_on_after(5):
        await agent.run("go")
    assert agent._conversation.state.use.model_calls == 3
    assert_replays(agent)


@pytest.mark.anyio
async def test_a_child_that_fails_has_spent_what_it_spent() -> None:
    staff = Staff([*looks(1)])  # its script ends there
    agent, _ = agent_of([asking(0), "done"], staff.ask)
    await agent.run("go")
    assert agent._conversation.state.use.model_calls == 4


@pytest.mark.anyio
async def test_the_spending_of_a_child_is_durable_while_it_works(tmp_path: Any) -> None:
    seen: list[list[int]] = []

    async def peek(x: str) -> None:
        """Look into the journal of the parent."""
        records = await journal.read()
        seen.append([record.model_calls for record in records if isinstance(record, Spent)])

    model = ScriptedModel([call("peek", x="1"), call("peek", x="2"), "seen"])
    child = ReActAgent(name="child", model=model, tools=[peek])

    async def ask() -> str:
        return (await child.run("look")).text

    with SqliteJournal(tmp_path / "lead.db") as journal:
        agent, _ = agent_of([say(call("ask")), "done"], ask, journal=journal)
        await agent.run("go")
    assert seen == [[1], [1, 2]]


@pytest.mark.anyio
async def test_a_child_that_goes_on_after_a_crash_is_counted_once_and_whole() -> None:
    """The journal of its lead lags behind its own, and both are read by a new process."""
    left: list[list[Record]] = []

    async def die() -> None:
        """Note what the journals hold when the process dies."""
        left.extend([list(await agent.journal.read()) for agent in first])

    first = family([call("ask"), "done"], [call("die"), "seen"], die)
    await first[0].run("go")
    assert isinstance(left[0].pop(), Spent)
    lead, child = family(["done"], ["seen after all", "and that"], die, *left)
    assert (await lead.resume()).text == "done"
    use, inner = lead._conversation.state.use, child._conversation.state.use
    assert (use.model_calls, inner.model_calls, len(use.inner or {})) == (2 + 3, 3, 1)
    assert_replays(lead)


def family(
    script: Script,
    below: Script,
    die: Any,
    records: Sequence[Record] = (),
    records_below: Sequence[Record] = (),
) -> tuple[ReActAgent, ReActAgent]:
    """A lead on these records, and the child that it asks with a tool that may run again."""
    journal = InMemoryJournal(records_below)
    child, _ = agent_of(below, die, name="child", journal=journal)

    @tool(effect="idempotent")
    async def ask() -> str:
        return (await child.run("look")).text

    return agent_of(script, ask, name="lead", journal=InMemoryJournal(records))[0], child


@pytest.mark.anyio
async def test_runs_one_after_the_other_in_one_tool_share_what_is_left() -> None:
    staff = Staff(["one"], ["two"], ["three"])

    async def ask_all() -> list[str]:
        return [await staff.ask(at) for at in range(3)]

    agent, _ = agent_of([say(call("ask_all")), "sum"], ask_all, budget=Budget(model_calls=3))
    await agent.run("go")
    assert [reply.outcome for reply in staff.replies] == ["finished", "finished", "budget"]


@pytest.mark.anyio
async def test_without_limits_a_child_is_only_counted() -> None:
    staff = Staff([*looks(5), "seen"])
    agent, _ = agent_of([asking(0), "done"], staff.ask)
    reply = await agent.run("go")
    assert (reply.outcome, staff.replies[0].outcome) == (Outcome.FINISHED, Outcome.FINISHED)


@pytest.mark.anyio
async def test_an_agent_asked_outside_of_any_run_leases_nothing() -> None:
    staff = Staff(["one", "two"])
    agent, _ = agent_of([asking(0), "done"], staff.ask, budget=Budget(model_calls=2))
    await agent.run("go")
    reply = await staff.agents[0].run("again")
    assert reply.text == "two"
    assert staff.agents[0]._lease is None


@pytest.mark.anyio
async def test_seconds_of_a_child_are_those_of_the_call_that_it_runs_in() -> None:
    slow = [stream(pause(2), call("echo", x=str(i))) for i in range(3)]
    staff = Staff(slow, then="in time")
    ask = tool(timeout_s=None)(staff.ask)  # a tool with a deadline would be cut off itself
    agent, _ = agent_of([asking(0), "sum"], ask, budget=Budget(seconds=5))
    reply = await agent.run("go")
    (child,) = staff.replies
    assert (child.outcome, child.limit) == (Outcome.BUDGET, "seconds=5 of agent")
    assert child.text == "in time"
    assert agent._conversation.state.use.active_s == pytest.approx(5)
    assert reply.limit == "seconds=5"


@pytest.mark.anyio
async def test_a_child_that_is_alive_after_its_parent_is_stopped() -> None:
    """It has escaped in a task of its own, and nobody waits for it any more."""
    staff = Staff([stream(pause(5), call("echo", x="a"))], then="never")

    async with anyio.create_task_group() as group:

        async def ask() -> str:
            group.start_soon(staff.ask)
            await anyio.sleep(1)
            return "asked"

        agent, _ = agent_of([say(call("ask")), "done"], ask)
        await agent.run("go")
    assert staff.replies[0].outcome is Outcome.BUDGET
    assert staff.replies[0].limit == "the run of agent is over"


@pytest.mark.anyio
async def test_two_agents_that_ask_each_other_are_told_so() -> None:
    agents: dict[str, ReActAgent] = {}

    async def ask(name: str) -> str:
        await anyio.sleep(1)
        return (await agents[name].run(UserMessage.of("hello"))).text

    def make(name: str, other: str) -> ReActAgent:
        script: Script = [call("ask", name=other), "done", "fine", "fine"]
        return ReActAgent(name=name, model=ScriptedModel(script), tools=[ask])

    agents.update(ann=make("ann", "bob"), bob=make("bob", "ann"))
    async with anyio.create_task_group() as group:
        group.start_soon(agents["ann"].run, "go")
        group.start_soon(agents["bob"].run, "go")
    told = [first_result(agent) for agent in agents.values()]
    assert sum("would wait for each other for ever" in text for text in told) == 1


@pytest.mark.anyio
async def test_two_parents_of_one_child_wait_for_it_in_turn() -> None:
    staff = Staff([stream(pause(1), "one"), stream(pause(1), "two")])
    leads = [agent_of([asking(0), "done"], staff.ask)[0] for _ in range(2)]
    async with anyio.create_task_group() as group:
        for lead in leads:
            group.start_soon(lead.run, "go")
    assert [reply.text for reply in staff.replies] == ["one", "two"]
    assert [lead.awaited for lead in leads] == [(), ()]
    assert [lead._conversation.state.use.model_calls for lead in leads] == [3, 3]
