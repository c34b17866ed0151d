"""The control lane of agents: words that never wait behind a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.replies import Prompt


def agent_of(actor: Actor, address: Address) -> ReActAgent:
    """The actor, as an agent.

    Raises:
        ConfigurationError: it is none.
    """
    if not isinstance(actor, ReActAgent):
        raise ConfigurationError(f"{address} is no agent but a {type(actor).__name__}")
    return actor


async def perform(
    agent: ReActAgent, verb: str, words: Mapping[str, Any], *, item_id: str | None = None
) -> tuple[Any, bool]:
    """Do what was said to an agent. Returns the answer, and whether the agent has to be told to
    go on. `item_id` is the id of what is queued.

    Raises:
        ConfigurationError: there is no such verb. What the agent's method raises.
    """
    match verb:
        case "steer" | "follow_up":
            return await _queue(agent, verb, words, item_id)
        case "withdraw":
            return await agent.withdraw(words["item_id"]), False
        case "interrupt":
            return await agent.interrupt(clear=words.get("clear", False)), False
        case "pending":
            return (await agent.opened()).approvals, False
        case "messages":
            await agent.opened()
            return agent.messages, False
        case "approve" | "deny" | "answer":
            said = {key: value for key, value in words.items() if key != "approval_id"}
            done: bool = await getattr(agent, verb)(words["approval_id"], **said)
            # also where it was answered before: by a process that died before it had told so
            return done, done or agent.state.run_id is not None
        case "hear":
            await agent.hear(words["told"])
            return None, False
        case "cancel_run":
            run = (await agent.opened()).run_id
            if run is not None and run == words["run_id"]:
                await agent.interrupt()
            return None, False
        case _:
            raise ConfigurationError(f"there is no word {verb!r} on the control lane")


async def _queue(
    agent: ReActAgent, verb: str, words: Mapping[str, Any], item_id: str | None
) -> tuple[str, bool]:
    message = Prompt.of(words["message"]).messages
    if verb == "steer":
        wake = bool(words.get("wake", True))
        item = await agent.steer(message, wake=wake, id=item_id)
    else:
        wake = True
        item = await agent.follow_up(message, id=item_id)
    return item, wake and not agent.is_busy
