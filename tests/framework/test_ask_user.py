"""`ask_user` parks like an approval, and the answer is its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import Approval, CallWaits
from callboard.approving import Answer, ApprovalPolicy, Approver, Refuse
from callboard.decide import ToolExecution
from callboard.errors import ConfigurationError
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.sqlite_journal import SqliteJournal
from callboard.questions import ask_user
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import call, say
from callboard.tooling.tools import tool
from tests.framework.approval_kit import charge, guarded
from tests.framework.histories.journals import from_disk
from tests.framework.kit import (
    Ledger,
    agent_of,
    assert_paired,
    assert_replays,
    marks,
    results,
    statuses,
    watched,
)

pytestmark = pytest.mark.anyio


def asking(*script: Any, approver: Approver | None = None, **options: Any) -> ReActAgent:
    return agent_of(script, ask_user, approver=approver, **options)[0]


def question(id: str = "q", text: str = "Which colour?", **more: Any) -> Any:
    return call("ask_user", id, question=text, **more)


async def test_the_run_parks_and_the_answer_is_the_result() -> None:
    agent = asking(question(options=["red", "blue"]), "painted")
    reply = await agent.run("paint it")
    assert reply.outcome is Outcome.AWAITING_APPROVAL
    asked = reply.pending[0]
    assert asked.is_question
    assert dict(asked.preview) == {"question": "Which colour?", "options": ("red", "blue")}
    assert await agent.answer(asked.id, "green", by="amy")
    assert (await agent.resume()).text == "painted"
    assert results(agent)["q"].text == "green"
    assert_replays(agent)


async def test_an_answer_is_given_once() -> None:
    agent = asking(question(), "painted")
    asked = (await agent.run("go")).pending[0]
    assert await agent.answer(asked.id, "red", by="amy") is True
    assert await agent.answer(asked.id, "blue", by="bob") is False
    await agent.resume()
    assert results(agent)["q"].text == "red"


async def test_a_question_that_is_refused_says_so() -> None:
    agent = asking(question(), "then grey")
    asked = (await agent.run("go")).pending[0]
    await agent.deny(asked.id, reason="find out yourself", by="amy")
    assert (await agent.resume()).text == "then grey"
    assert statuses(agent) == {"q": "denied"}


async def test_a_question_is_not_approved(tmp_path: Path) -> None:
    """Not even by an agent that has not read its journal yet."""
    with SqliteJournal(tmp_path / "agent.db") as journal:
        asked = (await asking(question(), journal=journal).run("go")).pending[0]
    with SqliteJournal(tmp_path / "agent.db") as journal:
        agent = asking(journal=journal)
        with pytest.raises(ConfigurationError, match="answer"):
            await agent.approve(asked.id, by="amy")
        assert len(agent.pending) == 1


async def test_a_question_goes_to_the_approver_in_place() -> None:
    agent = asking(question(), "painted", approver=lambda one: Answer(f"{one.reason} Red.", "amy"))
    assert (await agent.run("go")).text == "painted"
    assert results(agent)["q"].text == "Which colour? Red."


@pytest.mark.parametrize("given", [Refuse("busy"), True], ids=["refuses", "no answer"])
async def test_an_approver_that_does_not_answer_refuses(given: Any) -> None:
    agent = asking(question(), "then grey", approver=lambda _: given)
    assert (await agent.run("go")).text == "then grey"
    assert statuses(agent) == {"q": "denied"}


async def test_what_is_asked_in_place_is_told_as_one_turn() -> None:
    agent = asking(question(), "painted", approver=lambda _: Answer("red"))
    _, events = await watched(agent)
    told = marks(events)
    assert_paired(events)
    assert [told.count(mark) for mark in ("turn_end", "ts q", "te q", "me q")] == [2, 1, 1, 1]
    assert told.index("me q") < told.index("turn_end")


async def test_a_question_and_an_approval_wait_side_by_side() -> None:
    agent, _, ledger = guarded(say(question(), charge("a")), "done", more=[ask_user])
    asked = {one.call_id: one for one in (await agent.run("go")).pending}
    await agent.answer(asked["q"].id, "red", by="amy")
    await agent.approve(asked["a"].id, by="amy")
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([1], {"q": "ok", "a": "ok"})


async def test_the_answer_may_come_after_a_restart() -> None:
    first = asking(question())
    asked = (await first.run("go")).pending[0]
    records = from_disk(list(await first.journal.read()))
    second = asking("painted", journal=InMemoryJournal(records))
    assert await second.answer(asked.id, "red", by="amy")
    assert (await second.resume()).text == "painted"
    assert results(second)["q"].text == "red"


async def test_a_question_obeys_the_rules_for_asking() -> None:
    rules = ApprovalPolicy(approvers=["bob"], expires_s=60)
    asked = (await asking(question(), approvals=rules).run("go")).pending[0]
    assert (asked.approvers, asked.expires_at is None) == (("bob",), False)


async def test_a_question_has_one_start_and_one_end() -> None:
    agent = asking(question(), "painted")
    with agent.watch() as events:
        asked = (await agent.run("go")).pending[0]
        await agent.answer(asked.id, "red", by="amy")
        await agent.resume()
    told = marks([event async for event in events])
    assert (told.count("ts q"), told.count("te q"), told.count("me q")) == (1, 1, 1)


async def test_an_interrupt_takes_the_question_back() -> None:
    agent = asking(question())
    await agent.run("go")
    await agent.interrupt()
    assert (agent.pending, statuses(agent)) == ((), {"q": "cancelled"})


async def test_steering_that_skips_takes_the_question_back() -> None:
    agent = asking(question(), "grey then", steering_policy=SteeringPolicy.SKIP_PENDING)
    await agent.run("go")
    await agent.steer("as you like")
    assert (await agent.resume()).text == "grey then"
    assert (agent.pending, statuses(agent)) == ((), {"q": "skipped"})


async def test_in_sequence_those_behind_a_question_wait() -> None:
    ledger = Ledger()
    agent, _ = agent_of(
        [say(question(), call("charge", "a", amount=1)), "done"],
        ask_user,
        ledger.charge,
        tool_execution=ToolExecution.SEQUENTIAL,
    )
    asked = (await agent.run("go")).pending[0]
    assert ledger.entries == []
    await agent.answer(asked.id, "red", by="amy")
    await agent.resume()
    assert ledger.entries == [1]


async def test_a_tool_with_an_effect_may_not_ask_in_mid_way() -> None:
    @tool
    def pay() -> str:
        """Pay, then ask."""
        raise CallWaits(_question())

    agent, _ = agent_of([call("pay", "p"), "done"], pay)
    assert (await agent.run("go")).text == "done"
    assert statuses(agent) == {"p": "failed"}
    assert "pure or idempotent" in results(agent)["p"].text


def _question() -> Approval:
    return Approval(
        id="q1", run_id="", call_id="", tool_name="pay", digest="", preview={}, reason="sure?"
    )
