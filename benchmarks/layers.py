"""What a layer costs that has nothing to do: microseconds a step, over the step without it.

    python -m benchmarks.layers [--rounds 7] [LAYER ...]

Each layer stands on a floor that does the least that a root can do, so that a difference of a
microsecond shows. Another layer is one line in LAYERS, another step one function in STEPS.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from benchmarks.workload import add
from callboard import ModelRequest, ReActAgent, StopReason, TextBlock, UserMessage, replaces
from callboard.approvals import Proceed, SealedCall, Verdict
from callboard.journaling.message_view import MessageView
from callboard.journaling.records import Record
from callboard.messages import AssistantMessage, ConversationMessage, Observation, ToolCall
from callboard.model import Capabilities, Delta, Ready, StopDelta, TextDelta, WholeDelta
from callboard_mixins import (
    AuditMixin,
    CompactionMixin,
    CompactionPolicy,
    FallbackMixin,
    GuardAction,
    GuardPolicy,
    GuardRule,
    MediaFilterMixin,
    RateLimit,
    RateLimiter,
    RateLimitMixin,
    RedactionMixin,
    ReflexionMixin,
    RetryMixin,
    StructuredOutputMixin,
    ToolGuardMixin,
    TracingMixin,
)

ALLOW = GuardAction.ALLOW
OTHERS = (GuardRule(id="other", action=GuardAction.DENY, tools=("other",)),)
R = TypeVar("R", bound=Record | Delta)
Step = Callable[[Any, int], Awaitable[None]]

DONE = AssistantMessage.of("done")
CALL = ToolCall(id="c1", name="add", raw='{"a": 1, "b": 2}')
OK = Observation.of("3")
FAR_OFF = RateLimit(requests_per_minute=1_000_000, concurrency=100)
HISTORY: list[ConversationMessage] = [UserMessage.of("Start."), AssistantMessage.of("Yes?")] * 500


class Model:
    """Answers at once, in so many pieces."""

    name = "script"
    capabilities = Capabilities()

    def __init__(self, pieces: int = 0) -> None:
        self.pieces = pieces

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if self.pieces:
            return Ready(*[TextDelta("word ")] * self.pieces, StopDelta(StopReason.END))
        return Ready(WholeDelta((TextBlock(text="done"),)), StopDelta(StopReason.END))


class NoTrail:
    """An audit that goes nowhere: what a layer costs that has nothing to write."""

    def write(self, agent: str, body: object, *, is_intent: bool) -> str:
        return ""


class Floor(ReActAgent):
    """The least that a root can do in each step."""

    @replaces
    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        async for _ in request.model.stream(request):
            pass
        return DONE

    @replaces
    async def _acting(self, call: SealedCall) -> Observation:
        return OK

    @replaces
    def _committing(self, record: R) -> R:
        return record


async def reasoning(agent: Any, times: int) -> None:
    """A model call in a conversation of 1,000 messages that grows by two each turn."""
    model, history = Model(), list(HISTORY)
    for _ in range(times):
        history += HISTORY[:2]
        await agent._reasoning(ModelRequest(model=model, messages=MessageView(history)))


async def delta(agent: Any, times: int) -> None:
    """One piece of a streamed answer."""
    await agent._reasoning(ModelRequest(model=Model(times), messages=MessageView(HISTORY)))


async def deciding(agent: Any, times: int) -> None:
    """A verdict on a call; the root's own seal is part of it."""
    verdict: Verdict | None = None
    for _ in range(times):
        verdict = await agent._deciding(CALL)
    assert isinstance(verdict, Proceed)


async def acting(agent: Any, times: int) -> None:
    """One call that runs."""
    verdict = await agent._deciding(CALL)
    for _ in range(times):
        await agent._acting(verdict.call)


async def committing(agent: Any, times: int) -> None:
    """One streamed delta on its way to watchers."""
    piece = TextDelta("word ")
    for _ in range(times):
        agent._committing(piece)


STEPS: tuple[Step, ...] = (reasoning, delta, deciding, acting, committing)
Keywords = Callable[[], dict[str, Any]]
LAYERS: dict[str, tuple[type[ReActAgent], Keywords]] = {
    "Audit": (AuditMixin, lambda: {"audit": NoTrail()}),
    "Compaction": (CompactionMixin, dict),
    "Compaction, counting": (
        CompactionMixin,
        lambda: {"compaction_policy": CompactionPolicy(at_tokens=10_000_000)},
    ),
    "Fallback": (FallbackMixin, lambda: {"fallback_models": [Model()]}),
    "MediaFilter": (MediaFilterMixin, dict),
    "RateLimit": (RateLimitMixin, dict),
    "RateLimit, counting": (RateLimitMixin, lambda: {"rate_limiter": RateLimiter(others=FAR_OFF)}),
    "Redaction": (RedactionMixin, dict),
    "Reflexion": (ReflexionMixin, dict),
    "Retry": (RetryMixin, dict),
    "StructuredOutput": (StructuredOutputMixin, lambda: {"output": str}),
    "StructuredOutput, told": (
        StructuredOutputMixin,
        lambda: {"output": str, "output_way": "prompted"},
    ),
    "ToolGuard": (ToolGuardMixin, lambda: {"policy": GuardPolicy(rules=OTHERS, default=ALLOW)}),
    "Tracing": (TracingMixin, dict),
}


def built(layer: type[ReActAgent], keywords: Keywords) -> Any:
    bases = (Floor,) if layer is Floor else (layer, Floor)
    return type("Stack", bases, {})(model=Model(), tools=[add], **keywords())


def cost_us(step: Step, layer: type[ReActAgent], keywords: Keywords, times: int) -> float:
    async def go() -> float:
        agent = built(layer, keywords)
        begun = time.process_time()
        await step(agent, times)
        return (time.process_time() - begun) / times * 1e6

    return asyncio.run(go())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("layers", nargs="*", help=f"of {', '.join(sorted(LAYERS))}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--times", type=int, default=3_000)
    options = parser.parse_args()
    chosen = {name: LAYERS[name] for name in options.layers or LAYERS}
    print(f"{'us more a step':<26}" + "".join([f"{step.__name__:>12}" for step in STEPS]))
    floor_alone: tuple[type[ReActAgent], Keywords] = (Floor, dict)
    for name, (layer, keywords) in chosen.items():
        line = ""
        for step in STEPS:
            floor, with_layer = (
                min([cost_us(step, *one, options.times) for _ in range(options.rounds)])
                for one in (floor_alone, (layer, keywords))
            )
            line += f"{with_layer - floor:12.2f}"
        print(f"{name:<26}{line}")


if __name__ == "__main__":
    main()
