"""An agent that is a tool of another one: its lives, and what holds between the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from callboard.agent import ReActAgent
from callboard.budget import Budget
from callboard.errors import ConfigurationError, ModelError
from callboard.events import Event
from callboard.journaling.records import (
    ApprovalResolved,
    ModelAttempted,
    Record,
    RunFinished,
    RunStarted,
    Spent,
)
from callboard.journaling.transcript import State
from callboard.messages import Status, ToolResultMessage
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome, Reply, RunFailed
from callboard.testing import ScriptedModel
from callboard.tooling.tools import Tool
from tests.framework.histories.history import Child, History
from tests.framework.histories.journals import AnyJournal, expired, from_disk, journal_of
from tests.framework.histories.laws import CHILD, broken_unless, check_expired, check_ledger
from tests.framework.histories.prefixes import Prefixes
from tests.framework.histories.readers import check_numbers
from tests.framework.histories.scripts import script_of
from tests.framework.histories.stacks import stack
from tests.framework.histories.tools import Entry, Hands
from tests.framework.kit import assert_replays

KEY = b"c" * 32
ANSWERED = frozenset({Outcome.FINISHED, Outcome.STOPPED, Outcome.MAX_ITERS, Outcome.BUDGET})
PLAIN_TEMPERS = frozenset({"text", "bad", "slow", "refusal", "length", "flood"})


class Below:
    """The child of a history, through all lives of the agent above. `begin` starts a life."""

    agent: ReActAgent
    journal: AnyJournal
    model: ScriptedModel
    hands: Hands

    def __init__(self, history: History, child: Child, file: Path | None) -> None:
        self._above = history
        self._child = child
        self._file = file
        self._plain = replace(history, policy=SteeringPolicy.AFTER_BATCH)
        self._script = script_of(child.script)
        self._records: Sequence[Record] = ()
        self._layers = ("guard",) if child.guarded else ()
        self._lives = 0
        self._words = 0
        self.ledger: list[Entry] = []
        self.expired: set[str] = set()
        self.events: list[Event] = []

    def begin(self) -> Tool:
        """The agent of the next life, as a tool."""
        self._lives += 1
        self.hands = Hands(self.ledger, {}, life=self._lives)
        self.model = ScriptedModel(self._script, then="ok", name="below")
        self.journal = journal_of(self._above, self._file, self._records, address="agent/below")
        self.events = []
        self.agent = stack(self._layers)(
            name="below",
            model=self.model,
            tools=self.hands.tools(),
            max_iters=4,
            budget=Budget(model_calls=self._child.model_calls),
            journal=self.journal,
            digest_key=KEY,
        )
        self.agent._watchers.add(self.events.append)
        return self.agent.as_tool(name=CHILD, description="Another agent.")

    def end(self) -> None:
        """Its process is gone."""
        self.hands.dead = True
        self._records = tuple(self.journal.records)
        self._script = self._script[len(self.model.requests) :]

    def is_left(self, above: Sequence[Record], *, long: bool) -> None:
        """What the next life finds on the disk; `long` after every question has expired, but for
        those that were answered above in time.
        """
        self._records = from_disk(self._records)
        if long:
            self._records = expired(self._records, self.expired)
            self.expired -= {r.approval_id for r in above if isinstance(r, ApprovalResolved)}

    # -- what holds ------------------------------------------------------------------------------

    def check(self, records: Sequence[Record], above: ReActAgent, *, quiet: bool) -> None:
        """After each leg. `records` are those of the agent above; `quiet`: no commit failed."""
        broken_unless(self.model.open_streams == 0, "no stream is alive below")
        broken_unless(self.hands.running == 0, "no tool is alive below")
        own = list(self.journal.records)
        state = self._check_own(own)
        finished = {r.run_id: r.outcome for r in own if isinstance(r, RunFinished)}
        self._check_results(records, finished)
        if quiet:
            check_numbers(self.events)
            self._check_spending(records, own, finished)
            asked = [one.id for one in above.pending if one.path]
            known = all([id in state.approvals for id in asked])
            broken_unless(known, "what is asked above is asked below", asked)
            is_left = self._lives == 1 and above.state.run_id is None and state.run is not None
            broken_unless(not is_left, "who works for nobody has stopped", state.run)

    def _check_own(self, own: Sequence[Record]) -> State:
        started = Counter([r.run_id for r in own if isinstance(r, RunStarted)])
        twice = [run_id for run_id, times in started.items() if times > 1]
        broken_unless(not twice, "a call below is one run", twice)
        state = Prefixes(self._plain).check(own)
        check_ledger(self.ledger, own, state, layers=self._layers, cut=frozenset())
        check_expired(state, self.expired)
        conversation = self.agent._conversation
        if conversation.is_current:
            assert_replays(self.agent)
        return state

    def _check_results(self, records: Sequence[Record], finished: dict[str, Outcome]) -> None:
        """Who is told that the child has answered can find its answer."""
        state = Prefixes(self._above).check(records)
        told = [m for m in state.messages if isinstance(m, ToolResultMessage)]
        told += [] if state.round is None else state.round.results()
        ends: dict[str, set[Outcome]] = {}
        for run_id, outcome in finished.items():
            ends.setdefault(run_id.partition("/")[2], set()).add(outcome)
        for result in told:
            if result.tool_name == CHILD and result.status is Status.OK:
                answered = bool(ends.get(result.call_id, set()) & ANSWERED)
                broken_unless(answered, "what is ok has run below", result, ends)

    def _check_spending(
        self, records: Sequence[Record], own: Sequence[Record], finished: dict[str, Outcome]
    ) -> None:
        """The agent above knows each model call of a run that has ended below."""
        if self._lives > 1:  # a crash may forget what was not written yet
            return
        spent = {r.run_id: r.model_calls for r in records if isinstance(r, Spent)}
        used: Counter[str] = Counter()
        running = ""
        for record in own:
            if isinstance(record, RunStarted):
                running = record.run_id if record.parent_run else ""
            elif isinstance(record, ModelAttempted) and running:
                used[running] += 1
        for run_id, calls in used.items():
            known = spent.get(run_id, 0) == calls or run_id not in finished
            broken_unless(known, "what is spent below counts above", run_id, calls, spent)

    # -- the end ---------------------------------------------------------------------------------

    async def last_words(self) -> None:
        """It too can be gone on with, by itself."""
        self.model._script = ()
        for _ in range(20):
            for asked in self.agent.pending[:1]:
                await self.agent.deny(asked.id, by="amy")
            reply = await self._resumed()
            if reply is None or reply.outcome is not Outcome.AWAITING_APPROVAL:
                break
        reply = await self.agent.run("and you?")
        said = reply.outcome is Outcome.FINISHED
        broken_unless(said, "the child can be gone on with", reply)
        self._check_own(list(self.journal.records))

    async def _resumed(self) -> Reply | None:
        try:
            return await self.agent.resume()
        except RunFailed as failed:
            broken_unless(isinstance(failed.__cause__, ModelError), "it fails of its model", failed)
        except ConfigurationError as refused:
            broken_unless("never asked" in str(refused), "resuming is right", refused)
        return None
