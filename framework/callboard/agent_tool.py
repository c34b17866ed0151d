"""An agent as a tool of another one: it runs inside the call, and what it asks is asked above."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from callboard.approvals import Approval, CallWaits
from callboard.chain import waiting_for
from callboard.closing import UNKNOWN
from callboard.errors import NotAnApprover
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import ApprovalResolved, RunFinished
from callboard.messages import Observation, Status
from callboard.replies import Outcome, Prompt, Reply, RunFailed
from callboard.runs import Runs, reply_of
from callboard.tooling.tool_context import ToolContext
from callboard.tooling.tools import Effect, Tool

_ANSWERS = frozenset({Outcome.FINISHED, Outcome.STOPPED, Outcome.MAX_ITERS, Outcome.BUDGET})


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
        return Tool.from_schema(
            name=name or self.name,
            description=description,
            parameters=_parameters(),
            run=self._called,
            effect=Effect.IDEMPOTENT,
            timeout_s=None,
        )

    async def _stop_below(self) -> None:
        """Stop the sub-agents that still wait for a human on behalf of calls that are closed."""
        for tool in self._calls.decider.toolbox.values():
            below = getattr(tool.function, "__self__", None)
            if isinstance(below, UsableAsTool):
                await below._take_answers(self)

    async def _called(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        above: UsableAsTool = context.agent
        begun = above._conversation.state.run
        run_id = f"{begun.run_id if begun is not None else ''}/{context.call_id}"
        is_again = context.attempt > 1
        await self._take_answers(above)
        await self._opened()
        if is_again and self._is_lost():
            return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        prompt = Prompt.of(arguments["task"], id=run_id)
        reply = await self._run_once(run_id, prompt, is_again=is_again)
        if reply.outcome is Outcome.AWAITING_APPROVAL:
            path = str(self.address)
            raise CallWaits(*[replace(one, path=(*one.path, path)) for one in reply.pending])
        return _observed(reply)

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
                known = await self._end_of(run_id) if is_again else None
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

    async def _take_answers(self, above: UsableAsTool) -> None:
        """Take over what was answered to this agent's questions in the agent above it."""
        asked = above.asked_through(self.address)
        if asked:
            await self._opened()
        for told in asked:
            own = self.approval(told.id)
            if own is None or told.is_pending:
                continue
            if own.is_pending and told.status == "withdrawn" and above._has_closed(told):
                await self.interrupt()  # nobody waits for this run any more
            elif own.is_pending:
                await self._take_answer(told)
            elif told.status == "revoked":
                await self._resolve(ApprovalResolved(told.id, "revoked", told.by))

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

    def _has_closed(self, told: Approval) -> bool:
        open_ids = [call.call.id for call in self._conversation.state.open_calls]
        return told.call_id not in open_ids


def _parameters() -> dict[str, Any]:
    task = {"type": "string", "description": "What to do, with all that one has to know for it."}
    return {
        "type": "object",
        "properties": {"task": task},
        "required": ["task"],
        "additionalProperties": False,
    }


def _observed(reply: Reply) -> Observation:
    text = reply.text or f"(no answer: {reply.outcome})"
    if reply.outcome in _ANSWERS:
        return replace(Observation.of(text), payload=reply.output)
    if reply.outcome is Outcome.INTERRUPTED:
        return Observation.of("The agent was interrupted.", Status.CANCELLED)
    return Observation.of(f"{reply.outcome}: {reply.text or reply.error or ''}", Status.FAILED)
