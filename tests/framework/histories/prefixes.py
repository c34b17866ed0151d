"""What holds for every prefix of every journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from callboard.journaling.records import (
    MessageAdded,
    Observed,
    Prompted,
    Queued,
    Record,
    RunFinished,
    RunStarted,
    Taken,
    ToolStarted,
    Withdrawn,
)
from callboard.journaling.transcript import State
from callboard.messages import Status
from callboard.queues import SteeringPolicy
from callboard.replies import Outcome
from callboard.testing import pairing_faults
from tests.framework.histories.history import History
from tests.framework.histories.laws import broken_unless

CUT_OFF = frozenset({Outcome.INTERRUPTED, Outcome.STOPPED, Outcome.FAILED})


class Prefixes:
    """Reads a journal record by record. `state` is what those read so far make."""

    def __init__(self, history: History) -> None:
        self.state = State()
        self._waiting: set[str] = set()  # queued, neither taken nor withdrawn
        self._closed_unrun = ""  # a call that was cancelled before it started
        self._at_once = history.moment_s is None  # no append is on its way while others come
        self._steering_stops = history.policy is not SteeringPolicy.AFTER_BATCH

    def check(self, records: Sequence[Record]) -> State:
        twice = [key for key, times in Counter(map(id, records)).items() if times > 1]
        broken_unless(not twice, "each record is written once", len(twice))
        for record in records:
            self._check_round(record)
            self._check_queues(record)
            self._check_ends(record)
            self.state.apply([record])
            waiting = {item.item_id for item in self.state.queues.items()}
            broken_unless(waiting == self._waiting, "what is queued waits", waiting)
            if isinstance(record, (Observed, MessageAdded)) and not self.state.open_calls:
                faults = pairing_faults(self.state.messages)
                broken_unless(not faults, "calls and results pair", faults)
        return self.state

    def _check_round(self, record: Record) -> None:
        state = self.state
        match record:
            case MessageAdded() | Prompted() | Taken() | RunFinished():
                open_calls = [call.call.id for call in state.open_calls]
                broken_unless(not open_calls, "nothing comes while calls are open", record)
            case Observed(call_id=id) | ToolStarted(call_id=id):
                assert state.round is not None
                result = state.round.calls[id].result
                broken_unless(result is None, "each call has one result", record, result)
            case RunStarted(run_id=id):
                same = state.run is None or state.run.run_id == id
                broken_unless(same, "one run at a time", record, state.run)
            case _:
                pass

    def _check_queues(self, record: Record) -> None:
        match record:
            case Queued(item_id=id, lane="steering" | "follow_up"):
                broken_unless(id not in self._waiting, "a message is queued once", record)
                self._waiting.add(id)
            case Taken(item_id=id) | Withdrawn(item_id=id):
                broken_unless(id in self._waiting, "taken or withdrawn once", record)
                self._waiting.remove(id)
            case _:
                pass

    def _check_ends(self, record: Record) -> None:
        """Interrupts and steering stop what has not started; nothing else does."""
        state = self.state
        match record:
            case RunStarted():
                self._closed_unrun = ""
            case Observed(call_id=id, observation=observation):
                assert state.round is not None
                started = bool(state.round.calls[id].attempts)
                if observation.status is Status.CANCELLED and not started:
                    self._closed_unrun = id
            case RunFinished(outcome=outcome):
                rightly = not self._closed_unrun or outcome in CUT_OFF
                broken_unless(rightly, "only a cut closes calls unrun", self._closed_unrun, outcome)
                wrong = state.interrupted and outcome in (Outcome.FINISHED, Outcome.MAX_ITERS)
                broken_unless(not wrong or not self._at_once, "an interrupt interrupts", outcome)
                waits = [item.item_id for item in state.queues.items() if item.wake]
                done = outcome is Outcome.FINISHED
                broken_unless(not done or not waits, "who is done has nothing waiting", waits)
            case ToolStarted(call_id=id):
                assert state.round is not None
                first = not state.round.calls[id].attempts
                steered = self._steering_stops and bool(state.queues.steering)
                stopped = state.interrupted or steered
                wrong = first and stopped and self._at_once
                broken_unless(not wrong, "nothing starts after a stop", record)
            case _:
                pass
