"""Hand-off: one conversation that goes from agent to agent, with all that was said so far.

An agent that should not go on calls its `handoff` tool, which ends its run. The `Desk`, to which
the user talks, gives the closed conversation to the one that was named, and has it go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anyio import Lock

from callboard.actors.ref import Ref
from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.messages import AssistantMessage, ConversationMessage, Observation
from callboard.replies import Outcome, PromptLike, Reply
from callboard.seated import GoOn
from callboard.taking_over import TakeOver
from callboard.teams import answered
from callboard.tooling.tool_context import ToolContext
from callboard.tooling.tools import Effect, Tool

MOST = 5  # hand-offs for one prompt


def handoff(to: Mapping[str, str]) -> Tool:
    """The tool with which an agent hands its conversation over: names, and what each is for.

    The names are those of the agent's `Desk`; without one the run just ends with the call. The
    last hand-off of a run counts. Who calls another tool beside it reads the results and answers
    itself; then the next prompt goes to the new one.
    """
    if not to:
        raise ConfigurationError("handoff({}) names nobody to hand the conversation over to")
    known = "\n".join([f"- {name}: {purpose}" for name, purpose in to.items()])
    return Tool.from_schema(
        name="handoff",
        description="Hand the conversation over to somebody else, who goes on with it and has"
        f" read all of it. Call no other tool with it.\n{known}",
        parameters=_parameters(to),
        run=_handed_off,
        effect=Effect.PURE,
        terminate=True,
    )


class Desk:
    """Where a user talks to whichever agent has the conversation now: `holder` is its name.

    Each agent has its own system prompt and tools, and gets the messages as they are; agents that
    keep media in a store need the same one. An agent belongs to one conversation. One prompt may
    take `most` hand-offs: with another one the reply has outcome `budget` and the limit
    `handoffs=5`, and the last holder keeps the conversation.
    """

    def __init__(
        self, members: Mapping[str, ReActAgent | Ref], *, holder: str, most: int = MOST
    ) -> None:
        self._members = dict(members)
        self._most = most
        self._turn = Lock(fast_acquire=True)
        self._member(holder)
        self.holder = holder

    async def run(self, prompt: PromptLike) -> Reply:
        """Have the holder answer, and those to whom it hands over. Prompts queue up.

        Where the reply waits for a human, answer at the holder, then `resume` here.

        Raises:
            ConfigurationError: somebody was named who is not at this desk, or who has another
                conversation; the holder stays. What the agents and the bus raise; the
                conversation stays with the one that raised.
        """
        async with self._turn:
            return await self._followed(await answered(self._member(self.holder), prompt))

    async def resume(self) -> Reply:
        """Go on where the holder stands, as `agent.resume`, and follow its hand-offs."""
        async with self._turn:
            return await self._followed(await _resumed(self._member(self.holder)))

    async def _followed(self, reply: Reply) -> Reply:
        for _ in range(self._most):
            name = _handed_to(reply)
            if name is None:
                return reply
            member = self._member(name)
            messages = await _messages(self._member(self.holder))
            await _given(member, messages)
            self.holder = name
            if isinstance(messages[-1], AssistantMessage):
                return reply  # it has answered, too
            reply = await _resumed(member)
        if _handed_to(reply) is None:
            return reply
        return replace(reply, outcome=Outcome.BUDGET, limit=f"handoffs={self._most}")

    def _member(self, name: str) -> ReActAgent | Ref:
        found = self._members.get(name)
        if found is None:
            there = ", ".join(self._members) or "nobody"
            raise ConfigurationError(f"{name!r} is not at this desk; there: {there}")
        return found


def _parameters(to: Mapping[str, str]) -> dict[str, Any]:
    why = {"type": "string", "description": "Why, and what is to be done, for the one who goes on."}
    return {
        "type": "object",
        "properties": {"to": {"type": "string", "enum": list(to)}, "why": why},
        "required": ["to"],
        "additionalProperties": False,
    }


async def _handed_off(arguments: Mapping[str, Any], context: ToolContext) -> Observation:
    name = arguments["to"]
    told = Observation.of(f"{name} goes on with the conversation from here.")
    return replace(told, payload={"handoff_to": name})


def _handed_to(reply: Reply) -> str | None:
    """Whom a run that is over has handed the conversation to."""
    if reply.outcome is not Outcome.FINISHED:
        return None
    for message in reversed(reply.messages):
        match getattr(message, "payload", None):
            case {"handoff_to": str(name)}:
                return name
            case _:
                continue
    return None


async def _messages(member: ReActAgent | Ref) -> tuple[ConversationMessage, ...]:
    if isinstance(member, Ref):
        return await member.messages()
    await member.opened()
    return member.messages


async def _given(member: ReActAgent | Ref, messages: tuple[ConversationMessage, ...]) -> None:
    if isinstance(member, Ref):
        await member.ask(TakeOver(messages))
    else:
        await member.take_over(messages)


async def _resumed(member: ReActAgent | Ref) -> Reply:
    reply: Reply = await (member.ask(GoOn()) if isinstance(member, Ref) else member.resume())
    return reply
