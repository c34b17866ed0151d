"""What holds after every leg of every history: of what was said, and of what ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from callboard.journaling.records import ApprovalRequested, Record, ToolStarted
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage, Status, ToolResultMessage
from callboard.tooling.tools import Effect
from tests.framework.histories.layers import is_asked, is_costly, is_denied, is_late
from tests.framework.histories.tools import EFFECTS, Entry

CHILD = "child"  # the tool that is another agent
NEVER_RAN = frozenset({Status.DENIED, Status.SKIPPED, Status.INVALID, Status.UNKNOWN_TOOL})


class Broken(AssertionError):
    """A law does not hold. The text begins with the law."""


def broken_unless(holds: bool, law: str, *facts: object) -> None:
    if not holds:
        raise Broken(f"{law}: {'; '.join([str(fact)[:400] for fact in facts])}")


def check_said(messages: Sequence[ConversationMessage]) -> None:
    lines = [m.text for m in messages if m.role == "user" and "\n" not in m.text]
    texts = Counter(lines)  # what layers say has several, and may be said again
    twice = [text for text, times in texts.items() if times > 1]
    broken_unless(not twice, "nothing is said twice", twice)


def check_expired(state: State, expired: Collection[str]) -> None:
    """What nobody could answer in time is denied."""
    results = {m.call_id: m.status for m in state.messages if isinstance(m, ToolResultMessage)}
    for asked in state.approvals.values():
        late = asked.id in expired and asked.status in ("approved", "answered")
        broken_unless(not late, "no answer comes too late", asked)
        if asked.status == "expired" and asked.call_id in results and not asked.path:
            status = results[asked.call_id]
            broken_unless(status is Status.DENIED, "what expired is denied", asked, status)


def check_ledger(
    ledger: Sequence[Entry],
    records: Sequence[Record],
    state: State,
    *,
    layers: Sequence[str],
    cut: frozenset[str],
) -> None:
    """What ran may run, ran once where that matters, and is answered for. `cut`: calls that
    somebody cancelled by themselves.
    """
    told = [m for m in state.messages if isinstance(m, ToolResultMessage)]
    told += [] if state.round is None else state.round.results()
    results = {result.call_id: result.status for result in told}
    ran: dict[str, list[Entry]] = {}
    for entry in ledger:
        ran.setdefault(entry.call_id, []).append(entry)
        _check_guards(entry, records, state, layers)
    starts = Counter([r.call_id for r in records if isinstance(r, ToolStarted)])
    for call_id, all_entries in ran.items():
        effect = EFFECTS.get(all_entries[0].name, Effect.EFFECT)
        entries = all_entries
        if effect is Effect.PURE:  # its start rides with its result: a crash may forget both
            entries = all_entries[max(len(all_entries) - starts[call_id], 0) :]
        if not entries:
            continue
        first = entries[0]
        broken_unless(len({(e.x, e.key) for e in entries}) == 1, "the same again", entries)
        once = len(entries) == 1 or effect is not Effect.EFFECT
        broken_unless(once, "no effect twice", entries)
        status = results.get(call_id)
        broken_unless(status not in NEVER_RAN, "what ran is answered for", first, status)
        hidden = effect is Effect.EFFECT and status is Status.CANCELLED and call_id not in cut
        broken_unless(not hidden, "an effect is not shown as cancelled", first)
    for result in told:
        made_up = result.status is Status.OK and result.call_id not in ran
        elsewhere = result.tool_name == CHILD  # its own ledger tells
        broken_unless(elsewhere or not made_up, "what is ok has run", result.call_id)


def _check_guards(
    entry: Entry, records: Sequence[Record], state: State, layers: Sequence[str]
) -> None:
    is_guarded = "guard" in layers or "tool_guard" in layers
    broken_unless(
        not (is_guarded and is_denied(entry.name, entry.x)), f"nothing denied ran: {entry}"
    )
    asked = is_guarded and is_asked(entry.name, entry.x)
    costly = "spending" in layers and is_costly(entry.name, entry.x)
    late = "hasty" in layers and is_late(entry.x)
    if not asked and not costly and not late:
        return
    approvals = [r.approval for r in records if isinstance(r, ApprovalRequested)]
    good = [
        one
        for one in approvals
        if (one.call_id, one.tool_name) == (entry.call_id, entry.name)
        and one.preview.get("x", 0) == entry.x
        and state.approvals[one.id].status == "approved"
    ]
    broken_unless(bool(good), "what ran was approved", entry)
