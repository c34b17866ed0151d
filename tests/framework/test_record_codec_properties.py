"""The law of the record codec: whatever a record holds, its bytes are read back as its equal."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.approvals import Approval, ApprovalStatus, GrantScope
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import (
    Activated,
    ApprovalRequested,
    ApprovalResolved,
    Decided,
    DraftInterrupted,
    LayerFact,
    MessageAdded,
    ModelAttempted,
    Observed,
    Prompted,
    Queued,
    Record,
    Repaired,
    RunFinished,
    RunStarted,
    Snapshot,
    Spent,
    Taken,
    ToolFinished,
    ToolStarted,
    Withdrawn,
)
from callboard.json_text import freeze
from callboard.messages import (
    AssistantMessage,
    AudioBlock,
    FileBlock,
    ImageBlock,
    Observation,
    Status,
    StopReason,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from callboard.model import Purpose
from callboard.replies import Outcome, Prompt
from callboard.tooling.tools import Effect

LAW = settings(max_examples=150, deadline=None)


def is_whole(text: str) -> bool:
    """JSON joins two halves of a character that stand side by side; one alone stays."""
    return re.search("[\ud800-\udbff][\udc00-\udfff]", text) is None


text = st.text(st.characters(), max_size=12).filter(is_whole)
maybe = st.none() | text
seconds = st.floats(0, 1e9)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
mapping = st.dictionaries(text, values, max_size=3).map(freeze)
texts = st.builds(TextBlock, text=text)
media = [st.builds(k, media_type=text, data=maybe, url=maybe) for k in (ImageBlock, AudioBlock)]
files = st.builds(FileBlock, blob=maybe, name=maybe)
calls = st.builds(ToolCall, id=text, name=text, raw=text | values.map(json.dumps))
thoughts = st.builds(ThinkingBlock, text=text, signature=maybe, redacted=maybe)


def several(*kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.one_of(*kinds), max_size=3).map(tuple)


content = several(texts, *media, files)
count = st.none() | st.integers(0, 10**12)
usages = st.builds(Usage, input_tokens=count, output_tokens=count, cached_tokens=count)
answers = st.builds(
    AssistantMessage,
    id=text,
    content=several(texts, thoughts, calls, *media),
    stop_reason=st.sampled_from(StopReason),
    stop_detail=maybe,
    usage=usages,
    model=maybe,
)
users = st.builds(UserMessage, id=text, content=content)
statuses = st.sampled_from(Status)
found = st.builds(
    ToolResultMessage,
    id=text,
    call_id=text,
    tool_name=text,
    content=content,
    status=statuses,
    payload=values,
)
systems = st.builds(SystemMessage, id=text, content=content)
observations = st.builds(
    Observation,
    status=statuses,
    content=content,
    payload=values,
    details=maybe,
    terminate=st.booleans(),
)
approvals = st.builds(
    Approval,
    id=text,
    run_id=text,
    call_id=text,
    tool_name=text,
    digest=text,
    preview=mapping,
    reason=text,
    rule=maybe,
    findings=several(text),
    expires_at=st.none() | seconds | st.just(float("inf")),
    status=st.sampled_from(get_args(ApprovalStatus)),
    by=maybe,
    answer=maybe,
    scope=st.sampled_from(GrantScope),
    is_question=st.booleans(),
    path=several(text),
    approvers=st.none() | several(text),
)
prompts = st.builds(Prompt, text, several(users))
purposes = st.sampled_from(Purpose)
verdicts = st.sampled_from(["proceed", "deny", "ask"])
ends = st.sampled_from(["complete", "incomplete", "failed", "cancelled"])
lanes = st.sampled_from(["steering", "follow_up", "control"])
flags = st.booleans()
numbers = st.integers(0, 10**6)

RECORDS: dict[type[Record], st.SearchStrategy[Any]] = {
    RunStarted: st.builds(RunStarted, text, prompts, maybe),
    RunFinished: st.builds(
        RunFinished, text, st.sampled_from(Outcome), text, maybe, flags, maybe, values
    ),
    Prompted: st.builds(Prompted, text, several(users)),
    ModelAttempted: st.builds(ModelAttempted, text, purposes, ends, usages, seconds, maybe),
    MessageAdded: st.builds(MessageAdded, answers, purposes),
    Decided: st.builds(Decided, text, verdicts, st.none() | calls, maybe, maybe),
    ToolStarted: st.builds(ToolStarted, text, text, st.sampled_from(Effect), text, text, flags),
    ToolFinished: st.builds(ToolFinished, text, numbers, observations, seconds),
    Observed: st.builds(Observed, text, observations, text),
    Queued: st.builds(Queued, text, lanes, content, flags),
    Taken: st.builds(Taken, text, users),
    Withdrawn: st.builds(Withdrawn, text),
    ApprovalRequested: st.builds(ApprovalRequested, approvals),
    ApprovalResolved: st.builds(
        ApprovalResolved,
        text,
        st.sampled_from(get_args(ApprovalStatus)),
        maybe,
        maybe,
        st.sampled_from(GrantScope),
    ),
    LayerFact: st.builds(LayerFact, text, mapping),
    Repaired: st.builds(Repaired, several(text)),
    DraftInterrupted: st.builds(DraftInterrupted, answers, text),
    Activated: st.builds(Activated, numbers),
    Spent: st.builds(Spent, text, numbers, usages, st.none() | seconds),
    Snapshot: st.builds(Snapshot, several(systems, users, answers, found)),
}


def test_every_kind_of_record_is_tried() -> None:
    assert set(RECORDS) == set(get_args(Record))


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.kind)
@settings(LAW, max_examples=40)
@given(data=st.data())
def test_a_record_is_read_back_as_its_equal(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(RECORDS[kind])
    written = encode(record)
    assert b"\n" not in written
    assert decode(written) == record
    assert encode(decode(written)) == written


@LAW
@given(st.one_of(*RECORDS.values()))
def test_a_record_is_json_for_every_reader(record: Record) -> None:
    """Strictly: without NaN and Infinity, and in UTF-8."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document = json.loads(encode(record).decode(), parse_constant=refuse)
    assert (document["v"], document["kind"]) == (1, record.kind)
