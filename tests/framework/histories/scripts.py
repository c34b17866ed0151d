"""What the models of the histories answer."""

from __future__ import annotations

from collections.abc import Sequence

from callboard.testing import call_piece, drop, eof, error, pause, say, stream, think
from callboard.testing.script import Answer, ScriptedCall
from tests.framework.histories.history import Said

ANSWERS = {
    "text": say("fine"),
    "bad": say("bad"),
    "empty": say(""),
    "thought": stream(think("hm")),
    "drop": stream("par", drop()),
    "eof": stream("half", eof()),
    "down": stream(error("down")),
    "refusal": say("no", stop="refusal"),
    "length": say("long", stop="length"),
    "slow": stream("a", pause(0.5), "b", pause(0.5), "c"),
    "busy": stream(error("slow down", category="rate_limited", retry_after_s=0.5)),
    "overflow": stream(error("too long", category="context_overflow")),
    "flood": stream(*["w"] * 300),
    "broken": stream("x", call_piece('{"x":', id="z", name="pay", index=0), drop()),
}


REPEATED = {"silent": "empty", "severed": "eof"}


def script_of(script: Sequence[Said]) -> list[Answer]:
    """What the model answers: three times the same where the loop shall give up."""
    return [answer_of(said) for said in script for _ in range(3 if said.temper in REPEATED else 1)]


def answer_of(said: Said) -> Answer:
    if not said.calls:
        return ANSWERS[REPEATED.get(said.temper, said.temper)]
    calls = [ScriptedCall(call.name, call.raw, call.id) for call in said.calls]
    if said.temper == "slow":
        return stream("let me see", pause(0.5), *calls)
    stop = said.temper if said.temper in ("length", "refusal") else None
    return say("let me see", *calls, stop=stop)
