"""The state of an agent as a fold of its records: rounds, pairing, and the sendable view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from callboard.approvals import Approval
from callboard.budget import Use
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
from callboard.messages import (
    REFUSALS,
    AssistantMessage,
    ConversationMessage,
    Observation,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import Purpose
from callboard.queues import Queues

_ANSWER = Purpose.ANSWER  # members of an enum take 0.15 us to look up


class Attempt:
    """One execution of a call: started, and finished once there is an observation."""

    __slots__ = ("observation", "started")

    def __init__(self, started: ToolStarted) -> None:
        self.started = started
        self.observation: Observation | None = None


class CallState:
    """What is known of one call."""

    __slots__ = ("approval_ids", "asked", "attempts", "call", "decided", "observation", "result")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.asked = call  # as the layers decide it again: the hook's form, once they have asked
        self.decided: Decided | None = None
        self.attempts: list[Attempt] = []
        self.approval_ids: tuple[str, ...] = ()  # the humans' questions that it had to wait for
        self.observation: Observation | None = None
        self.result: ToolResultMessage | None = None

    @property
    def final(self) -> ToolCall:
        """The call as it was decided: rewritten, or else as the model made it."""
        decided = self.decided
        return self.call if decided is None or decided.call is None else decided.call


class Round:
    """One assistant message with calls. It is closed when each of them has its result."""

    __slots__ = ("calls", "message", "open", "polls", "terminate")

    def __init__(self, message: AssistantMessage, calls: Sequence[ToolCall]) -> None:
        self.message = message
        self.calls = {call.id: CallState(call) for call in calls}
        self.open = len(calls)
        self.terminate = True  # until one result does not want it
        self.polls = False  # until a tool starts that is meant to be asked again and again

    def results(self) -> tuple[ToolResultMessage, ...]:
        """The results there are, in the order of the calls."""
        return tuple([call.result for call in self.calls.values() if call.result is not None])


class State:
    """One agent's state. `apply` is the only thing that changes it."""

    __slots__ = (
        "approvals",
        "call_ids",
        "epoch",
        "interrupted",
        "last_run",
        "layers",
        "messages",
        "prompts",
        "queues",
        "round",
        "run",
        "run_from",
        "seq",
        "stalled",
        "unanswered",
        "use",
        "wide",
    )

    def __init__(self) -> None:
        self.seq = 0  # records so far
        self.epoch = 0  # how often the journal was opened when it held records
        self.messages: list[ConversationMessage] = []  # only ever appended to
        self.round: Round | None = None  # the last one, if no message came after it
        self.run: RunStarted | None = None  # the run that is not finished
        self.run_from = 0  # how many messages there were when it started
        self.last_run: RunFinished | None = None
        self.prompts: dict[str, None] = {}  # dicts as sets: empty ones take a third of the memory
        self.call_ids: dict[str, None] = {}
        self.approvals: dict[str, Approval] = {}
        self.wide: tuple[str, ...] = ()  # those of them that hold for more than their own call
        self.queues = Queues()
        self.layers: dict[str, list[Mapping[str, Any]]] = {}
        self.use = Use()
        self.unanswered = False
        self.interrupted = False
        self.stalled = 0  # how often the open run was taken up since it last got on

    def apply(self, records: Sequence[Record]) -> None:
        """Fold these records in, in order."""
        self.seq += len(records)
        for record in records:
            _FOLD[type(record)](self, record)

    @property
    def open_calls(self) -> tuple[CallState, ...]:
        """The calls without a result, in order."""
        if self.round is None or not self.round.open:
            return ()
        return tuple([call for call in self.round.calls.values() if call.result is None])

    def is_pending(self, call: CallState) -> bool:
        """Whether the call waits for a human."""
        return any([self.approvals[id].is_pending for id in call.approval_ids])

    def asked_for(self, call: CallState) -> tuple[Approval, ...]:
        """The questions that the call had to wait for, answered or not."""
        return tuple([self.approvals[id] for id in call.approval_ids])

    def not_waiting(self, messages: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
        """Those that do not stand unanswered already: a failed prompt may be given again."""
        waiting: set[str] = set()
        for last in reversed(self.messages):
            if not isinstance(last, UserMessage):
                break
            waiting.add(last.id)
        return tuple([message for message in messages if message.id not in waiting])

    @property
    def pending(self) -> tuple[Approval, ...]:
        return tuple([a for a in self.approvals.values() if a.is_pending])


def fold(records: Sequence[Record]) -> State:
    """The state that these records make."""
    state = State()
    state.apply(records)
    return state


def _run_started(state: State, record: RunStarted) -> None:
    if state.run is None or state.run.run_id != record.run_id:
        state.use = Use()
        state.run_from = len(state.messages)
    state.run = record
    state.interrupted = False
    state.stalled = 0


def _run_finished(state: State, record: RunFinished) -> None:
    state.run = None
    state.last_run = record
    state.interrupted = False
    state.queues.run_ended()
    if state.wide:
        held = [id for id in state.wide if state.approvals[id].holds_in(None)]
        state.wide = tuple(held)


def _prompted(state: State, record: Prompted) -> None:
    state.prompts[record.prompt_id] = None
    state.use.attempt_turns = 0
    for message in record.messages:
        _add(state, message)


def _add(state: State, message: UserMessage) -> None:
    state.messages.append(message)
    state.round = None
    state.unanswered = True


def _model_attempted(state: State, record: ModelAttempted) -> None:
    use = state.use
    use.model_calls += 1
    use.active_s += record.active_s
    if record.usage.output_tokens is not None or record.usage.input_tokens is not None:
        use.usage = use.usage + record.usage
    if record.cost is not None:
        use.cost = (use.cost or 0.0) + record.cost


def _message_added(state: State, record: MessageAdded) -> None:
    message = record.message
    state.stalled = 0
    state.messages.append(message)
    calls = message.calls
    state.round = Round(message, calls) if calls else None
    state.unanswered = False
    for call in calls:
        state.call_ids[call.id] = None
    if record.purpose is _ANSWER:
        state.use.turns += 1
        state.use.attempt_turns += 1


def _call(state: State, call_id: str) -> CallState:
    assert state.round is not None  # records of a call come while its round is the last
    return state.round.calls[call_id]


def _decided(state: State, record: Decided) -> None:
    call = _call(state, record.call_id)
    call.decided = record
    if record.verdict == "ask" and record.call is not None:
        call.asked = record.call


def _tool_started(state: State, record: ToolStarted) -> None:
    round = state.round
    assert round is not None
    round.calls[record.call_id].attempts.append(Attempt(record))
    if record.polling:
        round.polls = True


def _tool_finished(state: State, record: ToolFinished) -> None:
    _call(state, record.call_id).attempts[record.attempt].observation = record.observation
    state.use.active_s += record.active_s


def _observed(state: State, record: Observed) -> None:
    round = state.round
    assert round is not None
    state.stalled = 0
    call, observation = round.calls[record.call_id], record.observation
    call.observation = observation
    call.result = ToolResultMessage(
        id=record.message_id,
        call_id=record.call_id,
        tool_name=call.call.name,
        content=observation.content,
        status=observation.status,
        payload=observation.payload,
    )
    round.open -= 1
    round.terminate = round.terminate and observation.terminate
    if round.open == 0:
        _round_closed(state, round)


def _round_closed(state: State, round: Round) -> None:
    outcomes: list[object] = []  # equal for rounds that bring nothing new
    for call in round.calls.values():
        result = call.result
        assert result is not None  # the round is closed
        state.messages.append(result)
        outcomes.append((result.tool_name, call.final.raw, result.content))
    if not round.polls:
        state.use.count_repeat(outcomes)
    state.unanswered = not round.terminate and round.message.stop_reason not in REFUSALS


def _queued(state: State, record: Queued) -> None:
    if record.lane == "control":
        state.interrupted = True
    else:
        state.queues.add(record)


def _taken(state: State, record: Taken) -> None:
    state.queues.remove(record.item_id)
    _add(state, record.message)


def _withdrawn(state: State, record: Withdrawn) -> None:
    state.queues.remove(record.item_id)


def _spent(state: State, record: Spent) -> None:
    state.use.spend(record)


def _approval_requested(state: State, record: ApprovalRequested) -> None:
    approval = record.approval
    state.approvals[approval.id] = approval
    _call(state, approval.call_id).approval_ids += (approval.id,)


def _approval_resolved(state: State, record: ApprovalResolved) -> None:
    asked = state.approvals[record.approval_id]
    state.stalled = 0
    if record.status == "revoked":  # its answer stays: it was given, and holds no longer
        state.approvals[asked.id] = replace(asked, status="revoked")
        state.wide = tuple([id for id in state.wide if id != asked.id])
        return
    answered = state.approvals[asked.id] = replace(
        asked, status=record.status, by=record.by, answer=record.answer, scope=record.scope
    )
    if answered.is_wide:
        state.wide += (asked.id,)


def _layer_fact(state: State, record: LayerFact) -> None:
    state.layers.setdefault(record.name, []).append(record.payload)


def _snapshot(state: State, record: Snapshot) -> None:
    state.messages = list(record.messages)
    state.round = state.last_run = None  # of what stood there before
    calls = [c for m in record.messages if isinstance(m, AssistantMessage) for c in m.calls]
    state.call_ids.update(dict.fromkeys([call.id for call in calls]))
    last = record.messages[-1] if record.messages else None
    state.unanswered = isinstance(last, (UserMessage, ToolResultMessage))


def _activated(state: State, record: Activated) -> None:
    state.epoch = record.epoch
    state.stalled += state.run is not None


def _nothing(state: State, record: Record) -> None:
    """A record for readers, which changes no state."""


_FOLD: dict[type[Any], Callable[[State, Any], None]] = {
    RunStarted: _run_started,
    RunFinished: _run_finished,
    Prompted: _prompted,
    ModelAttempted: _model_attempted,
    MessageAdded: _message_added,
    Decided: _decided,
    ToolStarted: _tool_started,
    ToolFinished: _tool_finished,
    Observed: _observed,
    Queued: _queued,
    Taken: _taken,
    Withdrawn: _withdrawn,
    Spent: _spent,
    ApprovalRequested: _approval_requested,
    ApprovalResolved: _approval_resolved,
    LayerFact: _layer_fact,
    Snapshot: _snapshot,
    Repaired: _nothing,
    DraftInterrupted: _nothing,
    Activated: _activated,
}
