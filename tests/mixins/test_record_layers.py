"""Audit, redaction and tracing keep the laws of layers, alone and together in each order."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from callboard import ReActAgent, SqliteJournal, events
from callboard.journaling.records import Record
from callboard.testing import ScriptedModel, call, check_layer, stream
from callboard_mixins import (
    AuditMixin,
    JsonLinesTrail,
    RedactionMixin,
    SqliteTrail,
    StepLogMixin,
    TracingMixin,
)
from callboard_mixins.audit.verifying import read_trail, verify
from callboard_mixins.redaction.cleaning import FIELDS

KEY = "sk-a1b2c3d4e5f6g7h8i9j0k1l2"
MAIL = "ada@example.org"
LAYERS: tuple[type[ReActAgent], ...] = (AuditMixin, RedactionMixin, TracingMixin)


class Kept:
    """A trail in memory."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def write(self, agent: str, body: Mapping[str, Any], *, is_intent: bool) -> str:
        self.kinds.append(body["kind"])
        return ""


class Audited(AuditMixin):
    """The audit with a trail of its own, so that it needs no keyword."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(audit=Kept(), **rest)


class Traced(TracingMixin):
    """Tracing with a provider of its own, content and all."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(tracing_provider=TracerProvider(), tracing_content=True, **rest)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("layer", [Audited, RedactionMixin, Traced], ids=lambda one: one.__name__)
def test_a_layer_keeps_the_laws(layer: type[ReActAgent]) -> None:
    check_layer(layer, orders=120)


@pytest.mark.timeout(120)
def test_all_three_keep_the_laws_together() -> None:
    check_layer(Audited, RedactionMixin, Traced, orders=120)


def test_the_audit_keeps_the_laws_with_a_file(tmp_path: Path) -> None:
    check_layer(
        AuditMixin,
        make=lambda: {"audit": JsonLinesTrail(tmp_path / "audit", sync="never")},
        orders=10,
    )
    assert verify(read_trail(tmp_path / "audit")).fault is None


@pytest.mark.parametrize("order", list(itertools.permutations((*LAYERS, StepLogMixin))))
def test_sec_02_no_secret_is_written_anywhere_in_any_order(
    order: tuple[type[ReActAgent], ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Journal, audit, traces with their content, debug logs and events: none of them has it."""
    caplog.set_level(logging.DEBUG)
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    lines = Lines()
    script: list[Any] = [
        call("environment", note=f"for [EMAIL_1], {KEY}"),
        call("environment", note="for [EMAIL_1]"),
        stream(KEY[:9], KEY[9:], " and ", MAIL[:5], MAIL[5:]),
    ]
    kind: Any = type("Everything", order, {})
    with SqliteJournal(tmp_path / "agent.db") as journal:
        agent: ReActAgent = kind(
            model=ScriptedModel(script),
            tools=[environment],
            journal=journal,
            audit=SqliteTrail(tmp_path / "audit.db"),
            tracing_provider=provider,
            tracing_content=True,
            step_log=lines,
        )
        seen: list[str] = []
        agent._watchers.add(lambda event: seen.append(repr(event)))
        agent.run_sync(f"my key is {KEY}, my mail {MAIL}")
    written = b"".join([file.read_bytes() for file in tmp_path.iterdir() if file.is_file()])
    spans = "".join([span.to_json() for span in kept.get_finished_spans()])
    told = "\n".join([written.decode(errors="replace"), spans, caplog.text, *lines.kept, *seen])
    assert "for [EMAIL_1]" in told
    assert [secret for secret in (KEY, KEY[:12], MAIL) if secret in told] == []


def environment(note: str) -> dict[str, str]:
    """Look at the environment."""
    return {"PROVIDER_KEY": KEY, "USER_MAIL": MAIL, "note": note}


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def debug(self, event: str, **facts: Any) -> None:
        self.kept.append(f"{event} {facts}")


def test_redaction_knows_every_kind_of_record_and_event() -> None:
    """A kind that it does not know is refused, so a new one is named here first."""
    kinds: set[type] = set(get_args(Record))
    kinds |= {kind for kind in vars(events).values() if is_event(kind)}
    assert sorted(kind.__name__ for kind in kinds - FIELDS.keys()) == []


def is_event(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event
