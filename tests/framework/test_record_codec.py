"""Records as bytes: what is written is read back, and what cannot be read says why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from callboard.agent import ReActAgent
from callboard.approvals import CallDigest, Proceed, Verdict
from callboard.errors import ConfigurationError, JournalDamaged
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.record_codec import VERSION, Document, decode, encode
from callboard.journaling.records import (
    LayerFact,
    MessageAdded,
    Record,
    RunFinished,
    Spent,
    ToolStarted,
    Withdrawn,
)
from callboard.journaling.transcript import State, fold
from callboard.json_text import FrozenDict
from callboard.messages import AssistantMessage, ThinkingBlock, ToolCall
from callboard.replies import Outcome
from callboard.testing import ScriptedModel, call, say
from callboard.tooling.tools import Effect
from tests.framework.kit import Ledger, agent_of, echo, shape

NOT_KEPT = "No result was kept: the call was interrupted, and it is not known whether it ran."
CUT_OFF = (
    "This call was started and then cut off; it is not known whether it took effect. Check "
    "before you do it again."
)
LATER = {Spent}  # kinds of record that came to version 1 after the file was written
V1 = Path(__file__).parents[1] / "data" / "journals" / "v1.jsonl"


def facts(value: object) -> object:
    """A state as plain values: its parts compare by identity, and two folds are to be equal."""
    kind: Any = type(value)
    if kind.__module__ == State.__module__:
        return [facts(getattr(value, name)) for name in kind.__slots__]
    match value:
        case list() | tuple():
            return [facts(item) for item in cast(Sequence[object], value)]
        case dict():
            items = cast(Mapping[str, object], value).items()
            return {key: facts(item) for key, item in items}
        case _:
            return value


def reread(records: Iterable[Record]) -> InMemoryJournal:
    """A new journal of what these records look like after they were bytes."""
    return InMemoryJournal([decode(encode(record)) for record in records])


def records_of(agent: ReActAgent) -> list[Record]:
    assert isinstance(agent.journal, InMemoryJournal)
    return list(agent.journal.records)


class AskingMixin(ReActAgent):
    """Asks about each charge, and notes that it did."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed) or call.name != "charge":
            return verdict
        await self._record("asking", {"ids": [call.id], "by": {"rule": None}})
        return verdict.ask("costs money", findings=("a", "b"))


def test_a_journal_of_version_1_is_read_and_folds_to_its_conversation() -> None:
    """The file was written by version 1 and is never written again."""
    records = [decode(line) for line in V1.read_bytes().splitlines()]
    assert {type(record) for record in records} == set(get_args(Record)) - LATER
    assert shape(fold(records).messages) == [
        "user: What is this?",
        "calls: c0",
        f"c0: unknown_outcome: {NOT_KEPT}",
        "user: Weather in Gent, and charge 12",
        "calls: c1 c2",
        'c1: {"city":"Gent","degrees":[11.5,null],"sky":"sunny ☀️"}',
        "c2: denied: nothing is deleted here",
        "calls: c3 c4",
        "c3: charged 12",
        "c4: unknown_tool: There is no tool 'nosuch'.",
        "user: be brief",
        "assistant: It is sunny.",
        "user: Look everywhere",
        "calls: c5",
        'c5: {"city":"Lier","degrees":[11.5,null],"sky":"sunny ☀️"}',
        "calls: c6",
        'c6: {"city":"Mol","degrees":[11.5,null],"sky":"sunny ☀️"}',
        "calls: c6b",
        'c6b: {"city":"Mol","degrees":[11.5,null],"sky":"sunny ☀️"}',
        "assistant: Sunny as far as I got.",
        "user: Ship it",
        "calls: c7",
        f"c7: unknown_outcome: {CUT_OFF}",
        "user: Was it shipped?",
        "assistant: It may have been shipped.",
    ]


def test_what_version_1_wrote_is_written_today_with_at_most_more_fields() -> None:
    """Another text for the same fact is a reason for version 2."""
    for line in V1.read_bytes().splitlines():
        record = decode(line)
        assert decode(encode(record)) == record
        assert holds(json.loads(encode(record)), json.loads(line)), line


def holds(new: Any, old: Any) -> bool:
    """Whether all that stood in the old document stands in the new one."""
    if not isinstance(old, dict):
        return bool(new == old)
    fields = cast(Document, old)
    return all([key in new and holds(new[key], fields[key]) for key in fields])


def test_thk_01_a_thought_and_its_signature_survive_byte_for_byte() -> None:
    thought = ThinkingBlock(text="Hm\r\n…", signature="a+/=\u2028 é\x00", redacted="gAAA==")
    record = MessageAdded(AssistantMessage(content=(thought,)))
    assert decode(encode(record)) == record


@pytest.mark.parametrize("text", ["\ud83d", "\udc4d tail", "👍 é \ud800", "\x00\x1b\u2028", ""])
def test_uni_01_every_text_of_a_record_survives(text: str) -> None:
    calls = ToolCall(id=text, name="echo", raw=text)
    for record in (Withdrawn(text), MessageAdded(AssistantMessage.of("", calls))):
        assert decode(encode(record)) == record


def test_a_text_with_lone_halves_is_still_json_in_utf_8() -> None:
    assert encode(Withdrawn("a\ud800")).endswith(rb'"item_id":"a\ud800"}')


def test_lone_halves_beside_values_that_json_does_not_have() -> None:
    fact = LayerFact("a\ud800", {"\udc00": [float("-inf"), 1.5, True, None]})
    expected = FrozenDict({"\udc00": ("-Infinity", 1.5, True, None)})
    assert decode(encode(fact)) == LayerFact("a\ud800", expected)


