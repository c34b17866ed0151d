"""The life of one tool call, and batches of them.

prepare (look up, check, decide) -> perform (journal the intent, run, journal the outcome) ->
observe (layers and hooks on the way out, journal what the model sees). Preparing returns either
a sealed call or an observation at once, so that unknown, invalid, denied and skipped calls leave
by the same door as executed ones: each call has one start, one end and one result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from anyio import get_cancelled_exc_class

from callboard.approvals import (
    Approval,
    Ask,
    CallDigest,
    Deny,
    Proceed,
    SealedCall,
    Verdict,
    call_digest,
)
from callboard.batches import run_batch
from callboard.conversation import Conversation
from callboard.decide import Act, Rules, ToolExecution, next_action
from callboard.errors import CommitFailed, StopRun
from callboard.events import (
    ApprovalAsked,
    ArgumentsRepaired,
    MessageEnd,
    MessageStart,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Warned,
)
from callboard.execution import execute
from callboard.hooks import Hooks, settled
from callboard.messages import Observation, Status, StopReason, ToolCall, new_id
from callboard.records import (
    ApprovalRequested,
    Decided,
    Observed,
    Record,
    ToolFinished,
    ToolStarted,
)
from callboard.toolbox import Toolbox
from callboard.tools import Effect, Tool, ToolContext
from callboard.transcript import CallState
from callboard.watching import Watchers

CUT = (
    "This call was not run: the output limit cut the message that holds it. Send smaller parts, "
    "each in a message of its own."
)
REFUSED = "This call was not run: the model's answer was stopped as a refusal or by a filter."
UNKNOWN = (
    "This call was started and then cut off; it is not known whether it took effect. Check "
    "before you do it again."
)
CANCELLED = "This call was cancelled before it finished."
NOT_REACHED = "The call was answered as done, but no layer below ran the tool, so it did not run."


@dataclass(frozen=True, slots=True)
class Steps:
    """The agent's outermost steps around a call, and whether a layer overrides `_acting`."""

    deciding: Callable[[ToolCall], Awaitable[Verdict]]
    acting: Callable[[SealedCall], Awaitable[Observation]]
    acting_is_layered: bool
    acting_is_replaced: bool
    layers: str  # their names, for an error that must name a culprit


