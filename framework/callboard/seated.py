"""An agent as an actor of a system: letters are prompts, and their answers are replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callboard.actors.envelope import Envelope
from callboard.agent_calls import AgentCall
from callboard.errors import ConfigurationError
from callboard.events import Source
from callboard.journaling.records import RunFinished
from callboard.lease import carrying
from callboard.replies import Outcome, Prompt, PromptLike, Reply
from callboard.taking_over import TakeOver, TakesOver


@dataclass(frozen=True, slots=True)
class GoOn:
    """The payload that has an agent resume: an approval was answered, or a message waits."""


class Seated(TakesOver):
    """Receives prompts, one run for each; a run is cancelled when the one who asked gives up."""

    ends_with_asker: ClassVar[bool] = True

    async def receive(self, letter: Envelope) -> Any:
        """Run the agent on the payload: whatever `run` takes, GoOn, an AgentCall, a TakeOver.

        Raises what `run`, `resume` and `take_over` raise. A prompt that was asked for in a run of
        another agent is a run inside that one: its budget counts, and its end ends it.
        """
        with carrying(letter.inside):
            if isinstance(letter.payload, GoOn):
                return await self.resume()
            if isinstance(letter.payload, AgentCall):
                return await self.called(letter.payload)
            if isinstance(letter.payload, TakeOver):
                return await self.take_over(letter.payload.messages)
            if letter.run_id is not None:
                return await self.run_once(letter.run_id, letter.payload, is_again=letter.is_again)
            return await self.run(letter.payload)

    async def run_once(self, run_id: str, prompt: PromptLike, *, is_again: bool) -> Reply:
        """`run` with an id of its own: a run that was begun under this id is gone on with.

        Where another run waits for a human its reply is returned, and nothing is begun.
        `is_again` has the journal looked through for the end of the run.
        """
        asked = Prompt.of(prompt, id=run_id)
        if not any([message.content for message in asked.messages]):
            raise ConfigurationError(f"{asked.text!r} is an empty prompt: say something")
        return await self._run_once(run_id, await self._kept(asked), is_again=is_again)

    async def give_up(self, most: int) -> Prompt | None:
        """End a run that more than `most` processes have taken up in vain, as it may be what ends
        them. Returns its prompt; None where there is no such run.
        """
        async with self._turnstile:
            state = await self._opened()
            run = state.run
            if run is None or state.stalled <= most:
                return None
            self._watchers.begin(Source(self.address, run.run_id, run.parent_run))
            error = f"{state.stalled} processes took this run up, and none of them got on with it"
            await self._finish(RunFinished(run.run_id, Outcome.FAILED, error=error))
            return run.prompt

    @property
    def last_run(self) -> RunFinished | None:
        """How the last run that is over ended."""
        return self._conversation.state.last_run

    @property
    def is_busy(self) -> bool:
        """Whether a run goes on or waits for its turn, in whatever task."""
        return self._turnstile.is_busy
