"""The run of one sealed call: the intent is journaled, the tool runs, its outcome is journaled.

The middle of a call's life, which `tool_run.py` tells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from anyio import get_cancelled_exc_class

from callboard.approvals import CallDigest, CallWaits, SealedCall
from callboard.call_events import CallTeller
from callboard.closing import NO_TIME, NOT_DECIDED, STOPPED, UNKNOWN
from callboard.errors import StopRun
from callboard.journaling.conversation import Conversation
from callboard.journaling.keeping import Keeper, unkept
from callboard.journaling.records import ToolFinished, ToolStarted
from callboard.journaling.transcript import Attempt
from callboard.messages import Observation, Status, ToolCall
from callboard.tooling.deadlines import raise_cancelled
from callboard.tooling.execution import execute
from callboard.tooling.results import Keep
from callboard.tooling.tools import Effect, Tool, ToolContext

# Members of an enum take 0.15 us to look up.
_CANCELLED = Status.CANCELLED
_PURE, _EFFECT = Effect.PURE, Effect.EFFECT


class Execute(Protocol):
    """Runs a tool once and says what came of it: `tooling.execution.execute`."""

    async def __call__(
        self, tool: Tool, call: ToolCall, context: ToolContext, *, keep: Keep | None = None
    ) -> Observation: ...


class Performer:
    """Runs the sealed calls of one agent, and knows which of them run now.

    `seals` are the calls that may run. `commits_outcome` says that layers come between a tool's
    outcome and what the model sees of it, so that the outcome must be journaled before. `left_s`
    tells the active seconds that the budget leaves, where it limits them: a tool that has a
    deadline gets no more. `execute` runs a tool; a replay gives what is recorded in its place.
    """

    __slots__ = (
        "_agent",
        "_commits_outcome",
        "_conversation",
        "_deps",
        "_digest_key",
        "_is_layered",
        "_keeper",
        "_key_prefix",
        "_running",
        "_seals",
        "_teller",
        "_warn",
        "execute",
        "left_s",
    )

    def __init__(
        self,
        conversation: Conversation,
        *,
        seals: dict[str, SealedCall],
        teller: CallTeller,
        warn: Callable[[str], None],
        keeper: Keeper | None,
        digest_key: bytes,
        key_prefix: str,
        commits_outcome: bool,
        deps: Any,
        agent: Any,
    ) -> None:
        self._conversation = conversation
        self._seals = seals
        self._teller = teller
        self._warn = warn
        self._keeper = keeper
        self._digest_key = digest_key
        self._key_prefix = key_prefix
        self._commits_outcome = commits_outcome
        self._is_layered = commits_outcome or conversation.layers is not None
        self._deps = deps
        self._agent = agent
        self._running: dict[str, ToolContext] = {}
        self.left_s: Callable[[], float] | None = None
        self.execute: Execute = execute

    async def perform(self, sealed: SealedCall) -> Observation:
        """The root's `_acting`: run a sealed call, or give back the outcome that is recorded.

        Journals the intent first. A copy of a sealed call is refused.
        """
        call, tool = sealed.call, sealed.tool
        round = self._conversation.state.round
        seal = self._seals.get(call.id)
        if round is None or not (sealed is seal or sealed.is_from(seal)):
            return Observation.of(NOT_DECIDED, Status.DENIED)
        past = round.calls[call.id].attempts
        if past or call.id in self._running:
            known = _known(sealed, past)
            if known is not None:
                return known
        attempt = len(past)
        context = self._running[call.id] = self._context(call.id, tool, attempt)
        if self.left_s is not None and tool.timeout_s is not None:
            left_s = self.left_s()
            if left_s <= 0:
                self._running.pop(call.id)
                return Observation.of(NO_TIME, Status.SKIPPED)
            tool = replace(tool, timeout_s=min(left_s, tool.timeout_s))
        try:
            intent = self._intent(call, tool, context.idempotency_key)
            if tool.effect is _PURE and self._may_forget(tool):
                self._conversation.ride(intent)  # a commit less, which is a third of them
            else:
                await self._conversation.commit(intent)
            if self._keeper is None:
                observation = await self.execute(tool, call, context)
            else:
                observation = await self._kept(tool, call, context, self._keeper)
        except StopRun as stop:
            await self._note_end(call.id, attempt, stop)
            raise
        finally:
            self._running.pop(call.id, None)
        if observation.status is _CANCELLED and tool.effect is _EFFECT:
            observation = Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        finished = ToolFinished(call.id, attempt, observation, self._conversation.lap())
        cancelled = context.swallowed_cancel  # the tool finished all the same: its outcome is kept
        if cancelled or self._commits_outcome:
            await self._conversation.commit(finished)
        else:
            self._conversation.ride(finished)  # nothing awaits between here and `observed`
        if cancelled:
            await raise_cancelled()
        return observation

    def _may_forget(self, tool: Tool) -> bool:
        """Whether a crash may forget that a pure tool was started: then it is run again anyway.

        Not where layers look at records or at what the call has come to, nor where the answer of
        the model would stay unwritten for as long as the tool takes.
        """
        is_short = tool.is_at_once or not self._conversation.is_ahead
        return is_short and not self._is_layered

    async def _note_end(self, call_id: str, attempt: int, stop: StopRun) -> None:
        """A tool that ends the run has done its work; one that waits for a human has not."""
        if not isinstance(stop, CallWaits):
            said = Observation.of(stop.text or STOPPED)
            seconds = self._conversation.lap()
            await self._conversation.commit(ToolFinished(call_id, attempt, said, seconds))

    def _context(self, call_id: str, tool: Tool, attempt: int) -> ToolContext:
        return ToolContext(
            call_id,
            tool.name,
            idempotency_key=f"{self._key_prefix}{call_id}",
            attempt=attempt + 1,
            deps=self._deps,
            agent=self._agent,
            on_update=self._teller.update(call_id),
            on_late=self._warn,
        )

    def _intent(self, call: ToolCall, tool: Tool, key: str) -> ToolStarted:
        digest = "" if tool.effect is _PURE else CallDigest(call, self._digest_key)
        return ToolStarted(call.id, tool.name, tool.effect, key, digest, tool.polling)

    async def _kept(
        self, tool: Tool, call: ToolCall, context: ToolContext, keeper: Keeper
    ) -> Observation:
        """Run the tool; what is too large for a record is put into the store."""
        wholes = keeper.wholes()
        observation = await self.execute(tool, call, context, keep=wholes.note)
        try:
            return await keeper.observation(observation, wholes, warn=self._warn)
        except get_cancelled_exc_class():  # a native one pierces the shield
            context.swallowed_cancel = True
            return unkept(observation, wholes)

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


def _known(sealed: SealedCall, past: list[Attempt]) -> Observation | None:
    """The outcome of a call that was started before; None where it may run (again)."""
    is_effect = sealed.tool.effect is _EFFECT
    if past and (is_effect or sealed.attempt < len(past)):
        recorded = past[min(sealed.attempt, len(past) - 1)].observation
        if recorded is not None:
            return recorded
    return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME) if is_effect else None
