"""What an agent has for runs inside runs: its place in the chain, its lease, and its purse."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

import anyio

from callboard.approval_lane import ApprovalLane
from callboard.chain import Link, inside, refuse_inside
from callboard.decide import Rules
from callboard.events import LimitReached, Source
from callboard.journaling.records import Queued, RunStarted
from callboard.lease import Lease, Purse, leased
from callboard.messages import new_id
from callboard.reasoning import Reasoning
from callboard.replies import Outcome, Prompt, RunEnds
from callboard.summary import stand_in


class Nested(ApprovalLane):
    """An actor that may run inside the run of another one, and others inside its own."""

    _rules: Rules  # made by the agent, as the next one
    _reasoner: Reasoning
    _lease: Lease | None = None  # while a run inside another one is driven
    _purse: Purse | None = None  # while there were runs inside the one that is driven
    awaited: tuple[Link, ...] = ()  # whom runs inside its run wait for

    def _refuse_inside(self) -> None:
        if self._interruption is not None:
            refuse_inside(self)

    def _new_run(self, prompt: Prompt) -> RunStarted:
        run_id = new_id("run")
        lease = leased(run_id) if inside.get() else None
        return RunStarted(run_id, prompt, None if lease is None else lease.purse.run_id)

    def _begin(self, run: RunStarted) -> None:
        """A run is driven from here on: who watches the one around it sees it, too."""
        around = inside.get()
        above: Nested | None = around[-1] if around else None  # type: ignore[assignment]  # as `leased`
        source = Source(self.address, run.run_id, run.parent_run)
        self._watchers.begin(source, None if above is None else above._watchers)

    def _take_lease(self, run_id: str) -> None:
        """The run that is driven from here on may be inside another one."""
        self._lease = leased(run_id)
        if self._lease is not None:
            outer, own = self._lease.purse.costs, self._rules.budget.costs()
            self._reasoner.costs = outer if own is None else own.within(outer)
        self._watch_time()

    def _end_lease(self) -> None:
        """What the run around learns is written with what it commits next."""
        if self._lease is not None:
            self._lease.note(self._conversation.state.use)
            self._reasoner.costs = self._rules.budget.costs()
        self._lease = self._purse = None
        self._watch_time()

    def _watch_time(self) -> None:
        """Tools get no more time than there is."""
        is_bounded = self._lease is not None or self._rules.budget.seconds is not None
        self._calls.performer.left_s = self._left_s if is_bounded else None

    def new_purse(self) -> Purse:
        """For the first run inside the one that is driven."""
        run = self._conversation.state.run
        return Purse(
            run.run_id if run is not None else "",
            owner=self.name,
            budget=self._rules.budget,
            costs=self._reasoner.costs,
            conversation=self._conversation,
            outer=self._lease,
        )

    async def _take_bounded_turn(self, take: tuple[Queued, ...]) -> str | None:
        """A turn within what the runs around allow, cut off where the seconds run out.

        Returns the limit that stands against it or has cut it off, None where it was taken whole.
        """
        lease, conversation = self._lease, self._conversation
        if lease is None:
            return await self._take_timed_turn(take)
        limit = lease.reached()
        if limit is not None and not conversation.state.use.model_calls:
            self._watchers.tell(LimitReached, limit)
            raise RunEnds(Outcome.BUDGET, stand_in(conversation.state, limit), limit=limit)
        if limit is None:
            with lease.call():
                limit = await self._take_timed_turn(take)
            await lease.settle(conversation.state.use)
        return limit

    async def _take_timed_turn(self, take: tuple[Queued, ...]) -> str | None:
        with anyio.move_on_after(self._left_s()) as time:
            await self._take_turn(take)
        if not time.cancelled_caught:
            return None
        await self._conversation.commit()  # the attempt that was cut off is counted
        limit = None if self._lease is None else self._lease.reached()
        return limit or f"seconds={self._rules.budget.seconds:g}"

    @abstractmethod
    async def _take_turn(self, take: tuple[Queued, ...]) -> None:
        """Ask the model once."""

    def _left_s(self) -> float:
        """The active seconds that the budgets of this run and of those around it leave."""
        seconds, conversation = self._rules.budget.seconds, self._conversation
        left = inf
        if seconds is not None:
            left = seconds - conversation.state.use.active_s - conversation.since_lap()
        return left if self._lease is None else min(left, self._lease.left_s())
