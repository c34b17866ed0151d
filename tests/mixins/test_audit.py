"""The audit writes each decision and each execution, or it does not happen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callboard import CommitFailed, Hooks, SqliteJournal
from callboard.journaling.record_codec import decode
from callboard.journaling.sqlite_file import entries
from callboard.testing import ScriptedModel, call, say, stream
from callboard_mixins import JsonLinesTrail
from callboard_mixins.audit.chain import twin_of
from callboard_mixins.audit.entries import facts_of
from callboard_mixins.audit.verifying import Comparison, Twin, compare
from tests.mixins.audit_kit import (
    AuditedAgent,
    GuardedAgent,
    audited,
    checked,
    facts,
    one_run,
    told,
)

pytestmark = pytest.mark.anyio
KEY = "sk-a1b2c3d4e5f6g7h8i9j0k1l2"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


class FullTrail:
    """A trail whose disk is full once a kind of entry comes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kinds: list[str] = []

    def write(self, agent: str, body: Any, *, is_intent: bool) -> str:
        if body["kind"] == self.kind:
            raise CommitFailed("the disk is full")
        self.kinds.append(body["kind"])
        return ""


async def test_a_run_is_told_from_its_start_to_its_end(path: Path) -> None:
    await audited([call("send", "a", to="Ada"), "done"], JsonLinesTrail(path)).run("go")
    assert told(path) == [
        ("run_started", ""),
        ("message", ""),
        ("tool_started", "a"),
        ("tool_finished", "a"),
        ("observed", "a"),
        ("run_finished", ""),
    ]


async def test_unknown_and_invalid_calls_are_written(path: Path) -> None:
    script = [say(call("nothing", "a"), call("send", "b", wrong=1)), "done"]
    await audited(script, JsonLinesTrail(path)).run("go")
    assert [fact["status"] for fact in facts(path, "observed")] == ["unknown_tool", "invalid"]
    assert facts(path, "tool_started") == []


async def test_qp_25_a_denied_call_is_written_with_its_rule(path: Path) -> None:
    script = [call("wipe", "a"), "done"]
    await audited(script, JsonLinesTrail(path), kind=GuardedAgent).run("go")
    (decided,) = facts(path, "decided")
    assert (decided["verdict"], decided["reason"], decided["rule"]) == ("deny", "never", "no-wipe")
    assert [fact["status"] for fact in facts(path, "observed")] == ["denied"]


async def test_who_approved_what_is_written(path: Path) -> None:
    script = [call("pay", "a", amount=5), "done"]
    agent = audited(script, JsonLinesTrail(path), kind=GuardedAgent)
    reply = await agent.run("go")
    await agent.approve(reply.pending[0].id, by="ada")
    await agent.resume()
    (asked,), (answer,) = facts(path, "approval_requested"), facts(path, "approval_resolved")
    assert (asked["preview"], asked["rule"]) == ({"amount": 5}, "pay-asks")
    assert (answer["approval"], answer["status"], answer["by"]) == (
        asked["approval"],
        "approved",
        "ada",
    )


async def test_arguments_that_a_layer_changed_are_written_as_they_ran(path: Path) -> None:
    script = [call("send", "a", to="Ada"), "done"]
    hooks = Hooks(before_tool=lambda call: call.with_arguments({"to": "Bob"}))
    await audited(script, JsonLinesTrail(path), hooks=hooks).run("go")
    assert facts(path, "decided")[0]["arguments"] == {"to": "Bob"}


async def test_an_entry_that_cannot_be_written_stops_the_effect(path: Path) -> None:
    ran: list[str] = []

    def act() -> None:
        """Act."""
        ran.append("ran")

    agent = AuditedAgent(model=_model(call("act")), tools=[act], audit=FullTrail("tool_started"))
    with pytest.raises(CommitFailed, match="disk is full"):
        await agent.run("go")
    assert ran == []


async def test_what_cannot_be_audited_is_not_stored(path: Path) -> None:
    agent = AuditedAgent(model=_model("hi"), audit=FullTrail("run_started"))
    with pytest.raises(CommitFailed):
        await agent.run("go")
    assert agent.messages == ()


async def test_deltas_and_conversation_are_not_audited(path: Path) -> None:
    trail = FullTrail("nothing")
    await audited([stream("a", "b", "c")], trail).run("secret plans")
    assert trail.kinds == ["run_started", "run_finished"]