class ToolRun:
    """Runs the calls of one agent. Holds what is running now; the rest is in the journal."""

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
        deps: Any,
        digest_key: bytes,
        max_concurrency: int | None,
    ) -> None:
        self.toolbox = toolbox
        self._agent = agent
        self._conversation = conversation
        self._watchers = watchers
        self._steps = steps
        self._rules = rules
        self._hooks = hooks
        self.deps = deps
        self._digest_key = digest_key
        self._max_concurrency = max_concurrency
        self._key_prefix = f"{watchers.source.address}:"
        self._seals: dict[str, SealedCall] = {}
        self._running: dict[str, ToolContext] = {}
        self._started: set[str] = set()  # calls whose start was told and whose end was not
        self._shown: set[str] = set()  # calls whose result message was told

    # -- a batch ---------------------------------------------------------------------------------

    async def act(self, calls: tuple[CallState, ...]) -> None:
        """Decide all these calls in order, then run what may run."""
        if self._is_sequential(calls):
            await self._act_in_sequence(calls)
        else:
            await self._act_in_parallel(calls)
        state = self._conversation.state
        if state.round is not None and not state.round.open:
            for call in state.round.calls.values():
                self._tell_result(call)
            self._shown.clear()
            self._seals.clear()

    def _is_sequential(self, calls: tuple[CallState, ...]) -> bool:
        if self._rules.tool_execution is ToolExecution.SEQUENTIAL:
            return True
        if len(calls) == 1:
            return False
        tools = [self.toolbox.get(call.call.name) for call in calls]
        return any([tool is not None and tool.sequential for tool in tools])

    async def _act_in_sequence(self, calls: tuple[CallState, ...]) -> None:
        decided = [(call, await self._prepare(call)) for call in calls]
        for call, sealed in decided:
            self._tell_start(call.call)
            if sealed is not None:
                if not self._may_run(call):
                    return
                await self._execute(call, sealed)
            elif call.result is None:
                return  # it waits for a human, and those behind it wait with it
            else:
                self._tell_end(call)
            self._tell_result(call)

    async def _act_in_parallel(self, calls: tuple[CallState, ...]) -> None:
        ready: list[tuple[CallState, SealedCall]] = []
        for call in calls:
            self._tell_start(call.call)
            sealed = await self._prepare(call)
            if sealed is not None:
                ready.append((call, sealed))
            elif call.result is not None:
                self._tell_end(call)
        if len(ready) == 1:
            await self._execute(*ready[0])
        elif ready:
            await run_batch(
                ready, self._execute, tool_of=_tool_of, max_concurrency=self._max_concurrency
            )

    def _may_run(self, call: CallState) -> bool:
        action = next_action(self._conversation.state, self._rules)
        return isinstance(action, Act) and call in action.calls

    # -- prepare ---------------------------------------------------------------------------------

    async def _prepare(self, call: CallState) -> SealedCall | None:
        """The call as it may run; None once it has its result, or waits for a human."""
        if call.attempts:
            return await self._prepare_again(call)
        tool = self.toolbox.get(call.call.name)
        refusal = self._refused_at_once()
        if tool is None or refusal is not None:
            await self._close(call, refusal or _unknown(call.call.name, self.toolbox))
            return None
        checked = self._check(tool, call.final)
        if type(checked) is Observation:
            await self._close(call, checked)
            return None
        asked, verdict = await self._decide(checked, replayed=call.approval_id is not None)
        if type(verdict) is Proceed:
            changed = _changed(call, verdict.call.call)
            if changed is not None:  # an unchanged call needs no record: it is started next
                self._conversation.ride(Decided(call.call.id, "proceed", changed))
            return verdict.call
        await self._hold_back(call, verdict, _changed(call, asked))
        return None

    def _refused_at_once(self) -> Observation | None:
        """Why nothing of this message may run, or None."""
        round = self._conversation.state.round
        assert round is not None
        stopped = round.message.stop_reason
        if stopped is StopReason.LENGTH:
            return Observation.of(CUT, Status.FAILED)
        if stopped is StopReason.REFUSAL or stopped is StopReason.FILTER:
            return Observation.of(REFUSED, Status.SKIPPED)
        return None

    def _check(self, tool: Tool, call: ToolCall) -> ToolCall | Observation:
        checked = tool.check(call)
        if not isinstance(checked, ToolCall):
            return Observation.of(checked.text, Status.INVALID)
        if checked is not call:
            self._watchers.tell(ArgumentsRepaired, call, checked)
        return checked

    async def _decide(self, call: ToolCall, *, replayed: bool) -> tuple[ToolCall, Verdict]:
        """The call as the hook left it, and the verdict of all layers on it.

        Whatever goes wrong in a hook or a layer denies. The hook is not asked again about a call
        that a human answered.
        """
        self._seals.pop(call.id, None)
        try:
            if self._hooks.before_tool is not None and not replayed:
                answer = await settled(self._hooks.before_tool(call))
                if isinstance(answer, Deny):
                    return call, answer
                call = answer or call
            verdict = await self._steps.deciding(call)
        except (CommitFailed, StopRun):
            raise
        except Exception as error:
            return call, Deny(f"the call was not run, because deciding on it failed: {error}")
        return call, self._confirmed(verdict, call.id)

    def _confirmed(self, verdict: Verdict, call_id: str) -> Verdict:
        """The verdict, if it holds the root's own seal and no approval stands against it."""
        if isinstance(verdict, (Deny, Ask)):
            return verdict
        if not isinstance(verdict, Proceed):  # an untyped layer may return anything
            return Deny(f"a layer answered {verdict!r}, which is no verdict")
        sealed = verdict.call
        if sealed is not self._seals.get(call_id):
            return Deny("a layer changed the call after it was decided, so it was not run")
        round = self._conversation.state.round
        asked = round.calls[call_id].approval_id if round is not None else None
        if asked is None:
            return verdict
        approval = self._conversation.state.approvals[asked]
        if approval.grants(call_id, call_digest(sealed.call, key=self._digest_key)):
            return verdict
        return Ask(sealed.call, "what was approved is not what would run now")

    def seal(self, call: ToolCall) -> Verdict:
        """The root's `_deciding`: check the arguments that came in, and seal the call."""
        tool = self.toolbox.get(call.name)
        if tool is None:
            return Deny(f"there is no tool {call.name!r}")
        checked = tool.check(call)
        if not isinstance(checked, ToolCall):
            return Deny(checked.text)
        sealed = self._seals[call.id] = SealedCall(checked, tool)
        return Proceed(sealed)

    async def _hold_back(
        self, call: CallState, verdict: Deny | Ask, changed: ToolCall | None
    ) -> None:
        """Journal a refusal with its result, or the question to a human."""
        id = call.call.id
        if isinstance(verdict, Deny):
            decided = Decided(id, "deny", changed, reason=verdict.reason, rule=verdict.rule)
            text = verdict.reason or "The call was not allowed."
            observation = Observation.of(text, Status.DENIED)
            await self._close(call, replace(observation, terminate=verdict.terminate), decided)
            return
        approval = self._approval(verdict)
        decided = Decided(id, "ask", changed, reason=verdict.reason, rule=verdict.rule)
        await self._conversation.commit(decided, ApprovalRequested(approval))
        self._watchers.tell(ApprovalAsked, approval)

    def _approval(self, ask: Ask) -> Approval:
        run = self._conversation.state.run
        return Approval(
            id=new_id("approval"),
            run_id=run.run_id if run is not None else "",
            call_id=ask.call.id,
            tool_name=ask.call.name,
            digest=call_digest(ask.call, key=self._digest_key),
            preview=ask.call.arguments,
            reason=ask.reason,
            rule=ask.rule,
            findings=ask.findings,
            expires_at=ask.expires_at,
        )

    async def _prepare_again(self, call: CallState) -> SealedCall | None:
        """A call that was started before a restart is never decided again."""
        tool = self.toolbox.get(call.call.name)
        checked = tool.check(call.final) if tool is not None else None
        if tool is None or not isinstance(checked, ToolCall):
            await self._close(call, Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME))
            return None
        sealed = self._seals[call.call.id] = SealedCall(checked, tool)
        return sealed

    # -- perform ---------------------------------------------------------------------------------

    async def perform(self, sealed: SealedCall) -> Observation:
        """The root's `_acting`: run a sealed call, or give back the outcome that is recorded.

        Journals the intent first. A copy of a sealed call is refused.
        """
        if not sealed.is_from(self._seals.get(sealed.id)):
            return Observation.of("the call is not the one that was decided", Status.DENIED)
        round = self._conversation.state.round
        assert round is not None
        past = round.calls[sealed.id].attempts
        again = sealed.attempt >= len(past) and sealed.tool.effect is not Effect.EFFECT
        if past and not again:
            recorded = past[min(sealed.attempt, len(past) - 1)].observation
            if recorded is not None:
                return recorded
            if sealed.tool.effect is Effect.EFFECT:
                return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        return await self._run(sealed, attempt=len(past))

    async def _run(self, sealed: SealedCall, *, attempt: int) -> Observation:
        call, tool = sealed.call, sealed.tool
        key = f"{self._key_prefix}{call.id}"
        digest = "" if tool.effect is Effect.PURE else CallDigest(call, self._digest_key)
        started = ToolStarted(call.id, tool.name, tool.effect, key, digest, tool.polling)
        await self._conversation.commit(started)
        context = self._context(sealed, key, attempt)
        self._running[call.id] = context
        try:
            observation = await execute(tool, call, context)
        finally:
            self._running.pop(call.id, None)
        finished = ToolFinished(call.id, attempt, observation, self._conversation.lap())
        cancelled = context.swallowed_cancel  # the tool finished all the same: its outcome is kept
        if cancelled or self._steps.acting_is_layered or self._hooks.after_tool is not None:
            await self._conversation.commit(finished)
        else:
            self._conversation.ride(finished)  # nothing awaits between here and `observed`
        if cancelled:
            raise get_cancelled_exc_class()
        return observation

    def _context(self, sealed: SealedCall, key: str, attempt: int) -> ToolContext:
        return ToolContext(
            call_id=sealed.id,
            idempotency_key=key,
            tool_name=sealed.name,
            deps=self.deps,
            agent=self._agent,
            attempt=attempt + 1,
            on_update=self._told_update(sealed.id) if self._watchers.active else None,
            on_late=self._told_late,
        )

    def _told_update(self, call_id: str) -> Callable[[Any], None]:
        return lambda value: self._watchers.tell(ToolUpdate, call_id, value)

    def _told_late(self, text: str) -> None:
        self._watchers.tell(Warned, text)

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call; the loop goes on. False if it does not run."""
        context = self._running.get(call_id)
        if context is not None:
            context.cancel()
        return context is not None

    # -- observe ---------------------------------------------------------------------------------

    async def _execute(self, call: CallState, sealed: SealedCall) -> None:
        try:
            observation = await self._steps.acting(sealed)
            if self._hooks.after_tool is not None and call.attempts:
                answer = await settled(self._hooks.after_tool(sealed.call, observation))
                observation = observation if answer is None else answer
        except (CommitFailed, StopRun):
            raise
        except Exception as error:
            observation = _after_failure(call, error)
        if not call.attempts and self._was_not_reached(observation):
            text = f"{NOT_REACHED} Layers: {self._steps.layers}."
            observation = Observation.of(text, Status.FAILED)
        await self._close(call, observation)
        self._tell_end(call)

    def _was_not_reached(self, observation: Observation) -> bool:
        return observation.status is Status.OK and not self._steps.acting_is_replaced

    def _close(
        self, call: CallState, observation: Observation, *before: Record
    ) -> Awaitable[None]:
        observed = Observed(call.call.id, observation, new_id("m"))
        return self._conversation.commit(*before, observed)

    # -- tell ------------------------------------------------------------------------------------

    def _tell_start(self, call: ToolCall) -> None:
        if self._watchers.active and call.id not in self._started:
            self._started.add(call.id)
            self._watchers.tell(ToolStart, call)

    def _tell_end(self, call: CallState) -> None:
        result = call.result
        if call.call.id in self._started and result is not None and call.observation is not None:
            self._started.discard(call.call.id)
            self._watchers.tell(ToolEnd, result.call_id, result.tool_name, call.observation)

    def _tell_result(self, call: CallState) -> None:
        result = call.result
        if not self._watchers.active or result is None or result.call_id in self._shown:
            return
        self._shown.add(result.call_id)
        self._watchers.tell(MessageStart, result.id, "tool")
        self._watchers.tell(MessageEnd, result.id, result)

    def tell_closed(self) -> None:
        """Tell the ends and results of a round that was closed by an interrupt or a cancel."""
        round = self._conversation.state.round
        if round is None:
            return
        for call in round.calls.values():
            self._tell_start(call.call)
            self._tell_end(call)
        for call in round.calls.values():
            self._tell_result(call)
        self._started.clear()
        self._shown.clear()
        self._seals.clear()


def _tool_of(ready: tuple[CallState, SealedCall]) -> Tool:
    return ready[1].tool


def _unknown(name: str, toolbox: Toolbox) -> Observation:
    near = toolbox.near(name)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return Observation.of(f"There is no tool {name!r}.{hint}", Status.UNKNOWN_TOOL)


def _changed(call: CallState, final: ToolCall) -> ToolCall | None:
    return None if final is call.call else final


def _after_failure(call: CallState, error: Exception) -> Observation:
    past = call.attempts[-1].observation if call.attempts else None
    if past is None:
        return Observation.of(f"a layer failed around the call: {error!r}", Status.FAILED)
    text = f"the tool ran and returned {past.text!r}; post-processing failed: {error!r}"
    return Observation.of(text, Status.FAILED)


def closing_observation(call: CallState) -> Observation:
    """What closes a call that is cut off, by what is known of it."""
    past = call.attempts[-1] if call.attempts else None
    if past is None:
        return Observation.of(CANCELLED, Status.CANCELLED)
    if past.observation is not None:
        return past.observation
    if past.started.effect is Effect.EFFECT:
        return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
    return Observation.of(CANCELLED, Status.CANCELLED)
