"""The layer that decides which calls may run: ToolGuardMixin."""

from __future__ import annotations

from typing import Any

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, Verdict
from callboard.messages import ToolCall
from callboard.turnstile import Turnstile
from callboard_mixins.checked import check_given
from callboard_mixins.tool_guard.policy import GuardPolicy, Judgement, Kind

DEFAULT_POLICY = GuardPolicy()


class ToolGuardMixin(ReActAgent):
    """Judges every call as it would run, after all layers inside have made of it what they will.

    What the policy denies is refused with the rule's reason, and the model goes on. What it asks
    about waits for a human: in place where `approver=` is given, else the run parks. A call that a
    human approved is judged again before it runs, and a rule that denies it by then has the last
    word. Whatever goes wrong in here denies.

    Without a `policy` everything is asked about. A layer that changes calls may stand on either
    side; one outside can only be stricter.
    """

    def __init__(self, *, policy: GuardPolicy | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._tool_guard_policy = DEFAULT_POLICY if policy is None else policy
        check_given("policy", self._tool_guard_policy, GuardPolicy)
        self._tool_guard_lock = Turnstile()  # held for a decision, never for a tool or a human

    @property
    def guard_policy(self) -> GuardPolicy:
        """What the guard goes by."""
        return self._tool_guard_policy

    async def set_guard_policy(self, policy: GuardPolicy) -> None:
        """Go by another policy from the next decision on, behind one that is being made.

        Raises:
            ConfigurationError: it is no policy; the old one stays.
        """
        check_given("policy", policy, GuardPolicy)
        async with self._tool_guard_lock:
            self._tool_guard_policy = policy

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed):
            return verdict
        async with self._tool_guard_lock:
            judgement = self._tool_guard_judged(verdict)
        match judgement.kind:
            case Kind.AUTO_DENIED:
                return Deny(judgement.reason, judgement.rule)
            case Kind.NEEDS_APPROVAL:
                told = tuple([f"{one.category}: {one.text}" for one in judgement.findings])
                return verdict.ask(judgement.reason, rule=judgement.rule, findings=told)
            case Kind.PREAPPROVED | Kind.UNGUARDED:
                return verdict

    def _tool_guard_judged(self, verdict: Proceed) -> Judgement:
        sealed = verdict.call
        try:
            return self._tool_guard_policy.judge(sealed.call, sealed.tool)
        except Exception as error:  # what fails in a guard denies
            reason = f"the guard could not judge this call ({type(error).__name__}: {error})"
            return Judgement(Kind.AUTO_DENIED, reason)
