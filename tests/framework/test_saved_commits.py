"""Records are written together with what follows them, where nothing lies between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import anyio
import pytest

from callboard import tool
from callboard.agent import ReActAgent
from callboard.approvals import Verdict
from callboard.errors import CommitFailed
from callboard.hooks import Hooks
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.journaling.records import Record
from callboard.messages import ToolCall
from callboard.replies import Prompt, Reply
from callboard.testing import ScriptedModel, call, say
from tests.framework.kit import Ledger, SlowJournal, agent_of, assert_replays, statuses

pytestmark = pytest.mark.anyio

ANSWER, CALLED, ENDED = ["model_attempt", "message"], ["tool_started"], ["tool_finished"]
OBSERVED = [*ENDED, "observed"]


class Commits(SlowJournal):
    """Notes the kinds of records that each commit holds."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        super().__init__(records)
        self.kinds: list[list[str]] = []

    async def append(self, records: Sequence[Record], expected: int) -> None:
        self.kinds.append([record.kind for record in records])
        await super().append(records, expected)


class GuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        await anyio.sleep(1)
        return await super()._deciding(call)


@tool(effect="pure")
def look() -> str:
    return "seen"


@tool(effect="pure")
async def glance() -> str:
    return "seen"


async def turn(*calls: Any, **options: Any) -> list[list[str]]:
    """The commits of a turn with these calls, without those before and after it."""
    journal = Commits()
    agent, _ = agent_of(
        [say(*calls), "done"], Ledger().charge, look, glance, journal=journal, **options
    )
    reply = await agent.run("go")
    assert reply.text == "done"
    assert_replays(agent)
    return journal.kinds[1:-1]


def charging(journal: Journal, *, is_called: bool = False) -> tuple[ReActAgent, Ledger]:
    ledger, script = Ledger(), [] if is_called else [call("charge", "a", amount=1)]
    agent, _ = agent_of(script, ledger.charge, then="done", journal=journal)
    return agent, ledger


async def test_an_effect_takes_two_commits() -> None:
    assert await turn(call("charge", amount=1)) == [[*ANSWER, *CALLED], OBSERVED]


async def test_a_pure_tool_does_not_run_before_the_answer_is_written() -> None:
    assert await turn(call("look")) == [[*ANSWER, *CALLED], OBSERVED]


async def test_a_turn_with_a_pure_tool_that_never_waits_takes_one_commit() -> None:
    assert await turn(call("glance")) == [[*ANSWER, *CALLED, *OBSERVED]]


async def test_a_call_that_does_not_run_is_closed_with_the_answer() -> None:
    assert await turn(call("nothing")) == [[*ANSWER, "observed"]]


async def test_the_two_ends_of_a_run_take_a_commit_each() -> None:
    journal = Commits()
    agent, _ = agent_of(["done"], journal=journal)
    await agent.run("go")
    assert journal.kinds == [["run_started", "prompted"], [*ANSWER, "run_finished"]]


async def test_a_supplier_is_asked_behind_a_written_answer() -> None:
    journal = Commits()
    hooks = Hooks(follow_up_supplier=lambda: ())
    agent, _ = agent_of(["done"], journal=journal, hooks=hooks)
    await agent.run("go")
    assert journal.kinds[-2:] == [ANSWER, ["run_finished"]]


async def test_an_outer_layer_gets_a_reply_that_is_written() -> None:
    class OuterMixin(ReActAgent):
        async def reply(self, prompt: Prompt) -> Reply:
            reply = await super().reply(prompt)
            assert journal.records[-1].kind == "message"
            return reply

    journal = Commits()
    agent, _ = agent_of(["done"], kind=OuterMixin, journal=journal)
    assert (await agent.run("go")).text == "done"


async def test_a_model_is_left_behind_a_written_answer() -> None:
    class Entered(ScriptedModel):
        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            seen.append(journal.records[-1].kind)

    seen: list[str] = []
    journal = Commits()
    agent = ReActAgent(model=Entered(["done"]), journal=journal)
    await agent.run("go")
    assert seen == ["message"]


async def test_several_calls_do_not_start_together_with_their_message() -> None:
    commits = await turn(call("charge", amount=1), call("charge", amount=2))
    assert commits[0] == ANSWER


async def test_a_layer_that_may_wait_decides_on_a_written_message() -> None:
    commits = await turn(call("charge", amount=1), kind=GuardMixin)
    assert commits == [ANSWER, CALLED, OBSERVED]


async def test_a_hook_that_may_wait_decides_on_a_written_message() -> None:
    hooks = Hooks(before_tool=lambda call: None)
    assert (await turn(call("charge", amount=1), hooks=hooks))[0] == ANSWER


async def test_a_watcher_is_told_of_written_messages_only() -> None:
    journal = Commits()
    agent, _ = charging(journal)
    with agent.watch():
        await agent.run("go")
    assert ANSWER in journal.kinds


async def test_steering_that_waits_is_looked_at_with_a_written_message() -> None:
    journal = Commits()
    agent, _ = charging(journal)
    await agent.steer("meanwhile", wake=False)
    await agent.follow_up("later")
    await agent.run("go")
    assert ANSWER in journal.kinds


@pytest.mark.parametrize("commits", [1, 2, 3, 4])
async def test_after_a_crash_behind_any_commit_the_effect_happens_once(commits: int) -> None:
    journal = Commits()
    agent, ledger = charging(journal)
    await agent.run("go")
    left = journal.records[: sum(map(len, journal.kinds[:commits]))]
    heir, again = charging(InMemoryJournal(left), is_called=commits > 1)
    assert (await heir.resume()).text == "done"
    assert len(again.entries) == (commits == 1)
    assert ledger.entries == [1]


async def test_a_commit_that_fails_takes_the_answer_with_it() -> None:
    class Full(Commits):
        async def append(self, records: Sequence[Record], expected: int) -> None:
            if len(self.kinds) == 1:
                self.kinds.append(["failed"])
                raise OSError("disk is full")
            await super().append(records, expected)

    agent, ledger = charging(Full())
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    assert (await agent.resume()).text == "done"
    assert (ledger.entries, statuses(agent)) == ([], {})
    assert_replays(agent)
