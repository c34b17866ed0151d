"""What the tests of approvals share: a guard that asks, an agent behind it, and short answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, Verdict
from callboard.approving import Approver
from callboard.messages import ToolCall
from callboard.testing import ScriptedModel, call
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import Tool
from tests.framework.kit import Ledger, agent_of, echo


class GuardMixin(ReActAgent):
    """Asks for `charge`, denies `boom`, lets the rest go."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed):
            return verdict
        if verdict.call.name == "boom":
            return Deny("never", rule="no-boom")
        return verdict.ask("costs money", rule="r1") if call.name == "charge" else verdict


def guarded(
    *script: ScriptItem,
    ledger: Ledger | None = None,
    more: Sequence[Tool | Callable[..., Any]] = (),
    slow: bool = False,
    key: bytes | None = None,
    approver: Approver | None = None,
    **options: Any,
) -> tuple[ReActAgent, ScriptedModel, Ledger]:
    """An agent on this script behind the guard, its model, and what its tools did."""
    ledger = ledger or Ledger()
    options |= {"kind": GuardMixin, "digest_key": key, "approver": approver}
    slower = (ledger.slow,) if slow else ()
    agent, model = agent_of(script, ledger.charge, echo, *more, *slower, **options)
    return agent, model, ledger


def charge(id: str, amount: int = 1) -> Any:
    return call("charge", id, amount=amount)


async def answer(agent: ReActAgent, call_id: str, *, yes: bool, reason: str = "") -> bool:
    """Answer the question about this call, as amy."""
    asked = next(a for a in agent.pending if a.call_id == call_id)
    if yes:
        return await agent.approve(asked.id, by="amy")
    return await agent.deny(asked.id, reason=reason, by="amy")
