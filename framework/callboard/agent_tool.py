"""An agent as a tool of another one: it runs inside the call, and what it asks is asked above."""

from __future__ import annotations

from dataclasses import replace

import anyio

from callboard.agent_calls import AgentCall, SubAgent, Told
from callboard.approvals import Approval
from callboard.chain import waiting_for
from callboard.driving import CLOSING_S, reply_of
from callboard.errors import NotAnApprover
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import ApprovalResolved, RunFinished
from callboard.replies import Outcome, Prompt, Reply, RunFailed
from callboard.runs import Runs
from callboard.tooling.tools import Tool


class UsableAsTool(Runs):
    """An actor that others may run as a tool, and that may have such tools itself."""

    def as_tool(self, *, name: str | None = None, description: str) -> Tool:
        """This agent as a tool of another: a `task` in, the text of its reply out.

        Each call is a run in this agent's own conversation; calls at once queue up. Where it waits
        for a human, the call of the agent above waits: its approvals stand in that one's `pending`
        and are answered there, and the call goes on when all of them are. It has no deadline. A
        call that is entered again after a crash goes on with the run that it began, which takes
        a journal that outlives the process; without one its outcome is unknown.
        """
        return SubAgent(self).tool(name=name or self.name, description=description)

    async def _stop_below(self) -> None:
        """Stop the sub-agents that still wait for a human on behalf of calls that are closed."""
        for tool in self._calls.decider.toolbox.values():
            below = getattr(tool.function, "__self__", None)
            if isinstance(below, SubAgent):
                with anyio.move_on_after(CLOSING_S, shield=True):
                    await below.stop_for(self)

    async def called(self, call: AgentCall) -> Reply | None:
        """Bring the run of a call to its end, or to where it waits; see `agent_calls.Below`."""
        await self.hear(call.told)
        await self._opened()
        if call.is_again and self._is_lost():
            return None
        prompt = Prompt.of(call.task, id=call.run_id)
        return await self._run_once(call.run_id, prompt, is_again=call.is_again)

    def _is_lost(self) -> bool:
        """Whether the call began in another process, and nothing of it is left here."""
        return isinstance(self._journal, InMemoryJournal) and not self._conversation.state.seq

    async def _run_once(self, run_id: str, prompt: Prompt, *, is_again: bool) -> Reply:
        """Bring this very run to its end: begin it, go on with it, or give its reply again.

        While another run waits for a human, this one does, too.
        """
        self._refuse_inside()
        with waiting_for(self):
            async with self._turnstile:
                state = await self._opened()
                if state.run is not None and state.run.run_id != run_id:
                    reply = await self._drive(state.run)  # it was cut off, or waits for a human
                    if reply.outcome is Outcome.AWAITING_APPROVAL:
                        return reply
                if state.run is not None:
                    return await self._drive(state.run)
                is_known = is_again or prompt.id in state.prompts
                known = await self._end_of(run_id) if is_known else None
                if known is None:
                    return await self._drive(replace(self._new_run(prompt), run_id=run_id))
                reply = self._completed(reply_of(known))
                if reply.outcome is Outcome.FAILED:
                    raise RunFailed(f"the run failed: {reply.error}", reply=reply)
                return reply

    async def _end_of(self, run_id: str) -> RunFinished | None:
        for record in reversed(await self._journal.read()):
            if isinstance(record, RunFinished) and record.run_id == run_id:
                return record
        return None

    async def hear(self, told: tuple[Told, ...]) -> None:
        """Take over what was answered to this agent's questions in the agent above it."""
        if told:
            await self._opened()
        for one in told:
            answered = one.approval
            own = self.approval(answered.id)
            if own is None or answered.is_pending:
                continue
            if own.is_pending and one.is_closed:
                await self.interrupt()  # nobody waits for this run any more
            elif own.is_pending:
                await self._take_answer(answered)
            elif answered.status == "revoked":
                await self._resolve(ApprovalResolved(answered.id, "revoked", answered.by))

    async def left(self, run_id: str) -> None:
        """Wait until this run is not driven any more, which was cancelled in another task."""
        run = self._conversation.state.run
        if run is not None and run.run_id == run_id and self._turnstile.is_busy:
            async with self._turnstile:
                return

    async def _take_answer(self, told: Approval) -> None:
        answer = ApprovalResolved(told.id, told.status, told.by, told.answer, told.scope)
        if told.status == "revoked":
            answer = ApprovalResolved(told.id, "denied", told.by, "the approval was revoked")
        try:
            if told.by is None or await self._may_answer(told, told.by):
                await self._resolve(answer)
                return
        except NotAnApprover:
            pass
        refusal = f"{told.by!r} may not decide for {self.name}"
        await self._resolve(ApprovalResolved(told.id, "denied", None, refusal))
