"""The laws that `check_layer` holds a layer to, and what was seen of one agent that keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from callboard.approvals import Ask, Deny, Proceed, SealedCall, Verdict
from callboard.json_text import canonical
from callboard.messages import ToolCall


@dataclass(frozen=True, slots=True)
class Law:
    """What a layer must keep, and what to write where it does not."""

    text: str
    remedy: str


SUPER = Law(
    "every layer inside is asked",
    "Call super() of the same step, never a class by name, and run tools only through it.",
)
SEALED = Law(
    "what was decided is what runs",
    "Rewrite in _deciding, going in: return await super()._deciding(call.with_arguments(...)).",
)
DENIED = Law(
    "a denial stays a denial",
    "Give back the Deny that came from super()._deciding, and leave the status of its result.",
)
TWICE = Law(
    "deciding twice gives the same verdict",
    "Make it a pure function of the call and of what was journaled before.",
)
RAN = Law(
    "an ok means that the tool ran",
    "Call super()._acting(call), or mark a layer that stands in for tools with @replaces.",
)
RECORDS = Law(
    "a record changes on its way in only",
    "Write return super()._committing(changed), with a record of the same class.",
)
ONE_RESULT = Law(
    "each call has exactly one result before the next request",
    "Leave the conversation to the loop: return what came of a call, and write no messages.",
)
APART = Law(
    "calls that run side by side do not mix",
    "Keep nothing of a single call on self: what belongs to a call travels in arguments.",
)
MASKED = Law(
    "no layer on the way out is passed over",
    "Build what you return from what super()._acting gave back.",
)
ORDER = Law(
    "every legal order refuses the same calls",
    "Judge what comes back from super()._deciding, which is what will run; or declare the order"
    " with goes_outside.",
)
SHARED = Law(
    "two agents share nothing",
    "Make the state in __init__; on the class put constants only (and let make= build afresh).",
)
KEYWORDS = Law(
    "a misspelt keyword is a TypeError that names it",
    "Write def __init__(self, *, mine, **rest) and pass all of rest on to super().__init__.",
)
ENDS = Law("the run ends with a reply", "Raise StopRun to end a run; refuse a call with Deny.")


class Sightings:
    """What was seen of one agent while it ran, and the laws that it broke."""

    def __init__(self, *, guarded: bool, replaced: bool) -> None:
        self.faults: list[tuple[Law, str]] = []
        self.decided: dict[str, Verdict] = {}  # by the outermost layer, at last
        self.sealed: dict[str, SealedCall] = {}  # by the root, since the outermost was asked
        self.judged: dict[str, Verdict] = {}  # by the guard, since the outermost was asked
        self.entered: set[str] = set()  # calls that came to the root's _acting
        self.ran: dict[str, int] = {}  # how often a call's tool ran
        self.arrived: object = None  # the last record that came to the root
        self.audited: list[Any] = []
        self._guarded = guarded
        self._replaced = replaced

    def fault(self, law: Law, text: str) -> None:
        self.faults.append((law, text))

    def asks(self, call: ToolCall) -> None:
        """The outermost layer is about to be asked for a verdict."""
        self.sealed.pop(call.id, None)
        self.judged.pop(call.id, None)

    def decides(self, call: ToolCall, verdicts: list[Verdict]) -> None:
        """The outermost layer gave its verdict, twice."""
        first, verdict = map(_shown, verdicts)
        if first != verdict:
            self.fault(TWICE, f"call {call.id!r}: first {first}, then {verdict}")
        self.decided[call.id] = verdicts[-1]
        if isinstance(verdicts[-1], (Proceed, Ask)):
            self._lets_go(call, verdicts[-1])

    def _lets_go(self, call: ToolCall, verdict: Proceed | Ask) -> None:
        judged, sealed = self.judged.get(call.id), self.sealed.get(call.id)
        if isinstance(judged, Deny):
            self.fault(DENIED, f"call {call.id!r}: a guard said {judged.reason!r}")
        elif sealed is None or (judged is None and self._guarded):
            inside = "the root" if sealed is None else "a guard"
            self.fault(SUPER, f"call {call.id!r}: _deciding never came to {inside}")
        elif isinstance(verdict, Proceed) and verdict.call is not sealed:
            self.fault(SEALED, f"call {call.id!r}: another object than the one that was sealed")
        elif isinstance(verdict, Ask) and verdict.call.arguments != sealed.arguments:
            self.fault(SEALED, f"call {call.id!r}: a human is asked about what would not run")

    def enters(self, call: SealedCall) -> None:
        """A call came to the root, to be run."""
        self.entered.add(call.id)
        sealed = self.sealed.get(call.id)
        if sealed is None or not call.is_from(sealed):
            text = f"call {call.id!r}: _acting passed on {canonical(call.arguments)}"
            self.fault(SEALED, f"{text}, which is not the object that was decided")

    def runs(self, call_id: str, arguments: Mapping[str, Any]) -> None:
        """A tool runs."""
        self.ran[call_id] = self.ran.get(call_id, 0) + 1
        sealed, verdict = self.sealed.get(call_id), self.decided.get(call_id)
        if call_id not in self.entered:
            self.fault(SUPER, f"call {call_id!r}: its tool ran, and not through super()._acting")
        elif verdict is None or isinstance(verdict, Deny) or sealed is None:
            self.fault(DENIED, f"call {call_id!r}: its tool ran, and the verdict was {verdict!r}")
        elif sealed.arguments != arguments:
            self.fault(SEALED, f"call {call_id!r}: its tool ran with {canonical(arguments)}")

    def answers_ok(self, call: SealedCall) -> None:
        """The outermost layer says that a call went well."""
        if call.id not in self.entered and not self._replaced:
            self.fault(RAN, f"call {call.id!r}: answered ok, and nothing ran")

    def commits(self, given: object, written: object) -> None:
        """A record went through all layers."""
        kind = type(given).__name__
        if self.arrived is None:
            self.fault(SUPER, f"a {kind}: _committing never came to the root")
        elif written is not self.arrived:
            self.fault(RECORDS, f"a {kind} was changed after super()._committing")
        elif type(written) is not type(given):
            self.fault(RECORDS, f"a {kind} became a {type(written).__name__}")


def _shown(verdict: object) -> str:
    """A verdict as far as it must be the same when it is given again."""
    match verdict:
        case Proceed(call=call):
            return f"Proceed with {call.name} {canonical(call.arguments)}"
        case Ask(call=call, rule=rule):
            return f"Ask about {call.name} {canonical(call.arguments)} by rule {rule!r}"
        case Deny(rule=rule):
            return f"Deny by rule {rule!r}"
        case _:
            return f"no verdict: {verdict!r}"
