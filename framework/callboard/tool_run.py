"""The life of one tool call, and batches of them.

prepare (look up, check, decide) -> perform (`performing.py`: journal the intent, run, journal the
outcome) -> observe (layers and hooks on the way out, journal what the model sees). Preparing
returns either a sealed call or nothing, and then the call has its result already or waits for a
human: unknown, invalid, denied and skipped calls leave by the same door as executed ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from callboard.approvals import CallWaits, Deny, Proceed, SealedCall
from callboard.approving import ApprovalPolicy
from callboard.batches import run_batch
from callboard.call_events import CallTeller
from callboard.closing import (
    CUT,
    NOT_REACHED,
    REFUSED,
    UNKNOWN,
    after_failure,
    parking,
    skipping_all,
    unknown_tool,
)
from callboard.decide import Act, Rules, ToolExecution, next_action, stops_batch
from callboard.deciding import Decider, Steps
from callboard.errors import CommitFailed, StopRun
from callboard.events import ApprovalAsked, ArgumentsRepaired, Warned
from callboard.hooks import Hooks, settled
from callboard.joins import Joins
from callboard.journaling.conversation import Conversation
from callboard.journaling.keeping import Keeper, Wholes
from callboard.journaling.records import (
    ApprovalRequested,
    Decided,
    Observed,
    Record,
)
from callboard.journaling.transcript import CallState
from callboard.messages import REFUSALS, Observation, Status, StopReason, ToolCall, new_id
from callboard.performing import Performer
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Tool
from callboard.watchers import Watchers

_NOT_RUN = REFUSALS | {StopReason.LENGTH}  # how a message ends whose calls do not run


class ToolRun:
    """Runs the calls of one agent. Holds what is running now; the rest is in the journal.

    `revealed` gives a call that was stored its values back, where a layer hides them.
    """

    __slots__ = (
        "_conversation",
        "_hooks",
        "_in_sequence",
        "_is_layered",
        "_keeper",
        "_max_concurrency",
        "_rules",
        "_steps",
        "_watchers",
        "decider",
        "joins",
        "performer",
        "revealed",
        "teller",
    )

    def __init__(
        self,
        *,
        agent: Any,
        conversation: Conversation,
        watchers: Watchers,
        steps: Steps,
        rules: Rules,
        hooks: Hooks,
        toolbox: Toolbox,
        asking: ApprovalPolicy,
        deps: Any,
        digest_key: bytes,
        max_concurrency: int | None,
        keeper: Keeper | None,
    ) -> None:
        self.decider = Decider(
            conversation,
            step=steps.deciding,
            before=hooks.before_tool,
            toolbox=toolbox,
            asking=asking,
            digest_key=digest_key,
        )
        self.teller = CallTeller(watchers)
        self.revealed: Callable[[ToolCall], ToolCall] = _as_it_is
        self.performer = Performer(
            conversation,
            seals=self.decider.seals,
            teller=self.teller,
            warn=self._warn,
            keeper=keeper,
            digest_key=digest_key,
            key_prefix=f"{watchers.source.address}:",
            commits_outcome="_acting" in steps.layered or hooks.after_tool is not None,
            deps=deps,
            agent=agent,
        )
        self.joins = Joins(conversation, watchers, self.performer, steps=steps, hooks=hooks)
        self._conversation = conversation
        self._watchers = watchers
        self._steps = steps
        self._is_layered = "_acting" in steps.layered or hooks.after_tool is not None
        self._rules = rules
        self._in_sequence = rules.tool_execution is ToolExecution.SEQUENTIAL
        self._hooks = hooks
        self._max_concurrency = max_concurrency
        self._keeper = keeper

    # -- a batch ---------------------------------------------------------------------------------

    async def act(self, calls: tuple[CallState, ...]) -> None:
        """Decide all these calls in order, then run what may run."""
        if self._in_sequence or (len(calls) > 1 and self._has_sequential(calls)):
            await self._act_in_sequence(calls)
        else:
            await self._act_in_parallel(calls)
        round = self._conversation.state.round
        if round is not None and not round.open:
            self.teller.closed(round)
            self.decider.seals.clear()

    def _has_sequential(self, calls: tuple[CallState, ...]) -> bool:
        tools = [self.decider.toolbox.get(call.call.name) for call in calls]
        return any(tool is not None and tool.sequential for tool in tools)

    async def _act_in_sequence(self, calls: tuple[CallState, ...]) -> None:
        decided = [(call, await self._prepare(call)) for call in calls]
        for call, sealed in decided:
            self.teller.start(call.call)
            if sealed is not None:
                if not self._may_run(call):
                    return
                await self._execute(call, sealed)
            if call.result is None:
                return  # it waits for a human, and those behind it wait with it
            self.teller.end(call)
            self.teller.result(call)

    async def _act_in_parallel(self, calls: tuple[CallState, ...]) -> None:
        ready: list[tuple[CallState, SealedCall]] = []
        for call in calls:
            self.teller.start(call.call)
            sealed = await self._prepare(call)
            if sealed is not None:
                ready.append((call, sealed))
            elif call.result is not None:
                self.teller.end(call)
        if len(ready) == 1:
            await self._execute(*ready[0])
        elif ready:
            await run_batch(
                ready, self._execute, tool_of=_tool_of, max_concurrency=self._max_concurrency
            )

    def _may_run(self, call: CallState) -> bool:
        action = next_action(self._conversation.state, self._rules)
        return isinstance(action, Act) and call in action.calls

    async def skip(self, calls: tuple[CallState, ...]) -> None:
        """Close these calls, because the user has said something; a parked one is withdrawn."""
        for call in calls:
            self.teller.start(call.call)

        await self._conversation.commit_built(skipping_all)  # a human may have answered meanwhile
        round = self._conversation.state.round
        if round is not None:
            self.teller.closed(round)

    # -- prepare ---------------------------------------------------------------------------------

    async def _prepare(self, call: CallState) -> SealedCall | None:
        """The call as it may run; None once it has its result, or waits for a human."""
        if call.attempts:
            return await self._prepare_again(call)
        checked = self._checked(call)
        if isinstance(checked, Observation):
            await self._close(call, checked)
            return None
        replayed = bool(call.approval_ids)
        asked, verdict = await self.decider.decide(checked, replayed=replayed)
        if isinstance(verdict, Proceed):
            sealed = verdict.call
            if sealed.call is not call.call:  # an unchanged one needs no record: it starts next
                self._conversation.ride(Decided(call.call.id, "proceed", sealed.call))
            return sealed
        changed = None if asked is call.call else asked
        if isinstance(verdict, Deny):
            await self._deny(call, verdict, changed)
            return None
        approval = self.decider.approval(verdict)
        decided = Decided(call.call.id, "ask", changed, verdict.reason, verdict.rule)
        await self._conversation.commit(decided, ApprovalRequested(approval))
        self._watchers.tell(ApprovalAsked, approval)
        return None

    def _checked(self, call: CallState) -> ToolCall | Observation:
        """The call with arguments that fit, or what closes it at once."""
        round = self._conversation.state.round
        assert round is not None
        stopped = round.message.stop_reason
        if stopped in _NOT_RUN:
            if stopped in REFUSALS:
                return Observation.of(REFUSED, Status.SKIPPED)
            return Observation.of(CUT, Status.FAILED)
        tool = self.decider.toolbox.get(call.call.name)
        if tool is None:
            return unknown_tool(call.call.name, self.decider.toolbox)
        given = call.asked  # not what the layers made of it: they would rewrite it twice
        checked = tool.check(given)
        if type(checked) is not ToolCall:
            return Observation.of(checked.text, Status.INVALID)
        if checked is not given:
            self._watchers.tell(ArgumentsRepaired, given, checked)
        return checked

    async def _deny(self, call: CallState, verdict: Deny, changed: ToolCall | None) -> None:
        decided = Decided(call.call.id, "deny", changed, verdict.reason, verdict.rule)
        text = verdict.reason or "The call was not allowed."
        observation = Observation.of(text, Status.DENIED)
        await self._close(call, replace(observation, terminate=verdict.terminate), decided)

    async def _prepare_again(self, call: CallState) -> SealedCall | None:
        """A call that was started before a restart is never decided again."""
        tool = self.decider.toolbox.get(call.call.name)
        checked = tool.check(self.revealed(call.final)) if tool is not None else None
        if tool is None or not isinstance(checked, ToolCall):
            await self._close(call, Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME))
            return None
        sealed = self.decider.seals[call.call.id] = SealedCall(checked, tool)
        return sealed

    # -- observe ---------------------------------------------------------------------------------

    async def _execute(self, call: CallState, sealed: SealedCall) -> None:
        state = self._conversation.state
        if (state.interrupted or state.queues.steering) and stops_batch(state, self._rules):
            return  # an interrupt or a steering message came while the batch was decided
        if state.approvals and sealed.id not in self.decider.seals:
            return  # what released it was revoked meanwhile
        try:
            observation = await self._steps.acting(sealed)
            if self._hooks.after_tool is not None and call.attempts:
                answer = await settled(self._hooks.after_tool(sealed.call, observation))
                observation = observation if answer is None else answer
        except CallWaits as waits:
            await self._park(call, waits)
            return
        except (CommitFailed, StopRun):
            raise
        except Exception as error:  # a layer's own code
            observation = after_failure(call, error)
        if type(observation) is not Observation:  # an untyped layer may return anything
            culprits = self._steps.layers or "the after_tool hook"
            problem = TypeError(f"a layer returned {observation!r}; one of {culprits}")
            observation = after_failure(call, problem)
        if self._is_layered and not call.attempts and self._was_not_reached(observation):
            text = f"{NOT_REACHED} Layers: {self._steps.layers}."
            observation = Observation.of(text, Status.FAILED)
        if self._keeper is not None and self._is_layered:  # what a layer put in
            observation = await self._keeper.observation(observation, Wholes(), warn=self._warn)
        await self._conversation.commit(Observed(call.call.id, observation, new_id("m")))
        self.teller.end(call)

    async def _park(self, call: CallState, waits: CallWaits) -> None:
        """The tool asks a human: the call stays open, and the tool is entered again."""
        asked, problem = parking(call, waits, self._conversation.state)
        if problem:
            await self._close(call, Observation.of(problem, Status.FAILED))
            self.teller.end(call)
            return
        asked = [self.decider.asking.stamped(one) for one in asked]
        await self._conversation.commit(*[ApprovalRequested(one) for one in asked])
        for one in asked:
            self._watchers.tell(ApprovalAsked, one)

    def _warn(self, text: str) -> None:
        self._watchers.tell(Warned, text)

    def _was_not_reached(self, observation: Observation) -> bool:
        return observation.status is Status.OK and not self._steps.acting_is_replaced

    def _close(self, call: CallState, observation: Observation, *before: Record) -> Awaitable[None]:
        observed = Observed(call.call.id, observation, new_id("m"))
        return self._conversation.commit(*before, observed)


def _as_it_is(call: ToolCall) -> ToolCall:
    return call


def _tool_of(ready: tuple[CallState, SealedCall]) -> Tool:
    return ready[1].tool
