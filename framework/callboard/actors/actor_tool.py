"""An agent behind a mailbox as a tool of another one: what `ref.as_tool` gives."""

from __future__ import annotations

from contextlib import suppress
from math import inf

import anyio
from anyio import get_cancelled_exc_class

from callboard.actors.address import Address
from callboard.actors.bus import Bus
from callboard.agent import ReActAgent
from callboard.agent_calls import AgentCall, Told
from callboard.errors import ActorError, AskTimeout, ConfigurationError
from callboard.replies import Reply

ENDING_S = 10.0  # what the run of a cancelled call may take to its end, shielded


class BelowRef:
    """A sub-agent that is reached by address, made by the first call if need be.

    A call is a letter like any other; only what was answered above, and the wait for a cancelled
    run, go past the mailbox.
    """

    __slots__ = ("_bus", "address")

    def __init__(self, address: Address, bus: Bus) -> None:
        self.address = address
        self._bus = bus

    async def called(self, call: AgentCall) -> Reply | None:
        """Ask; the deadline is that of the one who asked the agent above, if there is one.

        Raises:
            ConfigurationError: no agent is there. What the run and the bus raise.
        """
        try:
            answer: object = await self._bus.ask(self.address, call, timeout_s=inf)
        except AskTimeout:  # whoever asked the agent above gives up now, and cancels this
            await anyio.sleep(ENDING_S)
            raise
        except get_cancelled_exc_class():
            with anyio.move_on_after(ENDING_S, shield=True):
                await self._ended(call.run_id)
            raise
        if answer is None or isinstance(answer, Reply):
            return answer
        raise ConfigurationError(
            f"{self.address} is no agent: it answered a call with a {type(answer).__name__}"
        )

    async def _ended(self, run_id: str) -> None:
        """Wait for the end of a run, which the bus has cancelled."""
        with suppress(ActorError, ConfigurationError):  # it is gone, or runs elsewhere
            actor = await self._bus.actor(self.address)
            if isinstance(actor, ReActAgent):
                await actor.left(run_id)

    async def hear(self, told: tuple[Told, ...]) -> None:
        await self._bus.control(self.address, "hear", told=told)
