"""An agent as an actor of a system: letters are prompts, and their answers are replies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from callboard.actors.envelope import Envelope
from callboard.agent_tool import UsableAsTool
from callboard.lease import carrying


@dataclass(frozen=True, slots=True)
class GoOn:
    """The payload that has an agent resume: an approval was answered, or a message waits."""


class Seated(UsableAsTool):
    """Receives prompts, one run for each; a run is cancelled when the one who asked gives up."""

    ends_with_asker: ClassVar[bool] = True

    async def receive(self, letter: Envelope) -> Any:
        """Run the agent on the payload: whatever `run` takes, or GoOn.

        Raises what `run` and `resume` raise. A prompt that was asked for in a run of another
        agent is a run inside that one: its budget counts, and its end ends it.
        """
        with carrying(letter.inside):
            if isinstance(letter.payload, GoOn):
                return await self.resume()
            return await self.run(letter.payload)

    @property
    def is_busy(self) -> bool:
        """Whether a run goes on or waits for its turn, in whatever task."""
        return self._turnstile.is_busy
