"""An agent that goes on with another agent's conversation: see `handing_over.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callboard.agent_tool import UsableAsTool
from callboard.chain import waiting_for
from callboard.errors import ConfigurationError
from callboard.journaling.pairing import paired
from callboard.journaling.records import Record, Repaired, Snapshot
from callboard.journaling.transcript import State
from callboard.messages import ConversationMessage


@dataclass(frozen=True, slots=True)
class TakeOver:
    """The payload that has an agent take a conversation over: `take_over(messages)`."""

    messages: tuple[ConversationMessage, ...]


class TakesOver(UsableAsTool):
    """An agent that may be given a conversation at any time, and not only when it is made."""

    async def take_over(self, messages: Sequence[ConversationMessage]) -> None:
        """Have this conversation from here on; `resume` answers what is open in it.

        The system prompt and the tools stay this agent's own. Calls without a result get one, as
        with `messages=`. Runs that are under way are waited for.

        Raises:
            ConfigurationError: the agent has messages with which this conversation does not
                begin, or a run that waits for a human or was cut off. Nothing is changed.
            CommitFailed: the journal could not be written.
        """
        given, notes = paired(messages)
        self._refuse_inside()
        with waiting_for(self):
            async with self._turnstile:
                self._check_free(await self._opened(), given)
                if self._keeper is not None:
                    given = await self._keeper.messages(given)
                records: tuple[Record, ...] = (Snapshot(given),)
                if notes:
                    records = (*records, Repaired(notes))
                await self._conversation.commit(*records)

    def _check_free(self, state: State, given: Sequence[ConversationMessage]) -> None:
        """Refuse to forget a conversation, or a run."""
        if state.run is not None:
            raise ConfigurationError(
                f"{self.address} cannot take a conversation over: its run {state.run.run_id!r} is"
                " not finished; resume or interrupt it first"
            )
        own = [message.id for message in state.messages]
        if own != [message.id for message in given[: len(own)]]:
            raise ConfigurationError(
                f"{self.address} has a conversation of its own ({len(own)} messages), with which"
                " the one that it should take over does not begin: give each conversation agents"
                " of its own"
            )