async def test_secrets_are_hidden_behind_a_keyed_digest(path: Path) -> None:
    script = [say(call("send", "a", to=KEY), call("send", "b", to=KEY)), "done"]
    await audited(script, JsonLinesTrail(path)).run("go")
    texts = [fact["text"] for fact in facts(path, "observed")]
    assert KEY not in str(checked(path).entries)
    assert texts[0] == texts[1]
    assert texts[0].startswith("sent to [API_KEY ")


async def test_a_long_text_is_cut(path: Path) -> None:
    await audited([call("send", "a", to="x" * 5000), "done"], JsonLinesTrail(path)).run("go")
    assert facts(path, "observed")[0]["text"].endswith("... (5008 characters)")


async def test_a_log_is_told_each_entry(path: Path) -> None:
    log = Lines()
    script = [call("nothing", "a"), "done"]
    await audited(script, JsonLinesTrail(path), audit_log=log, name="shop").run("go")
    assert log.bound == {"agent": "agent/shop"}
    assert [kind for kind, _ in log.kept] == [kind for kind, _ in told(path)]


class Lines:
    """A logger that keeps its lines."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, dict[str, Any]]] = []
        self.bound: dict[str, Any] = {}

    def bind(self, **bound: Any) -> Lines:
        self.bound = bound
        return self

    def info(self, event: str, **facts: Any) -> None:
        self.kept.append((event, facts))


def twins(file: Path, key: bytes) -> list[Twin]:
    """The records in a journal, as an audit sees them."""
    found = list(entries(file, "agent/agent"))
    audited = [facts_of(decode(entry.record)) is not None for entry in found]
    return [
        Twin(twin_of(entry.record, key) if is_audited else None)
        for entry, is_audited in zip(found, audited, strict=True)
    ]


def journaled(path: Path, file: Path) -> tuple[Any, list[Twin]]:
    """A run with its journal: its entries and the journal's twins."""
    with SqliteJournal(file) as journal:
        one_run(JsonLinesTrail(path), journal=journal)
        return checked(path).entries, twins(file, journal.digest_key)


def test_each_entry_has_its_twin_in_the_journal(path: Path, tmp_path: Path) -> None:
    entries, found = journaled(path, tmp_path / "agent.db")
    assert compare(entries, found) == Comparison()


def test_a_changed_journal_is_found(path: Path, tmp_path: Path) -> None:
    entries, found = journaled(path, tmp_path / "agent.db")
    place = entries[2]["journal"]
    found[place] = Twin("0" * 64)
    assert compare(entries, found).faults == (
        f"entry 3 is not what the journal holds as record {place}",
    )


def test_a_record_that_the_audit_misses_is_found(path: Path, tmp_path: Path) -> None:
    entries, found = journaled(path, tmp_path / "agent.db")
    (problem,) = compare(entries[:-1], found).faults
    assert problem == f"record {entries[-1]['journal']} of the journal is not in the audit"


def test_an_entry_ahead_of_the_journal_is_a_crash_and_no_fault(path: Path, tmp_path: Path) -> None:
    entries, found = journaled(path, tmp_path / "agent.db")
    assert compare(entries, found[: entries[-1]["journal"]]) == Comparison()


async def test_what_was_audited_and_never_stored_is_replaced(path: Path, tmp_path: Path) -> None:
    """A crash between the audit and the journal: the next run writes other records there."""

    class Lossy(SqliteJournal):
        def append_at_once(self, records: Any, expected: int) -> bool:
            return False

        async def append(self, records: Any, expected: int) -> None:
            if any(record.kind == "tool_started" for record in records):
                raise CommitFailed("the journal's disk is full")
            await super().append(records, expected)

    file = tmp_path / "agent.db"
    with Lossy(file) as journal, pytest.raises(CommitFailed):
        await audited([call("send", "a", to="x")], JsonLinesTrail(path), journal=journal).run("go")
    with SqliteJournal(file) as again:
        await audited(["done"], JsonLinesTrail(path), journal=again).resume()
        assert compare(checked(path).entries, twins(file, again.digest_key)) == Comparison()


def test_entries_are_canonical_json(path: Path) -> None:
    one_run(JsonLinesTrail(path))
    for line in path.read_text().splitlines():
        again = json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))
        assert line == again


def _model(*script: Any) -> Any:
    return ScriptedModel(script)
