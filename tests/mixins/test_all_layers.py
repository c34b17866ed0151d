"""All layers in every legal order of pairs and triples, in a sample of larger stacks, and all."""

from __future__ import annotations

import os
import random
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from callboard import CompositionError, ReActAgent
from callboard.messages import ToolCall
from callboard.testing import ScriptedModel, check_layer, error, say, stream
from callboard.testing import call as calls
from callboard.testing.script import drop
from callboard.tooling.tools import tool
from callboard_mixins import (
    AuditMixin,
    CompactionMixin,
    CompactionPolicy,
    FallbackMixin,
    GuardAction,
    GuardPolicy,
    JsonLinesTrail,
    MediaFilterMixin,
    PlanAndSolveMixin,
    RateLimitMixin,
    RedactionMixin,
    ReflexionMixin,
    ReflexionPolicy,
    RetryMixin,
    RetryPolicy,
    StepLogMixin,
    StructuredOutputMixin,
    ToolGuardMixin,
    TracingMixin,
)
from callboard_mixins.audit.verifying import read_trail, verify

Layer = type[ReActAgent]
LAYERS: tuple[Layer, ...] = (
    AuditMixin,
    CompactionMixin,
    FallbackMixin,
    MediaFilterMixin,
    PlanAndSolveMixin,
    RateLimitMixin,
    RedactionMixin,
    ReflexionMixin,
    RetryMixin,
    StepLogMixin,
    StructuredOutputMixin,
    ToolGuardMixin,
    TracingMixin,
)
SAMPLE = int(os.environ.get("CALLBOARD_STACKS", "40"))


def keywords(layers: tuple[Layer, ...], folder: Path) -> dict[str, Any]:
    """What these layers need, with nothing that stands in a run's way."""
    needed: dict[Layer, dict[str, Any]] = {
        AuditMixin: {"audit": JsonLinesTrail(folder / "audit.jsonl")},
        CompactionMixin: {"compaction_policy": CompactionPolicy(at_tokens=100_000)},
        FallbackMixin: {"fallback_models": [ScriptedModel([])]},
        ReflexionMixin: {"reflexion_policy": ReflexionPolicy(evaluator=lambda prompt, reply: True)},
        StructuredOutputMixin: {"output": str, "output_way": "prompted"},
        ToolGuardMixin: {"policy": GuardPolicy(default=GuardAction.ALLOW)},
    }
    return {name: value for one in layers for name, value in needed.get(one, {}).items()}


def is_legal(layers: tuple[Layer, ...]) -> bool:
    try:
        type("Stack", (*layers, ReActAgent), {})
    except CompositionError:
        return False
    return True


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_each_layer_keeps_the_laws_among_probes(layer: Layer, tmp_path: Path) -> None:
    check_layer(layer, make=lambda: keywords((layer,), tmp_path), orders=20)


@pytest.mark.parametrize(
    "pair",
    list(combinations(LAYERS, 2)),
    ids=lambda pair: "-".join([layer.__name__.removesuffix("Mixin") for layer in pair]),
)
def test_every_legal_order_of_a_pair_keeps_the_laws(
    pair: tuple[Layer, ...], tmp_path: Path
) -> None:
    assert any([is_legal(order) for order in permutations(pair)])
    check_layer(*pair, make=lambda: keywords(pair, tmp_path), orders=2)


def agent_of(layers: tuple[Layer, ...], folder: Path, ran: list[str]) -> Any:
    """An agent with this stack, and a model that calls a tool."""

    @tool
    async def note(text: str) -> str:
        """Note a text."""
        ran.append(text)
        return f"noted {text}"

    plan = ["1. note it"] if PlanAndSolveMixin in layers else []
    end = ["it is noted"] * (2 if PlanAndSolveMixin in layers else 1)
    model = ScriptedModel([*plan, calls("note", text="a"), *end])
    kind: Any = type("Stack", (*layers, ReActAgent), {})
    return kind(model=model, tools=[note], **keywords(layers, folder))


def legal_orders(size: int) -> list[tuple[Layer, ...]]:
    """All legal orders of so many of the layers."""
    return [order for order in permutations(LAYERS, size) if is_legal(order)]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_legal_order_of_three_does_the_same(tmp_path: Path) -> None:
    """One run each: the tool runs once, and the answer is the model's."""
    for order in legal_orders(3):
        ran: list[str] = []
        reply = await agent_of(order, tmp_path, ran).run("go")
        assert (reply.text, ran) == ("it is noted", ["a"]), order


@pytest.mark.anyio
async def test_a_sample_of_larger_stacks_and_all_layers_at_once_do_the_same(
    tmp_path: Path,
) -> None:
    chosen = random.Random(20261201)
    found = 0
    while found < SAMPLE:
        size = len(LAYERS) if found < 3 else chosen.randint(4, len(LAYERS))
        order = tuple(chosen.sample(LAYERS, size))
        if not is_legal(order):
            continue
        found += 1
        ran: list[str] = []
        reply = await agent_of(order, tmp_path, ran).run("go")
        assert (reply.text, ran) == ("it is noted", ["a"]), order
    assert verify(read_trail(tmp_path / "audit.jsonl")).fault is None


class Everything(
    AuditMixin,
    RedactionMixin,
    ToolGuardMixin,
    CompactionMixin,
    FallbackMixin,
    MediaFilterMixin,
    RateLimitMixin,
    RetryMixin,
    ReActAgent,
):
    """What a careful house would run."""

    async def _deciding(self, call: ToolCall) -> Any:
        return await super()._deciding(call)


@pytest.mark.anyio
async def test_a_model_that_fails_in_five_ways_is_survived_and_the_audit_verifies(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Note a text."""
        ran.append(text)
        return f"noted {text}"

    own = ScriptedModel(
        [
            "Hello.",
            error("slow down", category="rate_limited", retry_after_s=0.01),  # 1
            stream("I will ", drop()),  # 2
            say(calls("note", text="ann@example.org")),
            error("busy", category="overloaded"),  # 3
            error("too long", category="context_overflow"),  # 4
            "They want a note.",
            error("no credit", category="quota"),  # 5: the next model
        ],
        name="own",
    )
    spare = ScriptedModel(["It is noted."], name="spare")
    agent = Everything(
        model=own,
        tools=[note],
        audit=JsonLinesTrail(tmp_path / "audit.jsonl"),
        policy=GuardPolicy(default=GuardAction.ALLOW),
        fallback_models=[spare],
        retry_policy=RetryPolicy(attempts=4, first_wait_s=0.01),
        compaction_policy=CompactionPolicy(keep_recent=1),
    )
    await agent.run("Good day.")
    reply = await agent.run("Note it.")
    assert reply.text == "It is noted."
    assert ran == ["ann@example.org"]
    assert "ann@example.org" not in (tmp_path / "audit.jsonl").read_text()
    assert verify(read_trail(tmp_path / "audit.jsonl")).fault is None
