"""The layers that the project ships, in stacks with those of `layers.py`: what they promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from callboard.agent import ReActAgent
from callboard.journaling.record_codec import encode
from callboard.journaling.records import ApprovalResolved, Observed, Record
from callboard.json_text import Json
from callboard.messages import Media
from callboard.model import Capabilities
from callboard.testing import ScriptedModel
from callboard_mixins import (
    AuditMixin,
    CompactionMixin,
    CompactionPolicy,
    FallbackMixin,
    GuardAction,
    GuardPolicy,
    MediaFilterMixin,
    PlanAndSolveMixin,
    RateLimit,
    RateLimiter,
    RateLimitMixin,
    RedactionMixin,
    ReflexionMixin,
    ReflexionPolicy,
    RetryMixin,
    RetryPolicy,
    StructuredOutputMixin,
    ToolGuardMixin,
)
from callboard_mixins.audit.chain import NOTHING, Link, twin_of
from callboard_mixins.audit.entries import AUDITED, facts_of
from callboard_mixins.audit.trail import Chained, utc_now
from callboard_mixins.audit.verifying import Trail, Twin, compare, verify
from callboard_mixins.redaction.vault import InMemoryVault
from tests.framework.histories.laws import broken_unless
from tests.framework.histories.tools import ADDRESS, SECRET

HOUSE: Final[Mapping[str, type[ReActAgent]]] = MappingProxyType(
    {
        "trail": AuditMixin,
        "compaction": CompactionMixin,
        "fallback": FallbackMixin,
        "media": MediaFilterMixin,
        "planning": PlanAndSolveMixin,
        "rate_limit": RateLimitMixin,
        "redaction": RedactionMixin,
        "reflexion": ReflexionMixin,
        "retry": RetryMixin,
        "structured": StructuredOutputMixin,
        "tool_guard": ToolGuardMixin,
    }
)
_RULES: Any = (  # the plain data of rules: what the probes of `layers.py` refuse and ask about
    {"id": "never", "tools": ["*"], "action": "deny", "patterns": ["^9$"]},
    {"id": "asks", "tools": ["*"], "action": "ask", "patterns": ["^[56]$"]},
)
POLICY = GuardPolicy(rules=_RULES, default=GuardAction.ALLOW)


class MemoryTrail(Chained):
    """An audit that outlives the lives of a history."""

    def __init__(self) -> None:
        super().__init__(key=None, sync="never", clock=utc_now)
        self.lines: list[str] = []
        self._above = NOTHING
        self._of: dict[str, Link] = {}

    def _append(self, agent: str, body: Mapping[str, Json], *, durable: bool) -> str:
        line, self._above, mine = self._entry(agent, body, self._above, self._of.get(agent))
        self._of[agent] = mine
        self.lines.append(line)
        return line


class House:
    """What these layers need of a history, through all its lives, and what they keep."""

    def __init__(self, layers: Sequence[str]) -> None:
        self._layers = frozenset(layers)
        self.trail = MemoryTrail()
        self.spare = ScriptedModel(then="from the spare one", name="spare")
        self._vault = InMemoryVault()

    @property
    def capabilities(self) -> Capabilities:
        """Of the agent's model: pictures are nothing for it where there is a filter."""
        return Capabilities(images="media" not in self._layers)

    def keywords(self) -> dict[str, Any]:
        """What the layers of this stack need."""
        made: dict[str, Callable[[], dict[str, Any]]] = {
            "trail": lambda: {"audit": self.trail},
            "compaction": lambda: {
                "compaction_policy": CompactionPolicy(at_tokens=120, keep_recent=1)
            },
            "fallback": lambda: {"fallback_models": [self.spare]},
            "rate_limit": lambda: {
                "rate_limiter": RateLimiter(others=RateLimit(requests_per_minute=8, concurrency=1))
            },
            "redaction": lambda: {"redaction_vault": self._vault},
            "reflexion": lambda: {
                "reflexion_policy": ReflexionPolicy(
                    evaluator=lambda prompt, reply: "bad" not in reply.text, most_attempts=2
                )
            },
            "retry": lambda: {"retry_policy": RetryPolicy(attempts=3, wait=lambda _: 0.25)},
            "structured": lambda: {"output": str, "output_way": "prompted"},
            "tool_guard": lambda: {"policy": POLICY},
        }
        needed = [make() for name, make in made.items() if name in self._layers]
        return {name: value for one in needed for name, value in one.items()}

    # -- what they promise -----------------------------------------------------------------------

    def check(self, agent: ReActAgent, records: Sequence[Record], model: ScriptedModel) -> None:
        """At the end of a history whose records nobody changed from outside."""
        broken_unless(self.spare.open_streams == 0, "no stream of the spare model is alive")
        if "trail" in self._layers:
            self._check_trail(agent, records)
        if "redaction" in self._layers:
            shown = [encode(record) for record in records]
            told = [line for line in shown if SECRET.encode() in line or ADDRESS.encode() in line]
            broken_unless(not told, "no secret is stored", told)
        if "media" in self._layers:
            seen = [m for request in model.requests for m in request.messages]
            media = [m.id for m in seen if any([isinstance(b, Media) for b in m.content])]
            broken_unless(not media, "no picture goes to who cannot see", media)

    def _check_trail(self, agent: ReActAgent, records: Sequence[Record]) -> None:
        found = verify(Trail(tuple(self.trail.lines), None))
        broken_unless(found.fault is None, "the audit verifies", found.fault)
        assert isinstance(agent, AuditMixin)
        twins = [_twin(record, agent._audit_key) for record in records]
        own = [entry for entry in found.entries if entry["agent"] == str(agent.address)]
        faults = compare([entry for entry in own if not _is_passed(entry, twins)], twins).faults
        broken_unless(not faults, "the audit tells what the journal does", *faults)


def _is_passed(entry: Mapping[str, Any], twins: Sequence[Twin]) -> bool:
    """Whether the entry was ahead of an append that failed, and what came in its place is of a
    kind that is not audited: then a comparison takes it for a forgery.
    """
    place = entry["journal"]
    return any([twin.digest is None for twin in twins[place : place + 1]])


def _twin(record: Record, key: bytes) -> Twin:
    is_audited = type(record) in AUDITED and facts_of(record) is not None
    is_answer = isinstance(record, (ApprovalResolved, Observed))
    return Twin(twin_of(encode(record), key) if is_audited else None, is_answer)
