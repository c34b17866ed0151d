"""A reference to an actor: what others hold of it. It stays good when the actor is put away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from callboard.actors.actor_tool import BelowRef
from callboard.actors.address import Address
from callboard.actors.bus import Bus
from callboard.actors.control import agent_of
from callboard.agent_calls import SubAgent
from callboard.approvals import Approval, GrantScope
from callboard.journaling.records import Queued
from callboard.messages import ConversationMessage
from callboard.replies import PromptLike
from callboard.tooling.tools import Tool
from callboard.watching import EventStream

ASK_TIMEOUT_S = 60.0


class Ref:
    """Sends to one address. Equal to every other reference to that address in the system.

    `ask` and `tell` are for all actors. The others are for agents, and never wait behind what is
    in the mailbox; they raise ConfigurationError where another kind of actor is.
    """

    __slots__ = ("_bus", "_timeout_s", "address")

    def __init__(self, address: Address, bus: Bus, *, timeout_s: float = ASK_TIMEOUT_S) -> None:
        self.address = address
        self._bus = bus
        self._timeout_s = timeout_s

    def __repr__(self) -> str:
        return f"Ref({self.address})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and (other.address, other._bus) == (self.address, self._bus)

    def __hash__(self) -> int:
        return hash(self.address)

    def ask(
        self,
        payload: Any,
        *,
        timeout_s: float | None = None,
        id: str | None = None,
        detached: bool = False,
    ) -> Coroutine[Any, Any, Any]:
        """Send, and wait for the answer: for an agent its Reply. See the bus for the errors.

        `id`, where an engine keeps letters: the same id is asked once, also after a restart.
        `detached`: the actor goes on with it where you give up, and spends nothing of your budget.
        """
        within_s = timeout_s or self._timeout_s
        return self._bus.ask(self.address, payload, timeout_s=within_s, id=id, detached=detached)

    def tell(
        self, payload: Any, *, after_s: float = 0.0, id: str | None = None
    ) -> Coroutine[Any, Any, None]:
        """Send, and wait for no answer; so many seconds later, if you like. See `ask` for `id`."""
        return self._bus.tell(self.address, payload, after_s=after_s, id=id)

    def as_tool(self, *, name: str | None = None, description: str) -> Tool:
        """The agent at this address as a tool of another one, as `agent.as_tool`: a `task` in, the
        text of its reply out. Each call is a letter; the agent is made by the first one if need
        be, and what it asks a human is asked, and answered, at the agent above.
        """
        below = BelowRef(self.address, self._bus)
        return SubAgent(below).tool(name=name or self.address.key, description=description)

    # -- the control lane of agents --------------------------------------------------------------

    async def steer(self, message: PromptLike, *, wake: bool = True) -> str:
        """`agent.steer`, and an idle agent takes the message up at once unless `wake=False`."""
        item: str = await self._bus.control(self.address, "steer", message=message, wake=wake)
        return item

    async def follow_up(self, message: PromptLike) -> str:
        """`agent.follow_up`, and an idle agent takes the message up at once."""
        item: str = await self._bus.control(self.address, "follow_up", message=message)
        return item

    async def withdraw(self, item_id: str) -> bool:
        """`agent.withdraw`."""
        done: bool = await self._bus.control(self.address, "withdraw", item_id=item_id)
        return done

    async def interrupt(self, *, clear: bool = False) -> tuple[Queued, ...]:
        """`agent.interrupt`: the run that goes on ends with outcome `interrupted`."""
        waiting: Sequence[Queued] = await self._bus.control(self.address, "interrupt", clear=clear)
        return tuple(waiting)

    async def pending(self) -> tuple[Approval, ...]:
        """The approvals that wait for an answer, those of sub-agents too."""
        waiting: Sequence[Approval] = await self._bus.control(self.address, "pending")
        return tuple(waiting)

    async def messages(self) -> tuple[ConversationMessage, ...]:
        """`agent.messages`: the conversation so far."""
        said: Sequence[ConversationMessage] = await self._bus.control(self.address, "messages")
        return tuple(said)

    async def approve(
        self, approval_id: str, *, by: str, scope: GrantScope | str = GrantScope.ONCE
    ) -> bool:
        """`agent.approve`, and the run goes on; `system.result(run_id)` has its reply."""
        done: bool = await self._bus.control(
            self.address, "approve", approval_id=approval_id, by=by, scope=str(scope)
        )
        return done

    async def deny(self, approval_id: str, *, reason: str = "", by: str) -> bool:
        """`agent.deny`, and the run goes on; `system.result(run_id)` has its reply."""
        done: bool = await self._bus.control(
            self.address, "deny", approval_id=approval_id, reason=reason, by=by
        )
        return done

    async def answer(self, approval_id: str, text: str, *, by: str) -> bool:
        """`agent.answer`, and the run goes on; `system.result(run_id)` has its reply."""
        done: bool = await self._bus.control(
            self.address, "answer", approval_id=approval_id, text=text, by=by
        )
        return done

    @asynccontextmanager
    async def stream(self, prompt: PromptLike) -> AsyncGenerator[EventStream, None]:
        """`agent.stream`: the run takes its turn among those of the mailbox."""
        agent = agent_of(await self._bus.actor(self.address), self.address)
        async with agent.stream(prompt) as events:
            yield events
