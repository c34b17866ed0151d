"""Batches of an agent that has an approver: calls that wait are put to it while others run."""

from __future__ import annotations

from typing import Any

import anyio

from callboard.approvals import SealedCall
from callboard.batches import Gates, side_by_side
from callboard.decide import ToolExecution
from callboard.in_place import InPlace
from callboard.journaling.transcript import CallState
from callboard.tool_run import ToolRun


class InPlaceRun(ToolRun):
    """As ToolRun, but a call that waits for a human is held for the approver's answer.

    It holds no slot, lock or resource meanwhile. Once released it is decided again, one call
    after another, and runs. What the approver leaves open parks the run as ever.
    """

    __slots__ = ("_in_place",)

    def __init__(self, *, in_place: InPlace, **rest: Any) -> None:
        super().__init__(**rest)
        self._in_place = in_place

    async def _act_in_sequence(self, calls: tuple[CallState, ...]) -> None:
        decided = [(call, await self._prepare(call)) for call in calls]
        deciding = anyio.Lock()
        for call, sealed in decided:
            self.teller.start(call.call)
            if sealed is None:
                sealed = await self._admitted(call, deciding)
            if sealed is not None and self._may_run(call):
                await self._execute(call, sealed)
            if call.result is None:
                return
            self.teller.end(call)
            self.teller.result(call)

    async def _act_in_parallel(self, calls: tuple[CallState, ...]) -> None:
        batch: list[tuple[CallState, SealedCall | None]] = []
        for call in calls:
            self.teller.start(call.call)
            sealed = await self._prepare(call)
            if call.result is None:
                batch.append((call, sealed))
            else:
                self.teller.end(call)
        await self._run_batch(batch)

    async def put_to_approver(self) -> bool:
        """Put what is left of a parked run to the approver: questions of tools and sub-agents,
        and those that an earlier process left. False if there is nothing that it was not asked.
        """
        state = self._conversation.state
        waiting = [call for call in state.open_calls if state.is_pending(call)]
        if self._rules.tool_execution is ToolExecution.SEQUENTIAL:
            waiting = waiting[:1]
        new = [call for call in waiting if any(map(self._in_place.is_new, state.asked_for(call)))]
        await self._run_batch([(call, None) for call in new])
        if state.round is not None and not state.round.open:
            self.teller.closed(state.round)
            self.decider.seals.clear()
        return bool(new)

    async def _run_batch(self, batch: list[tuple[CallState, SealedCall | None]]) -> None:
        gates, deciding = Gates(self._max_concurrency), anyio.Lock()

        async def run(call: CallState, sealed: SealedCall | None) -> None:
            sealed = sealed or await self._admitted(call, deciding)
            if sealed is not None:
                async with gates.of(sealed.tool):
                    await self._execute(call, sealed)

        if len(batch) == 1:
            await run(*batch[0])
        elif batch:
            await side_by_side(batch, run)

    async def _admitted(self, call: CallState, deciding: anyio.Lock) -> SealedCall | None:
        """The call once the approver released it, decided again; None if it does not run now."""
        for asked in self._conversation.state.asked_for(call):
            if self._in_place.is_new(asked):
                await self._in_place.ask(asked)
        if call.result is None and not self._conversation.state.is_pending(call):
            async with deciding:
                sealed = await self._prepare(call)
            if sealed is not None:
                return sealed
        self.teller.end(call)
        return None
