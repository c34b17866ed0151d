"""The layers of the histories. Each works in every order with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import anyio
from anyio.lowlevel import checkpoint

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, SealedCall, Verdict
from callboard.errors import ModelError
from callboard.journaling.conversation import R
from callboard.messages import (
    AssistantMessage,
    Observation,
    Status,
    TextBlock,
    ToolCall,
    UserMessage,
    blocks_of,
)
from callboard.model import ModelRequest
from callboard.replies import Outcome, Prompt, Reply

Sink = Callable[[Any], None]


def is_denied(name: str, x: int) -> bool:
    return x == 9


def is_asked(name: str, x: int) -> bool:
    return x in (5, 6)


def is_late(x: int) -> bool:
    """Whether its question has expired when it is asked."""
    return x == 3


def is_costly(name: str, x: int) -> bool:
    return name == "pay" and x >= 2


def _x(call: SealedCall) -> int:
    return int(call.arguments.get("x", 0))


class GuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed):
            return verdict
        if is_denied(verdict.call.name, _x(verdict.call)):
            return Deny("never")
        if is_asked(verdict.call.name, _x(verdict.call)):
            return verdict.ask("may it?")
        return verdict


class SpendingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and is_costly(verdict.call.name, _x(verdict.call)):
            return verdict.ask("costs money")
        return verdict


class HastyMixin(ReActAgent):
    """Asks, and nobody can be quick enough."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and is_late(_x(verdict.call)):
            return verdict.ask("quickly", expires_at=1.0)
        return verdict


class PonderingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        await anyio.sleep(0.25)
        return await super()._deciding(call)


class RewritingMixin(ReActAgent):
    """Adds one: a call that were rewritten twice would show it."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        x = int(call.arguments.get("x", 0))
        return await super()._deciding(call.with_arguments({"x": x + 1}) if x in (1, 4) else call)


class DriftingMixin(ReActAgent):
    """Makes something else of a call that it sees again: what was approved is not what would run.

    Once, for otherwise a human would be asked for ever.
    """

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self._drifting_seen: set[str] = set()

    async def _deciding(self, call: ToolCall) -> Verdict:
        if call.id in self._drifting_seen and call.arguments.get("x", 0) == 5:
            return await super()._deciding(call.with_arguments({"x": 6}))
        self._drifting_seen.add(call.id)
        return await super()._deciding(call)


class MaskingMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        seen = await super()._acting(call)
        await checkpoint()
        return replace(seen, content=(TextBlock(text=f"masked {seen.text}"),))


class RetryingMixin(ReActAgent):
    """Tries everything again, also what must not run twice: the root knows better."""

    async def _acting(self, call: SealedCall) -> Observation:
        seen = await super()._acting(call)
        for _ in range(2):
            if seen.status is not Status.FAILED:
                break
            call = call.again()
            seen = await super()._acting(call)
        return seen


class BreakingMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        seen = await super()._acting(call)
        if call.name == "look":
            raise RuntimeError("a broken layer")
        return seen


class PersistingMixin(ReActAgent):
    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        try:
            return await super()._reasoning(request)
        except ModelError:
            await anyio.sleep(0.25)
            return await super()._reasoning(request)


class ReflectingMixin(ReActAgent):
    async def reply(self, prompt: Prompt) -> Reply:
        reply = await super().reply(prompt)
        if reply.outcome is not Outcome.FINISHED or "bad" not in reply.text:
            return reply
        again = UserMessage(id=f"{prompt.id}/better", content=blocks_of(f"better {prompt.id}"))
        return await super().reply(Prompt(f"{prompt.id}/reflecting/1", (again,)))


class AuditMixin(ReActAgent):
    def __init__(self, *, audit_sink: Sink, **rest: Any) -> None:
        super().__init__(**rest)
        self._audit_sink = audit_sink

    def _committing(self, record: R) -> R:
        written = super()._committing(record)
        self._audit_sink(written)
        return written


LAYERS: Final[Mapping[str, type[ReActAgent]]] = MappingProxyType(
    {
        "guard": GuardMixin,
        "spending": SpendingMixin,
        "hasty": HastyMixin,
        "pondering": PonderingMixin,
        "rewriting": RewritingMixin,
        "drifting": DriftingMixin,
        "masking": MaskingMixin,
        "retrying": RetryingMixin,
        "breaking": BreakingMixin,
        "persisting": PersistingMixin,
        "reflecting": ReflectingMixin,
        "audit": AuditMixin,
    }
)
