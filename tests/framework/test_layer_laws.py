"""Laws of layers: well-behaved ones refuse and answer the same in every order."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.agent import ReActAgent
from callboard.approvals import Deny, Verdict
from callboard.budget import Budget
from callboard.decide import ToolExecution
from callboard.errors import CompositionError
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import Decided, ToolStarted
from callboard.json_text import canonical
from callboard.testing import ScriptedModel, call, say, virtual_backend
from callboard.testing.layer_probes import (
    FORBIDDEN,
    PROBES,
    REWRITTEN,
    SECRET,
    AuditProbe,
    GuardProbe,
)
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import ToolContext, tool
from tests.framework.kit import assert_replays, shape

LAW = settings(max_examples=40, deadline=None)

Stack = tuple[type[ReActAgent], ...]
Call = tuple[str, dict[str, Any]]
Turns = list[list[Call]]
TEXTS = ("plain", "ü", f"it is {SECRET}", FORBIDDEN, f"not {FORBIDDEN}", *REWRITTEN)


def a_note(text: str) -> Call:
    return "note", {"text": text}


def a_shaky_call(fails: int) -> Call:
    return "shaky", {"fails": fails}


WRONG: tuple[Call, ...] = (("nothing", {}), ("note", {"wrong": 1}), ("note", {"text": 7}))
calls = (
    st.sampled_from(TEXTS).map(a_note)
    | st.integers(0, 4).map(a_shaky_call)
    | st.sampled_from(WRONG)
)
batches = st.lists(st.lists(calls, min_size=1, max_size=4), min_size=1, max_size=3)
stacks = st.lists(st.sampled_from(PROBES), unique=True, min_size=1, max_size=4).map(tuple)
executions = st.sampled_from(ToolExecution)


@tool(name="note")
async def note(text: str) -> str:
    """Write a note."""
    await anyio.sleep(1 / len(text))
    return f"noted {text}"


@tool(name="shaky", effect="idempotent")
async def shaky(fails: int, context: ToolContext) -> str:
    """Fail that many times."""
    await anyio.sleep(0.1 * fails)
    if context.attempt <= fails:
        raise ValueError(f"failed {context.attempt} times")
    return "well"


def script_of(turns: Turns) -> list[ScriptItem]:
    """Turns of calls, with ids that tell their turn and place."""
    answers = [
        say(*[call(name, f"{turn}.{at}", **given) for at, (name, given) in enumerate(batch)])
        for turn, batch in enumerate(turns)
    ]
    return [*answers, "done"]


def run(order: Stack, script: list[ScriptItem], how: ToolExecution, **more: Any) -> ReActAgent:
    """An agent of these layers after it went through the script, on asyncio with jumping time."""
    kind = type("Stack", order, {})
    model = ScriptedModel(script)
    own: dict[str, Any] = {"model": model, "tools": [note, shaky], "budget": Budget(repeats=None)}
    agent: ReActAgent = kind(**own, tool_execution=how, **more)
    backend, options = virtual_backend("asyncio")
    anyio.run(partial(agent.run, "go"), backend=backend, backend_options=options)
    model.assert_complete()
    return agent


def refused(agent: ReActAgent) -> list[tuple[str, str | None]]:
    assert isinstance(agent.journal, InMemoryJournal)
    decided = [record for record in agent.journal.records if isinstance(record, Decided)]
    return sorted((it.call_id, it.rule) for it in decided if it.verdict == "deny")


@LAW
@given(stacks, batches, executions)
def test_every_order_refuses_the_same_and_makes_the_same_transcript(
    stack: Stack, turns: Turns, how: ToolExecution
) -> None:
    script = script_of(turns)
    agents = [run(order, script, how) for order in itertools.permutations(stack)]
    transcripts = {tuple(shape(agent.messages)) for agent in agents}
    refusals = {tuple(refused(agent)) for agent in agents}
    assert (len(transcripts), len(refusals)) == (1, 1)


@LAW
@given(st.permutations(PROBES), batches)
def test_in_sequence_and_in_parallel_the_transcript_is_the_same(
    order: list[type[ReActAgent]], turns: Turns
) -> None:
    script = script_of(turns)
    one, other = [run(tuple(order), script, how) for how in ToolExecution]
    assert shape(one.messages) == shape(other.messages)


@LAW
@given(st.permutations(PROBES), batches, executions)
def test_no_call_that_the_guard_denied_is_ever_started(
    order: list[type[ReActAgent]], turns: Turns, how: ToolExecution
) -> None:
    judged: dict[str, Verdict] = {}
    agent = run(tuple(order), script_of(turns), how, judged=judged)
    assert isinstance(agent.journal, InMemoryJournal)
    started = {it.call_id for it in agent.journal.records if isinstance(it, ToolStarted)}
    denied = {id for id, verdict in judged.items() if isinstance(verdict, Deny)}
    assert not started & denied
    assert started <= judged.keys()


@LAW
@given(st.permutations(PROBES), batches, executions)
def test_an_audit_sees_every_record_of_the_journal_in_its_order(
    order: list[type[ReActAgent]], turns: Turns, how: ToolExecution
) -> None:
    audited: list[Any] = []
    agent = run(tuple(order), script_of(turns), how, audited=audited)
    assert isinstance(agent.journal, InMemoryJournal)
    seen = [record for record in audited if hasattr(record, "kind")]
    assert list(map(id, agent.journal.records)) == list(map(id, seen))
    assert_replays(agent)


@LAW
@given(st.permutations(PROBES), batches)
def test_no_order_lets_a_secret_into_the_conversation(
    order: list[type[ReActAgent]], turns: Turns
) -> None:
    """The mask is on the way out of the tools; what the model says itself is its own."""
    agent = run(tuple(order), script_of(turns), ToolExecution.PARALLEL)
    results = [line for line in shape(agent.messages) if not line.startswith("calls")]
    assert SECRET not in canonical(results)


def test_the_laws_are_tried_on_layers_that_do_something() -> None:
    turns = script_of([[("note", {"text": "f0rb1dden"}), ("shaky", {"fails": 2})]])
    agent = run((GuardProbe, AuditProbe, *PROBES[1:4]), turns, ToolExecution.PARALLEL)
    assert shape(agent.messages)[2:4] == ["0.0: denied: this text is forbidden", "0.1: well"]


@settings(LAW, max_examples=30)
@given(st.sets(st.sampled_from(list(itertools.permutations(range(3), 2)))))
def test_an_order_is_refused_exactly_where_it_breaks_a_declaration(
    pairs: set[tuple[int, int]],
) -> None:
    """Each pair (outer, inner) is declared by the outer one; the refusal says which to move."""
    layers = [type(f"L{at}", (probe,), {}) for at, probe in enumerate(PROBES[:3])]
    for at, layer in enumerate(layers):
        inside = tuple([layers[inner] for outer, inner in pairs if outer == at])
        type.__setattr__(layer, "goes_outside", inside)
    for order in itertools.permutations(range(3)):
        broken = [pair for pair in pairs if order.index(pair[0]) > order.index(pair[1])]
        try:
            type("Stack", tuple(layers[at] for at in order), {})
        except CompositionError as refusal:
            told = [f"Put L{outer} before L{inner} " in str(refusal) for outer, inner in broken]
            assert any(told)
        else:
            assert broken == []
