"""Each call id has exactly one result before the next request, whatever cuts the run off."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard.agent import ReActAgent
from callboard.approvals import SealedCall
from callboard.decide import ToolExecution
from callboard.errors import CommitFailed, StopRun
from callboard.events import ToolEnd
from callboard.hooks import Hooks
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import Observed, ToolFinished, ToolStarted
from callboard.journaling.transcript import fold
from callboard.messages import Observation, ToolCall
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, pairing_faults, say
from callboard.tooling.tools import tool
from tests.framework.kit import (
    Ledger,
    Script,
    agent_of,
    assert_replays,
    echo,
    results,
    shape,
    statuses,
    wait,
    watched,
)

pytestmark = pytest.mark.anyio


async def test_orph_01_a_cancel_in_a_tool_leaves_a_sendable_conversation() -> None:
    ledger = Ledger()
    agent, model = agent_of([call("slow", "c1"), "done"], ledger.slow)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await anyio.sleep(0.05)
        group.cancel_scope.cancel()
    assert ledger.entries == ["started", "cancelled"]
    assert shape(agent.messages)[-1].startswith("c1: unknown_outcome: This call was started and")
    assert (await agent.run("go on")).text == "done"
    sent = model.requests[1].messages
    assert [word.split(":")[0] for word in shape(sent)] == ["user", "calls", "c1", "user"]
    assert pairing_faults(sent) == []


async def test_orph_02_an_interrupt_before_acting_closes_the_call_unrun() -> None:
    async def interrupting(call: ToolCall) -> None:
        await agent.interrupt()

    ledger = Ledger()
    script: Script = [call("charge", "c1", amount=1), "done"]
    agent, model = agent_of(script, ledger.charge, hooks=Hooks(before_tool=interrupting))
    reply = await agent.run("go")
    assert (reply.outcome, ledger.entries) == (Outcome.INTERRUPTED, [])
    assert statuses(agent) == {"c1": "cancelled"}
    assert_replays(agent)
    assert (await agent.run("a new message")).text == "done"
    sent = shape(model.requests[1].messages)
    assert [word.split(":")[0] for word in sent] == ["user", "calls", "c1", "user"]
    assert ledger.entries == []


async def test_orph_04_a_hook_that_fails_after_the_tool_does_not_charge_twice() -> None:
    def broken(call: ToolCall, observation: Observation) -> None:
        raise RuntimeError("after hook failed")

    ledger = Ledger()
    script: Script = [call("charge", "c1", amount=5), "done"]
    agent, _ = agent_of(script, ledger.charge, hooks=Hooks(after_tool=broken))
    _, events = await watched(agent)
    await agent.resume()
    assert ledger.entries == [5]
    assert "after hook failed" in results(agent)["c1"].text
    told = [event.observation for event in events if isinstance(event, ToolEnd)]
    assert [seen.text for seen in told] == [results(agent)["c1"].text]


async def test_orph_04_the_result_is_durable_before_a_hook_sees_it() -> None:
    seen: list[type] = []

    def look(call: ToolCall, observation: Observation) -> None:
        journal = agent.journal
        assert isinstance(journal, InMemoryJournal)
        seen.append(type(journal.records[-1]))

    ledger = Ledger()
    script: Script = [call("charge", "c1", amount=5), "done"]
    agent, _ = agent_of(script, ledger.charge, hooks=Hooks(after_tool=look))
    await agent.run("go")
    assert seen == [ToolFinished]


async def test_the_intent_is_durable_before_the_effect() -> None:
    async def effect() -> str:
        journal = agent.journal
        assert isinstance(journal, InMemoryJournal)
        seen.append(type(journal.records[-1]))
        return "ok"

    seen: list[type] = []
    agent, _ = agent_of([call("effect", "c1"), "done"], effect)
    await agent.run("go")
    assert seen == [ToolStarted]


async def test_orph_07_a_stop_after_a_call_keeps_its_result_and_asks_no_more() -> None:
    class StopAfterMixin(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            seen = await super()._acting(call)
            raise StopRun(seen.text)

    async def respond(text: str) -> str:
        return text

    agent, model = agent_of([call("respond", "c1", text="bye")], respond, kind=StopAfterMixin)
    reply = await agent.run("go")
    assert (reply.text, reply.outcome, len(model.requests)) == ("bye", Outcome.STOPPED, 1)
    assert shape(agent.messages)[1:] == ["calls: c1", "c1: bye"]
    assert_replays(agent)


async def test_orph_07_a_tool_may_stop_the_run_with_an_output() -> None:
    async def respond() -> str:
        raise StopRun("bye", output={"n": 3})

    agent, model = agent_of([say(call("respond", "a"), call("echo", "b", x="1"))], respond, echo)
    reply = await agent.run("go")
    assert (reply.outcome, reply.output, len(model.requests)) == (Outcome.STOPPED, {"n": 3}, 1)
    assert set(statuses(agent)) == {"a", "b"}
    assert pairing_faults(agent.messages) == []


async def test_a_commit_that_fails_ends_the_run_and_the_next_one_mends() -> None:
    class FailingMixin(ReActAgent):
        def _committing(self, record: Any) -> Any:
            if isinstance(record, Observed) and not failed:
                failed.append(record)
                raise OSError("disk is full")
            return super()._committing(record)

    failed: list[object] = []
    ledger = Ledger()
    script: Script = [call("charge", "c1", amount=5), "done"]
    agent, _ = agent_of(script, ledger.charge, kind=FailingMixin)
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    assert (await agent.resume()).text == "done"
    assert len(ledger.entries) == 1
    assert statuses(agent)["c1"] in {"ok", "unknown_outcome"}


async def test_a_run_that_a_crash_cut_off_is_gone_on_with_from_its_records() -> None:
    """The journal of a run, cut at every place, makes an agent that can finish it."""
    ledger = Ledger()
    script: Script = [call("charge", "c1", amount=5), "done"]
    agent, _ = agent_of(script, ledger.charge)
    await agent.run("go")
    records = list(await agent.journal.read())
    for length in range(1, len(records)):
        again = Ledger()
        model = ScriptedModel(script[1:] if fold(records[:length]).round else script, then="done")
        heir = ReActAgent(
            model=model, tools=[again.charge], journal=InMemoryJournal(records[:length])
        )
        assert (await heir.resume()).text == "done"
        assert pairing_faults(heir.messages) == []
        started = any(isinstance(r, ToolStarted) for r in records[:length])
        assert again.entries == ([] if started else [5])


async def test_a_pure_tool_runs_again_after_a_crash() -> None:
    runs: list[int] = []

    @tool(effect="pure")
    async def look() -> str:
        runs.append(1)
        return "seen"

    agent, _ = agent_of([call("look", "c1"), "done"], look)
    await agent.run("go")
    records = list(await agent.journal.read())
    cut = next(at for at, r in enumerate(records) if isinstance(r, ToolStarted)) + 1
    heir = ReActAgent(
        model=ScriptedModel(["done"]), tools=[look], journal=InMemoryJournal(records[:cut])
    )
    assert (await heir.resume()).text == "done"
    assert (len(runs), statuses(heir)) == (2, {"c1": "ok"})


@pytest.mark.parametrize("execution", list(ToolExecution))
async def test_orph_07_a_call_that_stopped_the_run_has_its_own_words_as_result(
    execution: ToolExecution,
) -> None:
    async def respond(text: str) -> str:
        raise StopRun(text)

    calls = (call("respond", "a", text="bye"), call("wait", "b", ms=1000))
    agent, model = agent_of([say(*calls)], respond, wait, tool_execution=execution)
    assert (await agent.run("go")).text == "bye"
    assert shape(agent.messages)[2] == "a: bye"
    assert (statuses(agent)["a"], len(model.requests)) == ("ok", 1)
    assert_replays(agent)
