"""The life of one tool call, and batches of them.

prepare (look up, check, decide) -> perform (journal the intent, run, journal the outcome) ->
observe (layers and hooks on the way out, journal what the model sees). Preparing returns either
a sealed call or nothing, and then the call has its result already or waits for a human: unknown,
invalid, denied and skipped calls leave by the same door as executed ones.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from anyio import get_cancelled_exc_class

from callboard.approvals import CallDigest, Deny, Proceed, SealedCall, Verdict
from callboard.batches import run_batch
from callboard.call_events import CallTeller
from callboard.closing import (
    CUT,
    NOT_DECIDED,
    NOT_REACHED,
    REFUSED,
    SKIPPED,
    UNKNOWN,
    after_failure,
    closing_observation,
    closing_records,
    unknown_tool,
)
from callboard.decide import Act, Rules, ToolExecution, next_action, stops_batch
from callboard.deciding import Decider
from callboard.errors import CommitFailed, StopRun
from callboard.events import ApprovalAsked, ArgumentsRepaired, Warned
from callboard.hooks import Hooks, settled
from callboard.journaling.conversation import Conversation
from callboard.journaling.keeping import Keeper, Wholes, unkept
from callboard.journaling.records import (
    ApprovalRequested,
    Decided,
    Observed,
    Record,
    ToolFinished,
    ToolStarted,
)
from callboard.journaling.transcript import CallState, State
from callboard.messages import REFUSALS, Observation, Status, StopReason, ToolCall, new_id
from callboard.tooling.execution import execute, raise_cancelled
from callboard.tooling.toolbox import Toolbox
from callboard.tooling.tools import Effect, Tool, ToolContext
from callboard.watching import Watchers


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

    __slots__ = (
        "_agent",
        "_conversation",
        "_deps",
        "_hooks",
        "_is_layered",
        "_keeper",
        "_key_prefix",
        "_max_concurrency",
        "_rules",
        "_running",
        "_steps",
        "_watchers",
        "decider",
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
            digest_key=digest_key,
        )
        self.teller = CallTeller(watchers)
        self._agent = agent
        self._conversation = conversation
        self._watchers = watchers
        self._steps = steps
        self._is_layered = steps.acting_is_layered or hooks.after_tool is not None
        self._rules = rules
        self._hooks = hooks
        self._deps = deps
        self._max_concurrency = max_concurrency
        self._keeper = keeper
        self._key_prefix = f"{watchers.source.address}:"
        self._running: dict[str, ToolContext] = {}

    # -- a batch ---------------------------------------------------------------------------------

    async def act(self, calls: tuple[CallState, ...]) -> None:
        """Decide all these calls in order, then run what may run."""
        if self._is_sequential(calls):
            await self._act_in_sequence(calls)
        else:
            await self._act_in_parallel(calls)
        round = self._conversation.state.round
        if round is not None and not round.open:
            self.teller.closed(round)
            self.decider.seals.clear()

    def _is_sequential(self, calls: tuple[CallState, ...]) -> bool:
        if self._rules.tool_execution is ToolExecution.SEQUENTIAL:
            return True
        if len(calls) == 1:
            return False
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
            elif call.result is None:
                return  # it waits for a human, and those behind it wait with it
            else:
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

        def build(state: State) -> list[Record]:  # a human may have answered meanwhile
            records: list[Record] = []
            for call in state.open_calls:
                observation = closing_observation(call)
                if not call.attempts:
                    observation = Observation.of(SKIPPED, Status.SKIPPED)
                records += closing_records(call, observation, state)
            return records

        await self._conversation.commit_built(build)
        round = self._conversation.state.round
        if round is not None:
            self.teller.closed(round)

    # -- prepare ---------------------------------------------------------------------------------

    async def _prepare(self, call: CallState) -> SealedCall | None:
        """The call as it may run; None once it has its result, or waits for a human."""
        if call.attempts:
            return await self._prepare_again(call)
        checked = self._checked(call)
        if type(checked) is Observation:
            await self._close(call, checked)
            return None
        assert isinstance(checked, ToolCall)
        replayed = call.approval_id is not None
        asked, verdict = await self.decider.decide(checked, replayed=replayed)
        final = verdict.call.call if isinstance(verdict, Proceed) else asked
        changed = None if final is call.call else final
        if isinstance(verdict, Proceed):
            if changed is not None:  # an unchanged call needs no record: it is started next
                self._conversation.ride(Decided(call.call.id, "proceed", changed))
            return verdict.call
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
        if round.message.stop_reason is StopReason.LENGTH:
            return Observation.of(CUT, Status.FAILED)
        if round.message.stop_reason in REFUSALS:
            return Observation.of(REFUSED, Status.SKIPPED)
        tool = self.decider.toolbox.get(call.call.name)
        if tool is None:
            return unknown_tool(call.call.name, self.decider.toolbox)
        given = call.asked  # not what the layers made of it: they would rewrite it twice
        checked = tool.check(given)
        if not isinstance(checked, ToolCall):
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
        checked = tool.check(call.final) if tool is not None else None
        if tool is None or not isinstance(checked, ToolCall):
            await self._close(call, Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME))
            return None
        sealed = self.decider.seals[call.call.id] = SealedCall(checked, tool)
        return sealed

    # -- perform ---------------------------------------------------------------------------------

    async def perform(self, sealed: SealedCall) -> Observation:
        """The root's `_acting`: run a sealed call, or give back the outcome that is recorded.

        Journals the intent first. A copy of a sealed call is refused.
        """
        call_id = sealed.call.id
        if not sealed.is_from(self.decider.seals.get(call_id)):
            return Observation.of(NOT_DECIDED, Status.DENIED)
        round = self._conversation.state.round
        assert round is not None
        past = round.calls[call_id].attempts
        again = sealed.attempt >= len(past) and sealed.tool.effect is not Effect.EFFECT
        if past and not again:
            recorded = past[min(sealed.attempt, len(past) - 1)].observation
            if recorded is not None:
                return recorded
        if sealed.tool.effect is Effect.EFFECT and (past or call_id in self._running):
            return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        return await self._run(sealed, attempt=len(past))

    async def _run(self, sealed: SealedCall, *, attempt: int) -> Observation:
        call, tool = sealed.call, sealed.tool
        key = f"{self._key_prefix}{call.id}"
        pure = tool.effect is Effect.PURE
        digest = "" if pure else CallDigest(call, self.decider.digest_key)
        started = ToolStarted(call.id, tool.name, tool.effect, key, digest, tool.polling)
        context = self._running[call.id] = ToolContext(
            call.id,
            tool.name,
            idempotency_key=key,
            attempt=attempt + 1,
            deps=self._deps,
            agent=self._agent,
            on_update=self.teller.update(call.id),
            on_late=self._warn,
        )
        try:
            await self._conversation.commit(started)
            if self._keeper is None:
                observation = await execute(tool, call, context)
            else:
                observation = await self._kept(tool, call, context, self._keeper)
        except StopRun as stop:
            said = Observation.of(stop.text or "This call ended the run.")
            seconds = self._conversation.lap()
            await self._conversation.commit(ToolFinished(call.id, attempt, said, seconds))
            raise
        finally:
            self._running.pop(call.id, None)
        if observation.status is Status.CANCELLED and tool.effect is Effect.EFFECT:
            observation = Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        finished = ToolFinished(call.id, attempt, observation, self._conversation.lap())
        cancelled = context.swallowed_cancel  # the tool finished all the same: its outcome is kept
        if cancelled or self._is_layered:
            await self._conversation.commit(finished)
        else:
            self._conversation.ride(finished)  # nothing awaits between here and `observed`
        if cancelled:
            await raise_cancelled()
        return observation

    async def _kept(
        self, tool: Tool, call: ToolCall, context: ToolContext, keeper: Keeper
    ) -> Observation:
        """Run the tool; what is too large for a record is put into the store."""
        wholes = Wholes()
        observation = await execute(tool, call, context, keep=wholes.note)
        try:
            return await keeper.observation(observation, wholes, warn=self._warn)
        except get_cancelled_exc_class():  # a native one pierces the shield
            context.swallowed_cancel = True
            return unkept(observation, wholes)

    def _warn(self, text: str) -> None:
        self._watchers.tell(Warned, text)

    def cancel(self, call_id: str) -> bool:
        """Cancel one running call; the loop goes on. False if it does not run."""
        context = self._running.get(call_id)
        if context is not None:
            context.cancel()
        return context is not None

    def cancel_all(self) -> None:
        """Cancel every running call; the loop goes on."""
        for call_id in tuple(self._running):
            self.cancel(call_id)

    # -- observe ---------------------------------------------------------------------------------

    async def _execute(self, call: CallState, sealed: SealedCall) -> None:
        if stops_batch(self._conversation.state, self._rules):
            return  # an interrupt or a steering message came while the batch was decided
        try:
            observation = await self._steps.acting(sealed)
            if self._hooks.after_tool is not None and call.attempts:
                answer = await settled(self._hooks.after_tool(sealed.call, observation))
                observation = observation if answer is None else answer
        except (CommitFailed, StopRun):
            raise
        except Exception as error:  # a layer's own code
            observation = after_failure(call, error)
        if type(observation) is not Observation:  # an untyped layer may return anything
            culprits = self._steps.layers or "the after_tool hook"
            problem = TypeError(f"a layer returned {observation!r}; one of {culprits}")
            observation = after_failure(call, problem)
        if not call.attempts and self._was_not_reached(observation):
            text = f"{NOT_REACHED} Layers: {self._steps.layers}."
            observation = Observation.of(text, Status.FAILED)
        if self._keeper is not None and self._is_layered:  # what a layer put in
            observation = await self._keeper.observation(observation, Wholes(), warn=self._warn)
        await self._close(call, observation)
        self.teller.end(call)

    def _was_not_reached(self, observation: Observation) -> bool:
        return observation.status is Status.OK and not self._steps.acting_is_replaced

    def _close(self, call: CallState, observation: Observation, *before: Record) -> Awaitable[None]:
        observed = Observed(call.call.id, observation, new_id("m"))
        return self._conversation.commit(*before, observed)


def _tool_of(ready: tuple[CallState, SealedCall]) -> Tool:
    return ready[1].tool
