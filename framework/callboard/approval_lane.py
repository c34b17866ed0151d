"""The lane for humans: questions of an agent's calls, their answers, and what was granted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from callboard.actors.address import Address
from callboard.actors.conversing import Conversing
from callboard.approvals import Approval, GrantScope
from callboard.approving import ANYBODY, ApprovalPolicy, Approver, OnPrompt, scope_of
from callboard.decide import Rules
from callboard.errors import ConfigurationError, NotAnApprover
from callboard.events import ApprovalAnswered, Warned
from callboard.hooks import settled
from callboard.in_place import InPlace
from callboard.in_place_run import InPlaceRun
from callboard.journaling.records import ApprovalResolved
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome, Prompt, PromptLike, RunEnds
from callboard.resolving import check_fit, expiring, fate_of, not_an_approver, resolving
from callboard.tool_run import ToolRun


class ApprovalLane(Conversing):
    """An actor whose calls may wait for humans. Answers are never behind a run."""

    _calls: ToolRun  # made by the agent, whose steps it calls
    _rules: Rules

    def __init__(
        self, *, approver: Approver | None = None, approvals: ApprovalPolicy = ANYBODY, **rest: Any
    ) -> None:
        super().__init__(**rest)
        self._asking = approvals
        self._in_place: InPlace | None = None
        self._tool_run: Callable[..., ToolRun] = ToolRun
        if approver is not None:
            self._in_place = InPlace(approver, answer=self._answer, resolve=self._resolve)
            self._tool_run = partial(InPlaceRun, in_place=self._in_place)

    # -- answers ---------------------------------------------------------------------------------

    async def approve(
        self, approval_id: str, *, by: str, scope: GrantScope | str = GrantScope.ONCE
    ) -> bool:
        """Release exactly the call that was asked about, once. Then `resume()`.

        A wider `scope` releases others like it without asking, until `revoke`; `agent.grants`
        lists these. False, and nothing changes, if the approval is unknown, expired or answered
        already: `agent.approval(id)` tells, and a warning event.

        Raises:
            NotAnApprover: `by` may not answer this one; nothing changes.
            ConfigurationError: it asks for words, which `answer` gives; or there is no such scope.
        """
        wide = scope_of(scope)
        return await self._answer(ApprovalResolved(approval_id, "approved", by, scope=wide))

    async def deny(self, approval_id: str, *, reason: str = "", by: str) -> bool:
        """Refuse the call; the model reads the reason. Then `resume()`. As `approve` else."""
        return await self._answer(ApprovalResolved(approval_id, "denied", by, reason or None))

    async def answer(self, approval_id: str, text: str, *, by: str) -> bool:
        """Give a tool the words that it asked for. Then `resume()`. As `approve` else.

        Raises:
            NotAnApprover: as `approve`.
            ConfigurationError: it asks whether a call may run.
        """
        return await self._answer(ApprovalResolved(approval_id, "answered", by, text))

    async def withdraw(self, item_id: str) -> bool:
        """Take back what waits: a queued message, or a question to a human, whose call is then
        `skipped`. False if it is not waiting (any more).
        """
        if await super().withdraw(item_id):
            return True
        return await self._resolve(ApprovalResolved(item_id, "withdrawn"))

    async def revoke(self, approval_id: str, *, by: str) -> bool:
        """End what a wide approval grants. False if it grants nothing (any more).

        Raises:
            NotAnApprover: as `approve`.
        """
        return await self._answer(ApprovalResolved(approval_id, "revoked", by))

    async def steer(self, message: PromptLike, *, wake: bool = True, id: str | None = None) -> str:
        item_id = await super().steer(message, wake=wake, id=id)
        policy = self._rules.steering_policy
        if policy is SteeringPolicy.INTERRUPT:
            self._calls.performer.cancel_all()
        if policy is not SteeringPolicy.AFTER_BATCH and self._in_place is not None:
            self._in_place.end_all()
        return item_id

    async def _stop_below(self) -> None:
        """Calls were closed that may have waited for sub-agents: see `agent_tool.py`."""

    async def _queue_prompt(self, prompt: Prompt) -> None:
        """Queue what is asked while a run is not finished; by policy, give up waiting for it."""
        pending = self.pending if self._asking.on_prompt is OnPrompt.WITHDRAW else ()
        for message in prompt.messages:
            await (self.steer if pending else self.follow_up)(message)
        for one in pending:
            await self.withdraw(one.id)

    # -- what there is ---------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Approval, ...]:
        """The approvals that wait for an answer, those of sub-agents among them."""
        return self._conversation.state.pending

    @property
    def grants(self) -> tuple[Approval, ...]:
        """The approvals that hold for more than their own call: in this run, or from now on."""
        state = self._conversation.state
        run_id = state.run.run_id if state.run is not None else None
        wide = [state.approvals[id] for id in state.wide]
        return tuple([one for one in wide if one.holds_in(run_id)])

    def approval(self, approval_id: str) -> Approval | None:
        """What became of an approval; None if this agent never asked it."""
        return self._conversation.state.approvals.get(approval_id)

    def questions_of(self, call_id: str) -> tuple[Approval, ...]:
        """What a call of the open round had to ask so far, answered or not."""
        round = self._conversation.state.round
        if round is None or call_id not in round.calls:
            return ()
        return self._conversation.state.asked_for(round.calls[call_id])

    def asked_through(self, address: Address) -> tuple[Approval, ...]:
        """What this sub-agent asked, for itself or for its own, answered or not."""
        asked = self._conversation.state.approvals.values()
        return tuple([one for one in asked if one.path and one.path[-1] == str(address)])

    # -- the loop's verbs ------------------------------------------------------------------------

    async def _wait_for_humans(self) -> None:
        """Put what waits to the approver; without one, or once it was asked, park the run."""
        if isinstance(self._calls, InPlaceRun) and await self._calls.put_to_approver():
            return
        waiting = [f"{one.tool_name} ({one.reason})" for one in self.pending]
        raise RunEnds(Outcome.AWAITING_APPROVAL, f"Waiting for approval of: {'; '.join(waiting)}")

    # -- the lane itself -------------------------------------------------------------------------

    async def _answer(self, answer: ApprovalResolved) -> bool:
        if not answer.by:
            raise ConfigurationError("by='' names nobody; say who answers")
        await self._opened()
        await self._expire()
        asked = self.approval(answer.approval_id)
        if asked is not None:
            check_fit(asked, answer)
            if not await self._may_answer(asked, answer.by):
                raise not_an_approver(asked, answer.by)
            await self._expire()  # the check may have taken longer than the question stands
        if await self._resolve(answer):
            return True
        self._watchers.tell(Warned, fate_of(answer.approval_id, self.approval(answer.approval_id)))
        return False

    async def _may_answer(self, asked: Approval, by: str) -> bool:
        if asked.path and asked.approvers and by not in asked.approvers:
            return False
        rule = self._asking.approvers
        if rule is None:
            return True
        if isinstance(rule, Collection):
            return by in rule
        try:
            return await settled(rule(asked, by)) is True
        except Exception as error:  # a guard of the user's own: what fails in it refuses
            raise NotAnApprover(f"{by!r} could not be checked: {error!r}") from error

    async def _expire(self) -> None:
        """Refuse the calls whose approval nobody gave in time."""
        for late_one in expiring(self._conversation.state):
            await self._resolve(late_one)

    async def _resolve(self, answer: ApprovalResolved) -> bool:
        if not await self._conversation.commit_built(lambda state: resolving(state, answer)):
            return False
        if self._in_place is not None:
            self._in_place.end(answer.approval_id)
        asked = self._conversation.state.approvals[answer.approval_id]
        if answer.status == "revoked":
            self._calls.decider.unseal(asked)
        self._watchers.tell(ApprovalAnswered, asked)
        return True
