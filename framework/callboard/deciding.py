"""May a call run, and as what? The hook, the layers, the seal and standing approvals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from callboard.approvals import (
    Approval,
    Ask,
    Deny,
    GrantScope,
    Proceed,
    SealedCall,
    Verdict,
    call_digest,
)
from callboard.approving import ApprovalPolicy
from callboard.errors import CommitFailed, StopRun
from callboard.hooks import BeforeTool, settled
from callboard.journaling.conversation import Conversation
from callboard.messages import Observation, ToolCall, new_id
from callboard.tooling.toolbox import Toolbox

ASKED_AGAIN = (
    "a human approved this call, and a layer asked about it again: it must return "
    "verdict.ask(reason), which lets an approved call pass"
)

Step = Callable[[ToolCall], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Steps:
    """The agent's outermost steps around a call, and the names of all steps that layers have."""

    deciding: Callable[[ToolCall], Awaitable[Verdict]]
    acting: Callable[[SealedCall], Awaitable[Observation]]
    layered: tuple[str, ...]
    acting_is_replaced: bool
    layers: str  # those around `_acting`, for an error that must name a culprit


class Decider:
    """Decides the calls of one agent, one after another. `seals` are the calls that may run."""

    __slots__ = ("_before", "_conversation", "_step", "asking", "digest_key", "seals", "toolbox")

    def __init__(
        self,
        conversation: Conversation,
        *,
        step: Step,
        before: BeforeTool | None,
        toolbox: Toolbox,
        asking: ApprovalPolicy,
        digest_key: bytes,
    ) -> None:
        self._conversation = conversation
        self.asking = asking
        self._step = step
        self._before = before
        self.toolbox = toolbox
        self.digest_key = digest_key
        self.seals: dict[str, SealedCall] = {}

    async def decide(self, call: ToolCall, *, replayed: bool) -> tuple[ToolCall, Verdict]:
        """The call as the hook left it, and the verdict of all layers on it.

        Whatever goes wrong in a hook or a layer denies. The hook is not asked again about a call
        that a human answered.
        """
        call_id = call.id
        self.seals.pop(call_id, None)
        try:
            if self._before is not None and not replayed:
                answer = _checked(call, await settled(self._before(call)))
                if isinstance(answer, Deny):
                    return call, answer
                call = answer
            verdict = await self._step(call)
            sealed = type(verdict) is Proceed and verdict.call is self.seals.get(call_id)
            if sealed and not self._conversation.state.approvals:
                return call, verdict  # nearly every verdict there is
            return call, self._confirmed(verdict, call_id)
        except (CommitFailed, StopRun):
            raise
        except Exception as error:  # what fails in a guard denies
            return call, Deny(f"the call was not run, because deciding on it failed: {error}")

    def _confirmed(self, verdict: object, call_id: str) -> Verdict:
        """The verdict, if it holds the root's own seal and no approval stands against it."""
        if isinstance(verdict, Deny):
            return verdict
        if not isinstance(verdict, (Proceed, Ask)):  # an untyped layer may return anything
            return Deny(f"a layer answered {verdict!r}, which is no verdict")
        if verdict.call.id != call_id:
            return Deny("a layer answered about another call, so this one was not run")
        sealed = self.seals.get(call_id)
        if isinstance(verdict, Proceed) and verdict.call is not sealed:
            return Deny("a layer changed the call after it was decided, so it was not run")
        granted = self._granted(sealed.call) if sealed is not None else None
        if granted is None or sealed is None:
            return verdict
        if isinstance(verdict, Ask):
            return Deny(ASKED_AGAIN) if granted and verdict.call is sealed.call else verdict
        if granted or self._covered(sealed.call):
            return verdict
        return Ask(sealed.call, "what was approved is not what would run now")

    def _granted(self, call: ToolCall) -> bool | None:
        """Whether a human released exactly this call; None if nobody was asked about it.

        A call that changed is asked about again; the grant for what it was stays good.
        """
        state = self._conversation.state
        if not state.approvals or state.round is None or call.id not in state.round.calls:
            return None
        asked = [state.approvals[id] for id in state.round.calls[call.id].approval_ids]
        if not asked:
            return None
        digest = call_digest(call, key=self.digest_key)
        return any([one.grants(call.id, digest) for one in asked])

    def _covered(self, call: ToolCall) -> bool:
        """Whether what a human released for an earlier call was meant for this one, too."""
        state = self._conversation.state
        if not state.wide:
            return False
        digest = call_digest(call, key=self.digest_key)
        run_id = state.run.run_id if state.run is not None else None
        wide = [state.approvals[id] for id in state.wide]
        return any([one.covers(call, digest, run_id) for one in wide])

    def seal(self, call: ToolCall) -> Verdict:
        """The root's `_deciding`: check the arguments that came in, and seal the call."""
        tool = self.toolbox.get(call.name)
        if tool is None:
            return Deny(f"there is no tool {call.name!r}")
        checked = tool.check(call)
        if type(checked) is not ToolCall:
            return Deny(checked.text)
        sealed = self.seals[call.id] = SealedCall(checked, tool)
        if not self._conversation.state.approvals:
            return Proceed(sealed)
        return Proceed(sealed, granted=bool(self._granted(checked)) or self._covered(checked))

    def unseal(self, revoked: Approval) -> None:
        """Have the calls decided again that this approval released, and that have not started."""
        for sealed in tuple(self.seals.values()):
            digest = call_digest(sealed.call, key=self.digest_key)
            is_like_it = sealed.name == revoked.tool_name and (
                revoked.scope is GrantScope.TOOL_IN_RUN or digest == revoked.digest
            )
            if sealed.id == revoked.call_id or is_like_it:
                del self.seals[sealed.id]

    def approval(self, ask: Ask) -> Approval:
        """The question to a human that this verdict is."""
        run = self._conversation.state.run
        asked = Approval(
            id=new_id("approval"),
            run_id=run.run_id if run is not None else "",
            call_id=ask.call.id,
            tool_name=ask.call.name,
            digest=call_digest(ask.call, key=self.digest_key),
            preview=ask.call.arguments,
            reason=ask.reason,
            rule=ask.rule,
            findings=ask.findings,
            expires_at=ask.expires_at,
        )
        return self.asking.stamped(asked)


def _checked(call: ToolCall, answer: object) -> ToolCall | Deny:
    """What a before-hook made of the call: it may change the arguments and nothing else."""
    if answer is None:
        return call
    if isinstance(answer, Deny):
        return answer
    if not isinstance(answer, ToolCall) or (answer.id, answer.name) != (call.id, call.name):
        raise TypeError(
            f"a before_tool hook answered {answer!r}; return call.with_arguments(...), Deny or None"
        )
    return answer
