"""What users ask of an agent's runs: run, stream, resume, interrupt. `driving.py` does them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.lowlevel import current_token

from callboard.chain import inside, waiting_for
from callboard.driving import Driving, reply_of
from callboard.errors import ConfigurationError
from callboard.events import AgentStart
from callboard.journaling.records import Queued, Record, Withdrawn
from callboard.journaling.transcript import State
from callboard.messages import new_id
from callboard.replies import Outcome, Prompt, PromptLike, Reply
from callboard.watching import EventStream

RESUMABLE = frozenset(
    {Outcome.FAILED, Outcome.INTERRUPTED, Outcome.INCOMPLETE, Outcome.EMPTY_REPLY}
)


class Runs(Driving):
    """An actor that answers prompts, one run at a time."""

    # -- for users -------------------------------------------------------------------------------

    async def run(self, prompt: PromptLike) -> Reply:
        """Answer a prompt: text, a user message, several of them, or content blocks.

        Runs of one agent queue up, first come first served. Cancelling it closes the round, keeps
        the transcript sendable, leaves nothing running, and propagates. On an agent whose last
        run was cut off or waits for a human, the prompt is queued and that run goes on first.

        Raises:
            ConfigurationError: the prompt is empty, or a tool runs the agent inside its own run.
            RunFailed: the run failed; every other outcome is a Reply.
            CommitFailed: the journal could not be written.
        """
        return await self._run_in_turn(Prompt.of(prompt), None)

    def run_sync(self, prompt: PromptLike) -> Reply:
        """`run` for code without an event loop.

        Raises:
            ConfigurationError: an event loop runs in this thread already: await `run` there.
        """
        try:
            current_token()
        except anyio.NoEventLoopError:
            return anyio.run(partial(self.run, prompt))
        raise ConfigurationError(
            "run_sync() was called inside a running event loop; write: await agent.run(...)"
        )

    @asynccontextmanager
    async def stream(self, prompt: PromptLike) -> AsyncGenerator[EventStream, None]:
        """Answer a prompt and follow it: `async with agent.stream("...") as events`.

        The events are complete and in order; the run waits for a slow reader. Leaving the block
        early cancels the run, and so does `events.aclose()`, from any task. `events.reply` is the
        reply once the iteration has ended; a failed run raises its RunFailed from the iteration.
        """
        events = EventStream()
        problem: Exception | GeneratorExit | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(events.follow, partial(self._run_in_turn, Prompt.of(prompt), events))
            try:
                yield events
            except (Exception, GeneratorExit) as error:  # a task group would wrap it: raised below
                problem = error
            group.cancel_scope.cancel("the reader left the stream")
        if problem is not None:
            raise problem

    async def resume(self) -> Reply:
        """Go on where the agent stands: an unfinished run, answered approvals, queued messages,
        a prompt that a failure left unanswered. With nothing to do it returns the last reply,
        without a model call.

        Raises:
            ConfigurationError: the agent has never been asked anything.
            RunFailed, CommitFailed: as `run`.
        """
        self._refuse_inside()
        async with self._turnstile:
            state = await self._opened()
            if state.run is not None:
                return await self._drive(state.run)
            last = state.last_run
            unanswered = state.unanswered and (last is None or last.outcome in RESUMABLE)
            if unanswered or any([item.wake for item in state.queues.items()]):
                return await self._drive(self._new_run(Prompt(new_id("p"), ())))
            if last is None:
                raise ConfigurationError(f"{self.name} was never asked anything: call run first")
            return self._completed(reply_of(last))

    async def interrupt(self, *, clear: bool = False) -> tuple[Queued, ...]:
        """Stop the run, without an exception: it ends with outcome `interrupted`.

        Running tools are cancelled and awaited, open calls get results, a parked agent's
        approvals are withdrawn. Returns what waits in the queues. `clear=True` empties them, but
        for what was told with `wake=False`, which is context and no request, and returns what it
        took out.
        """
        known = self._conversation.state.run  # a later one is not meant
        waiting = (await self._opened()).queues.items()
        if clear:
            waiting = tuple([item for item in waiting if item.wake])
        meant: list[str] = []

        def build(state: State) -> Sequence[Record]:
            if state.run is not None and state.run.run_id == (known or state.run).run_id:
                meant.append(state.run.run_id)
            return _interrupting(state, stop=bool(meant), clear=clear)

        await self._conversation.commit_built(build)
        if not self._is_open(meant):
            return waiting  # it has ended meanwhile
        if self._interruption is not None:
            self._interruption.cancel("interrupted")
            return waiting
        async with self._turnstile:
            parked = self._conversation.state.run
            if parked is not None and self._is_open(meant):
                self._begin(parked)
                self._watchers.tell(AgentStart, parked.prompt)
                await self._cut_off("interrupted while it was parked")
        return waiting

    def cancel_call(self, call_id: str) -> bool:
        """Cancel one running tool call; the run goes on. False if that call does not run."""
        return self._calls.performer.cancel(call_id)

    # -- a run -----------------------------------------------------------------------------------

    async def _run_in_turn(self, prompt: Prompt, events: EventStream | None) -> Reply:
        if not any([message.content for message in prompt.messages]):
            raise ConfigurationError(f"{prompt.text!r} is an empty prompt: say something")
        self._refuse_inside()
        if self._keeper is not None:
            prompt = await self._kept(prompt)
        if not inside.get():
            return await self._answered(prompt, events)
        with waiting_for(self):
            return await self._answered(prompt, events)

    async def _answered(self, prompt: Prompt, events: EventStream | None) -> Reply:
        async with self._turnstile:
            if events is not None:
                self._watchers.add(events)
            try:
                state = await self._opened()
                if state.run is None:
                    return await self._drive(self._new_run(prompt))
                await self._queue_prompt(prompt)
                return await self._drive(state.run)
            finally:
                if events is not None:
                    self._watchers.remove(events)


def _interrupting(state: State, *, stop: bool, clear: bool) -> Sequence[Record]:
    records: list[Record] = [Queued(new_id("q"), "control")] if stop else []
    if clear:
        records.extend([Withdrawn(item.item_id) for item in state.queues.items() if item.wake])
    return records