def test_a_digest_is_written_as_its_text() -> None:
    digest = CallDigest(ToolCall(id="a", name="charge"), b"key")
    started = ToolStarted("a", "charge", Effect.EFFECT, "agent/x:a", digest)
    read = decode(encode(started))
    assert (read, type(read.digest)) == (started, str)  # type: ignore[union-attr]


def test_a_layers_fact_comes_back_frozen() -> None:
    fact = LayerFact("guard", {"ids": ["a"], "why": {"rule": None}})
    read = decode(encode(fact))
    assert isinstance(read, LayerFact)
    assert read.payload == {"ids": ("a",), "why": {"rule": None}}
    assert type(read.payload["why"]) is FrozenDict


def test_a_value_that_json_cannot_hold_is_refused_by_name() -> None:
    finished = RunFinished("r", Outcome.STOPPED, output=object())
    with pytest.raises(ConfigurationError, match=r"'run_finished'.* object is no JSON.*Give JSON"):
        encode(finished)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ConfigurationError, match="'layer' record cannot be written"):
        encode(LayerFact("x", {"loop": loop}))


def test_not_a_number_is_written_as_json_all_the_same() -> None:
    assert b'"NaN"' in encode(LayerFact("x", {"loss": float("nan")}))


def test_deep_arguments_survive() -> None:
    """Arguments may be 200 deep, and a record puts them below that."""
    deep: Any = ()
    for _ in range(199):
        deep = (deep,)
    fact = LayerFact("x", FrozenDict(deep=deep))
    assert decode(encode(fact)) == fact


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"v":1,"kind":"withdr', "not JSON"),
        (b"[1]", "not list"),
        (b'{"kind":"withdrawn","item_id":"a"}', "version and a kind"),
        (b'{"v":true,"kind":"withdrawn","item_id":"a"}', "version and a kind"),
        (b'{"v":1,"kind":"withdrawn"}', "'withdrawn' is damaged: item_id"),
        (b'{"v":1,"kind":"withdrawn","item_id":7}', "'withdrawn' is damaged: item_id"),
        (b'{"v":1,"kind":"withdrawn","item_id":"a","how":1}', "has no how in version 1"),
        (b'{"v":0,"kind":"withdrawn","item_id":"a"}', "version 0, and the oldest version is 1"),
    ],
)
def test_damaged_bytes_are_refused_with_the_reason(data: bytes, told: str) -> None:
    with pytest.raises(JournalDamaged, match=told):
        decode(data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"v":99,"kind":"withdrawn","item_id":"a"}', "'withdrawn' has version 99.*version 1:"),
        (b'{"v":1,"kind":"dreamt"}', "no record 'dreamt' in version 1:"),
    ],
)
def test_what_a_newer_version_wrote_is_refused_with_the_remedy(data: bytes, told: str) -> None:
    with pytest.raises(JournalDamaged, match=f"{told} install the newer callboard"):
        decode(data)


def test_a_damaged_record_is_not_quoted() -> None:
    """Values may be secret, and an error goes to logs."""
    with pytest.raises(JournalDamaged) as damaged:
        decode(b'{"v":1,"kind":"withdrawn","item_id":["hunter2"]}')
    assert "hunter2" not in str(damaged.value)


def test_an_older_record_is_changed_into_what_this_version_writes() -> None:
    def renamed(document: Document) -> Document:
        return {"kind": "withdrawn", "item_id": document["item"]}

    old = b'{"v":0,"kind":"taken_back","item":"a"}'
    assert decode(old, upcasts={(VERSION - 1, "taken_back"): renamed}) == Withdrawn("a")


def test_an_older_record_that_did_not_change_is_read_as_it_is() -> None:
    old = b'{"v":0,"kind":"withdrawn","item_id":"a"}'
    assert decode(old, upcasts={(0, "other"): dict}) == Withdrawn("a")


@pytest.mark.anyio
async def test_a_reread_journal_folds_to_the_same_state() -> None:
    calls = say("One moment", call("charge", "a", amount=5), call("echo", "b", x="é"))
    agent, _ = agent_of([calls, "done"], Ledger().charge, echo, kind=AskingMixin)
    await agent.run("go")
    await agent.steer("be brief")
    live = agent._conversation.state
    assert facts(fold(reread(records_of(agent)).records)) == facts(live)


@pytest.mark.anyio
async def test_a_parked_run_goes_on_from_a_reread_journal() -> None:
    """The approval is for the very same call, so it holds in another process with the same key."""
    ledger, model = Ledger(), ScriptedModel([call("charge", "a", amount=5), "done"])
    options: dict[str, Any] = {"model": model, "tools": [ledger.charge], "digest_key": b"k" * 32}
    before = AskingMixin(**options)
    await before.run("go")
    await before.approve(before.pending[0].id, by="alice")
    after = AskingMixin(**options, journal=reread(records_of(before)))
    reply = await after.resume()
    assert (reply.text, ledger.entries) == ("done", [5])


@pytest.mark.anyio
async def test_the_next_prompt_continues_a_reread_conversation() -> None:
    agent, _ = agent_of([call("echo", "a", x="1"), "done"], echo)
    await agent.run("go")
    later, model = agent_of(["again"], echo, journal=reread(records_of(agent)))
    await later.run("and now?")
    assert model.requests[0].messages[:-1] == agent.messages
    assert shape(later.messages)[-2:] == ["user: and now?", "assistant: again"]
