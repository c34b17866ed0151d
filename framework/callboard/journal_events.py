"""Events made of a journal again: what a watcher saw, for those who come later or missed some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Concatenate, Literal, ParamSpec

from callboard.actors.address import Address
from callboard.events import (
    AgentEnd,
    AgentStart,
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    LimitReached,
    MessageEnd,
    MessageStart,
    Source,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from callboard.journaling.records import (
    ApprovalRequested,
    ApprovalResolved,
    DraftInterrupted,
    MessageAdded,
    ModelAttempted,
    Observed,
    Prompted,
    Record,
    RunFinished,
    RunStarted,
    Taken,
)
from callboard.journaling.transcript import State
from callboard.messages import AssistantMessage, ConversationMessage, UserMessage
from callboard.model import Purpose

P = ParamSpec("P")


def events_of(records: Sequence[Record], address: Address) -> Iterator[Event]:
    """The events of an agent's runs, as its journal (`await journal.read()`) tells them.

    All that watchers saw but for what no record holds: deltas, the progress of tools, retries,
    warnings, repaired arguments, answers of which nothing was kept, and the stops of a run that
    waited for a human. The calls of a message start with it. `sequence` counts these events.
    """
    limits = {one.run_id: one.limit for one in records if isinstance(one, RunFinished)}
    retelling = _Retelling(address, limits)
    for record in records:
        yield from retelling.of(record)


class _Retelling:
    """Folds the records, and tells what each of them means to a watcher."""

    def __init__(self, address: Address, limits: dict[str, str | None]) -> None:
        self._state = State()
        self._limits = limits
        self._source = Source(address, "")
        self._sequence = 0
        self._turn = 0
        self._turn_is_open = False
        self._limit_is_told = False
        self._draft: AssistantMessage | None = None
        self._events: list[Event] = []

    def of(self, record: Record) -> list[Event]:
        self._events = []
        self._state.apply((record,))
        match record:
            case RunStarted():
                self._run_starts(record)
            case Prompted(messages=messages):
                self._user_said(*messages)
            case Taken(message=message):
                self._user_said(message)
            case ModelAttempted(purpose=purpose):
                self._model_asked(purpose)
            case DraftInterrupted(partial=partial):
                self._draft = partial
            case MessageAdded():
                self._model_said(record)
            case Observed():
                self._observed(record)
            case ApprovalRequested(approval=approval):
                self._tell(ApprovalAsked, approval)
            case ApprovalResolved(approval_id=id):
                self._tell(ApprovalAnswered, self._state.approvals[id])
            case RunFinished():
                self._run_ends(record)
            case _:
                pass
        return self._events

    def _tell(
        self,
        event: Callable[Concatenate[Source, int, P], Event],
        *fields: P.args,
        **named: P.kwargs,
    ) -> None:
        self._sequence += 1
        self._events.append(event(self._source, self._sequence, *fields, **named))

    def _run_starts(self, run: RunStarted) -> None:
        self._source = Source(self._source.address, run.run_id, run.parent_run)
        self._sequence = self._turn = 0
        self._turn_is_open = self._limit_is_told = False
        self._tell(AgentStart, run.prompt)

    def _begin_turn(self) -> None:
        if not self._turn_is_open:
            self._turn += 1
            self._turn_is_open = True
            self._tell(TurnStart, self._turn)

    def _end_turn(self) -> None:
        if not self._turn_is_open:
            return
        self._turn_is_open = False
        state = self._state
        said = [m for m in state.messages[state.run_from :] if isinstance(m, AssistantMessage)]
        results = state.round.results() if state.round is not None else ()
        self._tell(TurnEnd, self._turn, said[-1] if said else None, results)

    def _tell_limit(self) -> None:
        limit = self._limits.get(self._source.run_id)
        if limit and not self._limit_is_told:
            self._limit_is_told = True
            self._tell(LimitReached, limit)

    def _user_said(self, *messages: UserMessage) -> None:
        self._begin_turn()
        for message in messages:
            self._message("user", message.id, message)

    def _message(
        self,
        role: Literal["user", "assistant", "tool"],
        id: str,
        message: ConversationMessage | None,
    ) -> None:
        self._tell(MessageStart, id, role)
        self._tell(MessageEnd, id, message)

    def _model_asked(self, purpose: Purpose) -> None:
        if purpose is Purpose.ANSWER:
            self._begin_turn()
        elif purpose is Purpose.SUMMARY:
            self._tell_limit()

    def _model_said(self, added: MessageAdded) -> None:
        message = added.message
        self._model_asked(added.purpose)  # a layer may have answered without the model
        self._message("assistant", message.id, message)
        for call in message.calls:
            self._tell(ToolStart, call)
        if added.purpose is Purpose.ANSWER and not message.calls:
            self._end_turn()

    def _observed(self, record: Observed) -> None:
        round = self._state.round
        assert round is not None  # the fold has found the call in it
        name = round.calls[record.call_id].call.name
        self._tell(ToolEnd, record.call_id, name, record.observation)
        if not round.open:
            for result in round.results():
                self._message("tool", result.id, result)
            self._end_turn()

    def _run_ends(self, finished: RunFinished) -> None:
        if self._draft is not None:
            self._message("assistant", self._draft.id, None)
            self._draft = None
        if finished.limit is not None:
            self._tell_limit()
        self._end_turn()
        self._tell(AgentEnd, finished.outcome, finished.text)
