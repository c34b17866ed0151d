"""Well-behaved layers to stack a layer with, and a witness for each end of the stack.

Used by `layer_check.py`. Each probe does one of the things that layers do, and keeps the laws.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Proceed, SealedCall, Verdict
from callboard.journaling.records import Record
from callboard.json_text import canonical
from callboard.messages import Content, Observation, Status, TextBlock, ToolCall
from callboard.model import Delta
from callboard.testing.layer_laws import Sightings
from callboard.tooling.tools import Effect

R = TypeVar("R", bound=Record | Delta)

FORBIDDEN = "forbidden"  # what the guard denies
REWRITTEN = MappingProxyType({"f0rb1dden": FORBIDDEN, "a draft": "the text"})
SECRET = "secret-4711"  # what the mask hides
RETRIES = 2


class GuardProbe(ReActAgent):
    """Denies by rule, and judges what would run. `judged` is its diary, by call id."""

    def __init__(self, *, judged: dict[str, Verdict] | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._guard_probe_judged = {} if judged is None else judged

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and FORBIDDEN in canonical(verdict.call.arguments):
            verdict = Deny("this text is forbidden", rule="probe")
        self._guard_probe_judged[call.id] = verdict
        return verdict


class RewriteProbe(ReActAgent):
    """Changes arguments going in, always in the same way."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        better = REWRITTEN.get(call.arguments.get("text", ""))
        if better is not None:
            call = call.with_arguments({**call.arguments, "text": better})
        return await super()._deciding(call)


class MaskProbe(ReActAgent):
    """Hides a secret in what comes back."""

    async def _acting(self, call: SealedCall) -> Observation:
        observation = await super()._acting(call)
        if SECRET not in observation.text:
            return observation
        return replace(observation, content=tuple([_masked(b) for b in observation.content]))


def _masked(block: Content) -> Content:
    if not isinstance(block, TextBlock):
        return block
    return TextBlock(text=block.text.replace(SECRET, "[masked]"))


class RetryProbe(ReActAgent):
    """Tries again what failed and may run twice."""

    async def _acting(self, call: SealedCall) -> Observation:
        observation = await super()._acting(call)
        for _ in range(RETRIES):
            if observation.status is not Status.FAILED or call.tool.effect is Effect.EFFECT:
                break
            call = call.again()
            observation = await super()._acting(call)
        return observation


class AuditProbe(ReActAgent):
    """Writes down each record that will be stored, in `audited`."""

    def __init__(self, *, audited: list[Any] | None = None, **rest: Any) -> None:
        super().__init__(**rest)
        self._audit_probe_audited = [] if audited is None else audited

    def _committing(self, record: R) -> R:
        written = super()._committing(record)
        self._audit_probe_audited.append(written)
        return written


PROBES: tuple[type[ReActAgent], ...] = (
    GuardProbe,
    RewriteProbe,
    MaskProbe,
    RetryProbe,
    AuditProbe,
)


class Witnessed(ReActAgent):
    """What both witnesses write into."""

    def __init__(self, *, sightings: Sightings, **rest: Any) -> None:
        super().__init__(**rest)
        self._sightings = sightings


class OuterWitness(Witnessed):
    """Sees what the whole stack answers. It decides each call twice."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdicts: list[Verdict] = []
        for _ in range(2):
            self._sightings.asks(call)
            verdicts.append(await super()._deciding(call))
        self._sightings.decides(call, verdicts)
        return verdicts[-1]

    async def _acting(self, call: SealedCall) -> Observation:
        observation = await super()._acting(call)
        if observation.status is Status.OK:
            self._sightings.answers_ok(call)
        return observation

    def _committing(self, record: R) -> R:
        self._sightings.arrived = None
        written = super()._committing(record)
        self._sightings.commits(record, written)
        return written


class InnerWitness(Witnessed):
    """Sees what comes to the root."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed):
            self._sightings.sealed[call.id] = verdict.call
        return verdict

    async def _acting(self, call: SealedCall) -> Observation:
        self._sightings.enters(call)
        return await super()._acting(call)

    def _committing(self, record: R) -> R:
        self._sightings.arrived = record
        return super()._committing(record)
