"""A reference to an actor: what others hold of it. It stays good when the actor is put away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from callboard.actors.address import Address
from callboard.actors.bus import Bus
from callboard.agent import ReActAgent
from callboard.approvals import Approval
from callboard.errors import ConfigurationError
from callboard.journaling.records import Queued
from callboard.replies import PromptLike
from callboard.seated import GoOn
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

    def ask(self, payload: Any, *, timeout_s: float | None = None) -> Coroutine[Any, Any, Any]:
        """Send, and wait for the answer: for an agent its Reply. See `Bus.ask` for the errors."""
        return self._bus.ask(self.address, payload, timeout_s=timeout_s or self._timeout_s)

    def tell(self, payload: Any) -> Coroutine[Any, Any, None]:
        """Send, and wait for no answer. See `Bus.tell` for the errors."""
        return self._bus.tell(self.address, payload)

    # -- the control lane of agents --------------------------------------------------------------

    async def steer(self, message: PromptLike, *, wake: bool = True) -> str:
        """`agent.steer`, and an idle agent takes the message up at once unless `wake=False`."""
        agent = await self._agent()
        item = await agent.steer(message, wake=wake)
        return await self._woken(agent, item, wake=wake)

    async def follow_up(self, message: PromptLike) -> str:
        """`agent.follow_up`, and an idle agent takes the message up at once."""
        agent = await self._agent()
        return await self._woken(agent, await agent.follow_up(message), wake=True)

    async def _woken(self, agent: ReActAgent, item: str, *, wake: bool) -> str:
        if wake and not agent.is_busy:
            await self.tell(GoOn())
        return item

    async def withdraw(self, item_id: str) -> bool:
        """`agent.withdraw`."""
        return await (await self._agent()).withdraw(item_id)

    async def interrupt(self, *, clear: bool = False) -> tuple[Queued, ...]:
        """`agent.interrupt`: the run that goes on ends with outcome `interrupted`."""
        return await (await self._agent()).interrupt(clear=clear)

    async def pending(self) -> tuple[Approval, ...]:
        """The approvals that wait for an answer, those of sub-agents too."""
        agent = await self._agent()
        await agent.opened()
        return agent.pending

    async def approve(self, approval_id: str, *, by: str) -> bool:
        """`agent.approve`, and the run goes on; `system.result(run_id)` has its reply."""
        return (await (await self._agent()).approve(approval_id, by=by)) and await self._go_on()

    async def deny(self, approval_id: str, *, reason: str = "", by: str) -> bool:
        """`agent.deny`, and the run goes on; `system.result(run_id)` has its reply."""
        agent = await self._agent()
        return (await agent.deny(approval_id, reason=reason, by=by)) and await self._go_on()

    async def _go_on(self) -> bool:
        await self.tell(GoOn())
        return True

    @asynccontextmanager
    async def stream(self, prompt: PromptLike) -> AsyncGenerator[EventStream, None]:
        """`agent.stream`: the run takes its turn among those of the mailbox."""
        agent = await self._agent()
        async with agent.stream(prompt) as events:
            yield events

    async def _agent(self) -> ReActAgent:
        actor = await self._bus.actor(self.address)
        if not isinstance(actor, ReActAgent):
            raise ConfigurationError(f"{self.address} is no agent but a {type(actor).__name__}")
        return actor
