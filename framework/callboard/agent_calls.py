"""Calls of agents as tools: what a sub-agent is handed, what is made of its reply, and its tool.

All of it is data, so that it may travel in a letter. `agent_tool.py` is the side of the sub-agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from callboard.actors.address import Address
from callboard.approval_lane import ApprovalLane
from callboard.approvals import Approval, CallWaits
from callboard.closing import UNKNOWN
from callboard.messages import Observation, Status
from callboard.plain import plain
from callboard.replies import Outcome, Reply
from callboard.tooling.tool_context import ToolContext
from callboard.tooling.tools import Effect, Tool

_ANSWERS = frozenset({Outcome.FINISHED, Outcome.STOPPED, Outcome.MAX_ITERS, Outcome.BUDGET})


@plain
class Told:
    """What became above of a question that the sub-agent asked. `is_closed`: its call has ended."""

    approval: Approval
    is_closed: bool


@plain
class AgentCall:
    """One call of an agent as a tool. The same `run_id` is the same run, however often it comes.

    `is_again`: the call was entered before, maybe in another process. `told` is what the sub-agent
    asked above so far, with the answers.
    """

    run_id: str
    task: str
    is_again: bool = False
    told: tuple[Told, ...] = ()


class Below(Protocol):
    """A sub-agent, here or behind a mailbox, as the one above it sees it."""

    @property
    def address(self) -> Address: ...

    async def called(self, call: AgentCall) -> Reply | None:
        """Bring the run of this call to its end, or to where it waits; None: it was forgotten.

        Raises what `run` raises.
        """
        ...

    async def hear(self, told: tuple[Told, ...]) -> None:
        """Take over what was answered above; a run whose call is closed is stopped."""
        ...


class SubAgent:
    """A sub-agent as the tool of an agent above it."""

    __slots__ = ("below",)

    def __init__(self, below: Below) -> None:
        self.below = below

    def tool(self, *, name: str, description: str) -> Tool:
        return Tool.from_schema(
            name=name,
            description=description,
            parameters=_parameters(),
            run=self._run,
            effect=Effect.IDEMPOTENT,
            timeout_s=None,
        )

    async def stop_for(self, above: ApprovalLane) -> None:
        """Calls of the agent above were closed: stop what still waits on behalf of them."""
        told = told_by(above, self.below.address)
        if told:
            await self.below.hear(told)

    async def _run(self, arguments: Mapping[str, Any], context: ToolContext) -> Observation:
        above: ApprovalLane = context.agent
        run = above._conversation.state.run
        reply = await self.below.called(
            AgentCall(
                f"{run.run_id if run is not None else ''}/{context.call_id}",
                arguments["task"],
                is_again=context.attempt > 1,
                told=told_by(above, self.below.address),
            )
        )
        if reply is None:
            return Observation.of(UNKNOWN, Status.UNKNOWN_OUTCOME)
        if reply.outcome is Outcome.AWAITING_APPROVAL:
            path = str(self.below.address)
            raise CallWaits(*[replace(one, path=(*one.path, path)) for one in reply.pending])
        return _observed(reply)


def told_by(above: ApprovalLane, address: Address) -> tuple[Told, ...]:
    """What an agent can tell a sub-agent of its questions, answered or not."""
    open_calls = {call.call.id for call in above._conversation.state.open_calls}
    asked = above.asked_through(address)
    return tuple([Told(one, is_closed=one.call_id not in open_calls) for one in asked])


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
