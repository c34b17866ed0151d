"""One agent of a stack of layers at work on a script, and the laws held to what it did.

Used by `layer_check.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import anyio

from callboard.agent import ReActAgent
from callboard.approvals import Deny
from callboard.composition import is_replacing
from callboard.errors import CallboardError, ConfigurationError, ScriptError
from callboard.journaling.journal import InMemoryJournal
from callboard.messages import Status, ToolResultMessage
from callboard.model import ModelRequest, Purpose
from callboard.replies import Outcome
from callboard.testing.layer_laws import (
    APART,
    DENIED,
    ENDS,
    MASKED,
    ONE_RESULT,
    SUPER,
    Law,
    Sightings,
)
from callboard.testing.layer_probes import (
    FORBIDDEN,
    REWRITTEN,
    SECRET,
    AuditProbe,
    GuardProbe,
    InnerWitness,
    MaskProbe,
    OuterWitness,
)
from callboard.testing.script import Answer, ScriptItem, call, say
from callboard.testing.scripted_model import ScriptedModel
from callboard.testing.transcript_check import pairing_faults
from callboard.tooling.tools import Tool, ToolContext, tool

Layer = type[ReActAgent]
Make = Callable[[], Mapping[str, Any]]

LONGEST_S = 86_400.0  # of a run, on a clock that jumps
PARKS = 5  # how often a run may wait for a human
SHOWN = 3  # facts that a failure names, and the last
NOTED = ("apple", "banana", "cherry")
SIDE_BY_SIDE = (*NOTED, "damson", "quince")  # calls whose ids stand in no other call's result
OURS = frozenset({"model", "tools", "journal", "messages", "sightings", "judged", "audited"})


def names(layers: tuple[Layer, ...]) -> str:
    """The layers as text, outermost first."""
    return " > ".join([layer.__name__ for layer in layers])


def broken(layers: tuple[Layer, ...], law: Law, *facts: str) -> AssertionError:
    """The error that says which law was broken, how it was seen, and what to write instead."""
    shown = facts if len(facts) <= SHOWN else (*facts[:SHOWN], facts[-1])
    told = "\n".join([f"  {fact}" for fact in shown])
    return AssertionError(f"{names(layers)} breaks a law: {law.text}\n{told}\n  {law.remedy}")


class Case:
    """A stack of layers in one order. Each agent of it is used for one conversation."""

    def __init__(self, layers: tuple[Layer, ...], order: tuple[Layer, ...], make: Make) -> None:
        self._layers = layers
        self._order = order
        self._make = make
        bases: list[Layer] = [OuterWitness, *order, InnerWitness]
        self._stack: Layer = type("Stack", tuple(bases), {})
        acting = [cls.__dict__.get("_acting") for cls in self._stack.__mro__]
        self._replaced = any(is_replacing(step) for step in acting)

    def broken(self, law: Law, *facts: str) -> AssertionError:
        return broken(self._layers, law, *facts, f"in the order {names(self._order)}")

    async def check(self, **options: Any) -> frozenset[str]:
        """Let one agent work and hold it to the laws. Returns the ids of the calls it refused."""
        agent = self.agent(**options)
        await self.work(agent)
        return self.judge(agent)

    def agent(self, **options: Any) -> ReActAgent:
        given = dict(self._make())
        if taken := OURS & given.keys():
            raise ConfigurationError(
                f"make= gives {sorted(taken)}, which check_layer brings itself"
            )
        sightings = Sightings(guarded=GuardProbe in self._order, replaced=self._replaced)
        if GuardProbe in self._order:
            given["judged"] = sightings.judged
        if AuditProbe in self._order:
            given["audited"] = sightings.audited
        model = ScriptedModel(then=_answering())
        ours: dict[str, Any] = {"model": model, "tools": _tools(), "sightings": sightings}
        return self._stack(**given, **options, **ours)

    async def work(self, agent: ReActAgent) -> None:
        """Take an agent through the script; approve what it asks."""
        try:
            with anyio.fail_after(LONGEST_S):
                reply = await agent.run("Go")
                for _ in range(PARKS):
                    if reply.outcome is not Outcome.AWAITING_APPROVAL:
                        return
                    for asked in agent.pending:
                        await agent.approve(asked.id, by="check_layer")
                    reply = await agent.resume()
        except TimeoutError:
            raise self._not_ended(agent, f"it hangs: no end after {LONGEST_S:g} s") from None
        except CallboardError as problem:
            text = f"{type(problem).__name__}: {problem}"
            law = ONE_RESULT if isinstance(problem.__cause__, ScriptError) else ENDS
            raise self._not_ended(agent, text, law) from problem
        raise self._not_ended(agent, f"it still waits for approval after {PARKS} answers")

    def _not_ended(self, agent: ReActAgent, text: str, law: Law = ENDS) -> AssertionError:
        """What a run without a reply is told with: the law that it broke before, if it did."""
        faults = _sightings(agent).faults
        first = faults[0][0] if faults else law
        return self.broken(first, *[fact for of, fact in faults if of is first], text)

    def judge(self, agent: ReActAgent) -> frozenset[str]:
        """Hold what an agent did to the laws. Returns the ids of the calls it refused."""
        seen = _sightings(agent)
        faults = [*seen.faults, *self._faults(agent, seen)]
        if faults:
            law = faults[0][0]
            raise self.broken(law, *[fact for of, fact in faults if of is law])
        return frozenset([id for id, verdict in seen.decided.items() if isinstance(verdict, Deny)])

    def _faults(self, agent: ReActAgent, seen: Sightings) -> Iterator[tuple[Law, str]]:
        for fault in pairing_faults(agent.messages):
            yield ONE_RESULT, fault
        for result in agent.messages:
            if isinstance(result, ToolResultMessage):
                yield from self._result_faults(result, seen)
        journal = agent.journal
        if AuditProbe in self._order and isinstance(journal, InMemoryJournal):
            audited = {id(record) for record in seen.audited}
            missed = [record.kind for record in journal.records if id(record) not in audited]
            if missed:
                yield SUPER, f"an audit never saw {', '.join(missed)}, which is in the journal"

    def _result_faults(
        self, result: ToolResultMessage, seen: Sightings
    ) -> Iterator[tuple[Law, str]]:
        name, text = result.call_id, result.text
        refused = isinstance(seen.decided.get(name), Deny)
        if refused and result.status is not Status.DENIED:
            yield DENIED, f"call {name!r} was denied, and its result says {result.status}"
        if MaskProbe in self._order and SECRET in text:
            yield MASKED, f"call {name!r}: a mask hides {SECRET!r}, and the result shows it"
        mixed = [other for other in SIDE_BY_SIDE if other != name and other in text]
        if name in SIDE_BY_SIDE and mixed:
            yield APART, f"the result of call {name!r} speaks of call {mixed[0]!r}: {text!r}"


def _sightings(agent: ReActAgent) -> Sightings:
    assert isinstance(agent, OuterWitness)
    return agent._sightings


def _answering() -> Callable[[ModelRequest], ScriptItem]:
    """Plays the script to requests that offer tools; a layer may ask the model other things."""
    batches = iter(_script())

    def answer(request: ModelRequest) -> ScriptItem:
        asks_for_more = request.offer is not None and request.purpose is Purpose.ANSWER
        return next(batches, "done") if asks_for_more else "done"

    return answer


def _script() -> list[Answer]:
    """Two batches: fine, changed, denied, tried again, secret, unknown and invalid calls."""
    return [
        say(
            *[call("note", name, text=name) for name in NOTED],
            call("note", "denied", text=FORBIDDEN),
            *[call("note", text, text=text) for text in REWRITTEN],
            call("shaky", "damson"),
            call("peek", "quince"),
            call("nothing", "unknown"),
            call("note", "invalid", wrong=1),
        ),
        say(call("note", "later", text="later"), call("note", "denied again", text=FORBIDDEN)),
    ]


@cache
def _tools() -> tuple[Tool, ...]:
    return (
        tool(name="note")(_note),
        tool(name="shaky", effect="idempotent")(_shaky),
        tool(name="peek")(_peek),
    )


async def _note(text: str, context: ToolContext) -> str:
    """Write a note."""
    _sightings(context.agent).runs(context.call_id, {"text": text})
    await anyio.sleep(1 / len(text))
    return f"noted {text}"


async def _shaky(context: ToolContext) -> str:
    """Fail at first."""
    seen = _sightings(context.agent)
    seen.runs(context.call_id, {})
    await anyio.sleep(0.1)
    if seen.ran[context.call_id] == 1:
        raise ValueError("try again")
    return "well"


async def _peek(context: ToolContext) -> str:
    """Read a secret."""
    _sightings(context.agent).runs(context.call_id, {})
    await anyio.sleep(0.1)
    return f"the secret is {SECRET}"
