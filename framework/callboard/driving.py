"""The envelope of a run: its start, its one end, and everything that can cut it off.

`ReActAgent` is the loop inside; this is what stays the same whatever the loop does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import anyio

from callboard.chain import inside
from callboard.closing import closing_all
from callboard.entering import Entered
from callboard.errors import CommitFailed, StopRun
from callboard.events import AgentEnd, AgentStart, TurnEnd, TurnStart, Warned
from callboard.journaling.records import Record, RunFinished, RunStarted
from callboard.journaling.transcript import Round, State
from callboard.messages import AssistantMessage
from callboard.nested import Nested
from callboard.replies import Outcome, Prompt, Reply, RunEnds, RunFailed
from callboard.requests import Requests
from callboard.tooling.deadlines import new_scope
from callboard.turnstile import Turnstile

CLOSING_S = 10.0  # what closing a cancelled run may take, shielded

Ending = tuple[Reply, Exception | None]  # and what the run failed of


class Driving(Nested):
    """Takes a run from its start to its end, one at a time."""

    _requests: Requests  # made by the agent

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self._turnstile = Turnstile()
        self._turn = 0
        self._turn_is_open = False
        self._end_is_due = False  # the start of a run was told, and not its end
        self._passed_by: frozenset[str] = frozenset()  # messages that waited when it was done
        self._entered: Entered | None = None  # the model of the run that is driven, if it wants it

    @abstractmethod
    async def reply(self, prompt: Prompt) -> Reply:
        """Step: answer one prompt."""

    # -- a run ----------------------------------------------------------------------------------

    async def _drive(self, run: RunStarted) -> Reply:
        """Take a run from where it stands to its end, or to where it waits for a human."""
        self._begin(run)
        if self._conversation.state.run is not run:
            await self._commit_start(run)
        self._turn = self._conversation.state.use.turns
        self._conversation.start_clock()
        self._watchers.tell(AgentStart, run.prompt)
        self._end_is_due = True
        for name, defect in self._calls.decider.toolbox.quarantined:
            self._warn(f"the tool {name!r} is not offered: {defect}")
        around = inside.get()
        if around:
            self._take_lease(run.run_id)
        entered = inside.set((*around, self))
        try:
            if self._conversation.state.approvals:
                await self._expire()
            self._calls.teller.catch_up(self._conversation.state.round)
            enters = hasattr(self._requests.model, "__aenter__")
            self._passed_by = frozenset()
            work, wakes = self._with_model if enters else self._interruptible, self._wakes(run)
            prompt = _waking(run, wakes) if wakes else run.prompt
            while True:
                reply = await self._settle(*await work(run, prompt))
                if reply is not None:
                    return reply
                prompt = _waking(run, self._wakes(run) + 1)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CLOSING_S, shield=True), suppress(CommitFailed):
                await self._cut_off("cancelled")
            raise
        finally:
            self._interruption = None
            inside.reset(entered)
            if self._lease is not None or self._purse is not None:
                self._end_lease()
            if self._end_is_due:  # a commit failed, or the process is on its way out
                self._tell_end(Outcome.FAILED, "")

    def _wakes(self, run: RunStarted) -> int:
        """How often a message has kept this run from its end."""
        wakes, taken = 0, self._conversation.state.prompts
        while _waking(run, wakes + 1).id in taken:
            wakes += 1
        return wakes

    async def _commit_start(self, run: RunStarted) -> None:
        """Journal the start of a run; where a cancel waited for that, its end, too."""
        try:
            joined = self._calls.joins.at_an_edge(self._requests.model)
            await self._conversation.commit(run, with_next=joined)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CLOSING_S, shield=True), suppress(CommitFailed):
                await self._conversation.commit_built(lambda _: ())  # reads an unknown end back
                if self._is_open([run.run_id]):
                    self._watchers.tell(AgentStart, run.prompt)
                    await self._cut_off("cancelled")
            raise

    async def _with_model(self, run: RunStarted, prompt: Prompt) -> Ending:
        """The end of the run, with its model entered, which is a context manager."""
        async with Entered(self._warn) as self._entered:
            try:
                await self._entered.add(self._requests.model)
            except Exception as error:  # the provider's own code
                return _failed(run, error)
            return await self._interruptible(run, prompt)

    def _warn(self, text: str) -> None:
        self._watchers.tell(Warned, text)

    async def _interruptible(self, run: RunStarted, prompt: Prompt) -> Ending:
        ending: Ending | None = None
        with new_scope() as self._interruption:
            ending = await self._ended(run, prompt)
        self._interruption = None  # from here on there is nothing to cancel
        return ending or (_bare(run, Outcome.INTERRUPTED), None)

    async def _ended(self, run: RunStarted, prompt: Prompt) -> Ending:
        """The reply of the outermost step: what ends a run is a value from here on."""
        try:
            reply = cast(Any, await self.reply(prompt))
            if not isinstance(reply, Reply):  # an untyped layer may return anything
                raise TypeError(f"a layer returned {reply!r} from reply, not a Reply")
            return reply, None
        except RunEnds as end:
            return replace(_bare(run, end.outcome), text=end.text, limit=end.limit), None
        except StopRun as stop:
            return replace(_bare(run, Outcome.STOPPED), text=stop.text, output=stop.output), None
        except CommitFailed:
            raise
        except Exception as error:  # the outcome `failed`
            return _failed(run, error)

    async def _settle(self, reply: Reply, cause: Exception | None) -> Reply | None:
        """Close what is open, journal the end, tell it once. None: the run is not over, as
        a message has come.
        """
        if reply.outcome is Outcome.AWAITING_APPROVAL:
            if not self._conversation.state.interrupted:
                self._tell_end(reply.outcome, reply.text)
                return self._completed(reply)
            reply = replace(reply, outcome=Outcome.INTERRUPTED, text="")  # while it parked
        finished = RunFinished(
            reply.run_id,
            reply.outcome,
            reply.text,
            reply.limit,
            reply.summary_failed,
            reply.error,
            reply.output,
        )
        if not await self._finish(finished):
            return None
        reply = self._completed(reply)
        if cause is not None:
            raise RunFailed(f"the run failed: {reply.error}", reply=reply) from cause
        return reply

    def _completed(self, reply: Reply) -> Reply:
        """The reply with what the run added to the conversation and what it used."""
        state = self._conversation.state
        messages = tuple(state.messages[state.run_from :])
        message = reply.message or next(
            (m for m in reversed(messages) if type(m) is AssistantMessage), None
        )
        return reply.completed(
            message,
            messages=messages,
            usage=state.use.usage,
            cost=state.use.cost,
            pending=state.pending,
        )

    async def _cut_off(self, reason: str) -> None:
        """Close a run that is not going on: its calls get results, and it gets its end."""
        run, last = self._conversation.state.run, self._conversation.state.last_run
        if run is None:  # the cancel came when the end was written
            if last is not None and self._end_is_due:
                self._tell_end(last.outcome, last.text)
            return
        await self._finish(RunFinished(run.run_id, Outcome.INTERRUPTED, error=reason))
        await self._stop_below()  # the cancel may have struck while that was done

    async def _finish(self, finished: RunFinished) -> bool:
        """Close the open round, if there is one, and journal the end in the same commit.

        False where a run that is done has got a message since it looked: to look and to go idle
        are one step, so that whatever is queued is seen by this run or waits for the next.
        """
        conversation, done = self._conversation, finished.outcome is Outcome.FINISHED
        if self._purse is not None:
            self._purse.hand_over()
        if conversation.is_current and not conversation.state.open_calls and conversation.is_quiet:
            if done and self._must_look_again(conversation.state):
                return False
            await conversation.commit(finished)
            self._tell_end(finished.outcome, finished.text)
            return True
        cut_off: list[Round] = []
        goes_on = False

        def build(state: State) -> Sequence[Record]:  # an append of unknown end is read back first
            nonlocal goes_on
            goes_on = done and self._must_look_again(state)
            if goes_on:
                return ()
            if state.round is not None and state.open_calls:
                cut_off.append(state.round)
            return (*closing_all(state), finished)

        await conversation.commit_built(build)
        if goes_on:
            return False
        for round in cut_off:
            self._calls.teller.cut_off(round)
            await self._stop_below()
        self._tell_end(finished.outcome, finished.text)
        return True

    def _must_look_again(self, state: State) -> bool:
        """Whether a message waits that this run was not about to end with before: a layer that
        does not ask the loop passes it by.
        """
        if not state.queues:
            return False
        before = self._passed_by
        self._passed_by = frozenset([item.item_id for item in state.queues.items() if item.wake])
        return not self._passed_by <= before

    def _is_open(self, run_ids: Sequence[str]) -> bool:
        run = self._conversation.state.run
        return run is not None and run.run_id in run_ids

    # -- tell ------------------------------------------------------------------------------------

    def _begin_turn(self) -> None:
        self._turn += 1
        self._turn_is_open = True
        if self._watchers.active:
            self._watchers.tell(TurnStart, self._turn)

    def _end_turn(self) -> None:
        if not self._turn_is_open:
            return
        self._turn_is_open = False
        if self._watchers.active:
            state = self._conversation.state
            said = [m for m in state.messages[state.run_from :] if isinstance(m, AssistantMessage)]
            results = state.round.results() if state.round is not None else ()
            self._watchers.tell(TurnEnd, self._turn, said[-1] if said else None, results)

    def _tell_end(self, outcome: Outcome, text: str) -> None:
        self._end_is_due = False
        self._calls.teller.catch_up(self._conversation.state.round)
        self._end_turn()
        self._watchers.tell(AgentEnd, outcome, text)


def _waking(run: RunStarted, number: int) -> Prompt:
    """An empty prompt, as when a waiting message wakes an idle agent; found again by its id."""
    return Prompt(f"{run.run_id}/more/{number}", ())


def _bare(run: RunStarted, outcome: Outcome) -> Reply:
    return Reply(run_id=run.run_id, outcome=outcome)


def _failed(run: RunStarted, error: Exception) -> Ending:
    problem = f"{type(error).__name__}: {error}"
    return replace(_bare(run, Outcome.FAILED), error=problem), error


def reply_of(finished: RunFinished) -> Reply:
    return Reply(
        run_id=finished.run_id,
        outcome=finished.outcome,
        text=finished.text,
        output=finished.output,
        limit=finished.limit,
        summary_failed=finished.summary_failed,
        error=finished.error,
    )
