"""One process of a replay: an agent whose model, tools and people are the recorded ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

import anyio
from anyio.lowlevel import checkpoint

from callboard.agent import ReActAgent
from callboard.approvals import CallWaits, Verdict
from callboard.deciding import Step
from callboard.errors import CallboardError, ConfigurationError, StopRun
from callboard.journaling.journal import Journal
from callboard.journaling.records import ApprovalResolved, Queued, RunStarted
from callboard.messages import ConversationMessage, Observation, Status, ToolCall, ToolResultMessage
from callboard.model import Delta, ModelRequest, Purpose
from callboard.queues import SteeringPolicy
from callboard.replies import Reply, RunFailed
from callboard.testing.cassette import Cassette, RecordedAnswer
from callboard.testing.difference import Halted
from callboard.testing.recorded_model import RecordedModel, rebased
from callboard.testing.tape import Tape
from callboard.testing.taped_state import TapedState
from callboard.tooling.results import Keep
from callboard.tooling.tools import Tool, ToolContext

STALLED_S = 1e6  # virtual: whoever still waits then, waits for what does not come
MISSING = "this record did not come"

Settle = Callable[[Reply, Exception | None], Awaitable[Reply | None]]


class Life:
    """An agent on a tape, from where its process began to where it ended.

    `asked` counts the answers that were given before.
    """

    def __init__(self, tape: Tape, cassette: Cassette, *, asked: int, notes: list[str]) -> None:
        self._tape = tape
        self._cassette = cassette
        self.asked = asked
        self._notes = notes
        self._progress = anyio.Event()
        self._agent: ReActAgent | None = None

    @property
    def agent(self) -> ReActAgent:
        assert self._agent is not None
        return self._agent

    @property
    def model_name(self) -> str:
        """The name of the model that is asked next, or was asked last."""
        answers = self._cassette.answers
        return answers[min(self.asked, len(answers) - 1)].attempt.model if answers else "recorded"

    def take(self, agent: ReActAgent, journal: Journal) -> None:
        """Have this agent live it: nothing of it reaches the world any more, but for its layers.

        Raises:
            ConfigurationError: it does not write into the journal that it was given.
        """
        if agent.journal is not journal:
            raise ConfigurationError(
                f"the agent {agent.name!r} does not use the journal it was given: pass journal= on"
            )
        self._agent = agent
        agent._given = ()  # the conversation that it was made with is in the journal
        agent._requests.model = RecordedModel(self, agent._requests.model)
        agent._reasoner.around = partial(rebased, self, agent._reasoner.around)
        agent._calls.performer.execute = self._execute
        agent._calls.decider._step = partial(self._decide, agent._calls.decider._step)
        agent._hooks = replace(agent._hooks, steering_supplier=None, follow_up_supplier=None)
        agent._is_supplied = False
        if agent._in_place is not None:
            agent._in_place.approver = _nobody
        vars(agent)["_stop_below"] = _nothing
        vars(agent)["_settle"] = partial(self._settle, agent._settle)
        agent._conversation.state = TapedState(self._tape)
        self._tape.moved = self._moved

    # -- driving ---------------------------------------------------------------------------------

    async def play(self) -> None:
        """Do what people did, and let the agent go on, until the tape is over or breaks off."""
        tape = self._tape
        while not tape.is_broken_off:
            at, act = tape.at, self._next_act()
            if act is not None:
                await self._drive(act)
            if tape.at == at and not tape.is_broken_off:
                tape.note("nothing more", MISSING)

    def _next_act(self) -> Callable[[], Awaitable[object]] | None:
        """What was done to the agent that is idle; None if nothing that it could go on with."""
        tape, agent = self._tape, self.agent
        numbers = tape.given.groups.get(tape.at, ())
        if not numbers and agent._conversation._riders:
            numbers = tape.due_behind_riders()
        record = tape.recorded[tape.at]
        if numbers:
            return partial(self._give_when_idle, numbers)
        if isinstance(record, RunStarted) and record.prompt.messages:
            return partial(agent._run_once, record.run_id, record.prompt, is_again=False)
        if isinstance(record, RunStarted) or agent._conversation.state.run is not None:
            return agent.resume
        return None

    async def _drive(self, act: Callable[[], Awaitable[object]]) -> None:
        try:
            await act()
        except (Halted, RunFailed):
            return
        except CallboardError as error:
            if not self._tape.is_over:
                self._tape.note(f"{type(error).__name__}: {error}", MISSING)

    # -- what people did -------------------------------------------------------------------------

    async def _give_when_idle(self, numbers: tuple[int, ...]) -> None:
        record = self._tape.recorded[numbers[0]]
        if isinstance(record, Queued) and record.lane == "control":
            self._tape.giving(numbers)
            await self.agent.interrupt()
        else:
            self._give(numbers)

    async def _settle(self, settle: Settle, reply: Reply, cause: Exception | None) -> Reply | None:
        while numbers := self._tape.due_at_end():
            self._give(numbers)
        return await settle(reply, cause)

    def _moved(self) -> None:
        """Something was written: give what came behind it, and wake whoever waits for it."""
        progress, self._progress = self._progress, anyio.Event()
        progress.set()
        if self._agent is None or self._tape.difference is not None:
            return
        numbers = self._tape.due()
        if numbers:
            self._give(numbers)

    def _give(self, numbers: tuple[int, ...]) -> None:
        """Write the records as the people did, and do what that does to what runs."""
        agent = self.agent
        records = self._tape.giving(numbers)
        agent._conversation.commit(*records)  # in memory, so it is done at once
        match records[0]:
            case Queued(lane="control"):
                if agent._interruption is not None:
                    agent._interruption.cancel("interrupted")
            case Queued(lane="steering"):
                if agent._rules.steering_policy is SteeringPolicy.INTERRUPT:
                    agent._calls.performer.cancel_all()
            case ApprovalResolved(status="revoked", approval_id=id):
                agent._calls.decider.unseal(agent._conversation.state.approvals[id])
            case _:
                pass

    # -- the model -------------------------------------------------------------------------------

    async def answer(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The stream of the next recorded answer.

        Raises:
            Halted: the recorded process did not live to it, or was not asked.
            ModelError: as it is recorded.
        """
        answer = await self._next_answer()
        is_cancelled = answer.attempt.ended == "cancelled"
        if not is_cancelled:
            self._give_before(answer.number)
        self._note_view(answer, request)
        if answer.deltas is None:
            self._tape.halt_unrecorded(answer.number)
        for delta in answer.deltas or ():
            yield delta
        if answer.failure is not None:
            raise answer.failure.with_traceback(None)
        if is_cancelled:  # in the middle of it, by what came now
            self._give_before(answer.number)
            await self._cut_off()

    async def _next_answer(self) -> RecordedAnswer:
        answers = self._cassette.answers
        answer = answers[self.asked] if self.asked < len(answers) else None
        number = None if answer is None else answer.number
        while self.agent._conversation._riders:
            numbers = self._tape.due_behind_riders(before=number)
            if not numbers:
                break
            self._give(numbers)
            await checkpoint()  # an interrupt strikes here
        if answer is None:
            self._asked_beyond()
        self.asked += 1
        self._tape.check_asks_now(answer.number)
        return answer

    def _give_before(self, number: int) -> None:
        while numbers := self._tape.due(before=number):
            self._give(numbers)

    def _asked_beyond(self) -> NoReturn:
        """There is no answer any more: the recording ends in this call, or they differ."""
        self._tape.check_asks_now(len(self._tape.recorded))
        self._tape.differ("the model is asked", "there is no answer any more")

    def _note_view(self, answer: RecordedAnswer, request: ModelRequest) -> None:
        if answer.attempt.purpose is not Purpose.ANSWER:
            return
        told = self.agent._conversation.state.messages
        if list(map(_said, request.messages)) != list(map(_said, told)):
            self._notes.append(
                f"record {answer.number}: the request's {len(request.messages)} messages are not"
                f" the conversation's {len(told)}: a layer or a hook makes them"
            )

    # -- the tools -------------------------------------------------------------------------------

    async def _decide(self, step: Step, call: ToolCall) -> Verdict:
        """The verdict of the code, on what was there when it was recorded."""
        self._give_before(self._tape.place_of_decision(call.id))
        return await step(call)

    async def _execute(
        self, tool: Tool, call: ToolCall, context: ToolContext, *, keep: Keep | None = None
    ) -> Observation:
        """In the place of the tool: what came of it, or the way in which it did not end."""
        recorded = self._cassette.call(call.id, context.attempt - 1)
        if recorded.number is not None:
            await self._in_order(recorded.number, call.id, stops=recorded.stop is not None)
        if recorded.ended == "asked":
            raise CallWaits(*recorded.asked)
        if recorded.stop is not None:
            raise StopRun(recorded.stop.text, output=recorded.stop.output)
        if recorded.observation is not None:
            return recorded.observation
        if recorded.ended == "cut_off" or not self._tape.is_decided_otherwise(call.id):
            await self._cut_off()
        return Observation.of("This call was not run when it was recorded.", Status.FAILED)

    async def _in_order(self, number: int, call_id: str, *, stops: bool) -> None:
        while self._tape.holds_back(number, call_id, stops=stops):
            await self._progressed()

    async def _cut_off(self) -> None:
        """Wait for what ended this: a crash, a cancel, or else an interrupt or a limit."""
        while not self._tape.is_broken_off:
            await self._progressed()
        raise Halted("the recorded agent was cut off here")

    async def _progressed(self) -> None:
        """Wait until something is written.

        Raises:
            Halted: nothing is, any more.
        """
        with anyio.move_on_after(STALLED_S):
            await self._progress.wait()
            return
        self._tape.differ("nothing more", MISSING)


async def _nobody(*_: object) -> None:
    """The approver of a replay: answers are in the journal."""


async def _nothing() -> None:
    """Sub-agents are not there in a replay."""


def _said(message: ConversationMessage) -> tuple[object, ...]:
    call_id = message.call_id if isinstance(message, ToolResultMessage) else None
    return message.role, message.content, call_id
