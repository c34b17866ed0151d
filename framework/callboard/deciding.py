"""May a call run, and as what? The hook, the layers, the seal and standing approvals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from callboard.approvals import (
    Approval,
    Ask,
    Deny,
    Proceed,
    SealedCall,
    Verdict,
    call_digest,
)
from callboard.conversation import Conversation
from callboard.errors import CommitFailed, StopRun
from callboard.hooks import BeforeTool, settled
from callboard.messages import ToolCall, new_id
from callboard.toolbox import Toolbox

Step = Callable[[ToolCall], Awaitable[Verdict]]


class Decider:
    """Decides the calls of one agent, one after another. `seals` are the calls that may run."""

    __slots__ = ("_before", "_conversation", "_step", "digest_key", "seals", "toolbox")

    def __init__(
        self,
        conversation: Conversation,
        *,
        step: Step,
        before: BeforeTool | None,
        toolbox: Toolbox,
        digest_key: bytes,
    ) -> None:
        self._conversation = conversation
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
        self.seals.pop(call.id, None)
        try:
            if self._before is not None and not replayed:
                answer = await settled(self._before(call))
                if isinstance(answer, Deny):
                    return call, answer
                call = answer or call
            verdict = await self._step(call)
        except (CommitFailed, StopRun):
            raise
        except Exception as error:  # what fails in a guard denies
            return call, Deny(f"the call was not run, because deciding on it failed: {error}")
        return call, self._confirmed(verdict, call.id)

    def _confirmed(self, verdict: object, call_id: str) -> Verdict:
        """The verdict, if it holds the root's own seal and no approval stands against it."""
        if isinstance(verdict, Deny):
            return verdict
        if not isinstance(verdict, (Proceed, Ask)):  # an untyped layer may return anything
            return Deny(f"a layer answered {verdict!r}, which is no verdict")
        sealed = self.seals.get(call_id)
        if isinstance(verdict, Proceed) and verdict.call is not sealed:
            return Deny("a layer changed the call after it was decided, so it was not run")
        approvals = self._conversation.state.approvals
        return self._as_answered(verdict, sealed, call_id) if approvals else verdict

    def _as_answered(
        self, verdict: Proceed | Ask, sealed: SealedCall | None, call_id: str
    ) -> Verdict:
        """The verdict in the light of what a human was asked about this call, and answered.

        A grant turns the question about exactly the granted call into a go; a call that differs
        from it asks again, whatever the layers say now.
        """
        state = self._conversation.state
        assert state.round is not None
        asked = state.round.calls[call_id].approval_id
        if asked is None or sealed is None:
            return verdict
        question = verdict.call if isinstance(verdict, Ask) else sealed.call
        digest = call_digest(sealed.call, key=self.digest_key)
        about_it = question is sealed.call or digest == call_digest(question, key=self.digest_key)
        if about_it and state.approvals[asked].grants(call_id, digest):
            return Proceed(sealed)
        if isinstance(verdict, Ask):
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
        sealed = self.seals[call.id] = SealedCall(checked, tool)
        return Proceed(sealed)

    def approval(self, ask: Ask) -> Approval:
        """The question to a human that this verdict is."""
        run = self._conversation.state.run
        return Approval(
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
