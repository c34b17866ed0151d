"""An actor with a conversation, and a control lane that never waits behind a run."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.errors import CommitFailed, ConfigurationError
from callboard.events import Source
from callboard.journaling.blobs import Blobs
from callboard.journaling.conversation import Conversation, R
from callboard.journaling.journal import InMemoryJournal, Journal
from callboard.journaling.keeping import Keeper
from callboard.journaling.pairing import paired
from callboard.journaling.records import (
    LayerFact,
    Queued,
    Record,
    Repaired,
    Snapshot,
    Withdrawn,
)
from callboard.journaling.transcript import State
from callboard.json_text import freeze
from callboard.messages import Content, ConversationMessage, new_id
from callboard.replies import Prompt, PromptLike
from callboard.watchers import Watchers, watched
from callboard.watching import WATCH_LIMIT, Subscription


class Conversing(Actor):
    """What every agent has: an address, a journal with its fold, queues, and watchers.

    Nothing here belongs to an event loop, so that one agent can be used from several
    `asyncio.run` calls, one after the other.
    """

    def __init__(
        self,
        *,
        name: str = "agent",
        address: Address | None = None,
        journal: Journal | None = None,
        messages: Sequence[ConversationMessage] = (),
        blobs: Blobs | None = None,
    ) -> None:
        self.name = name
        self.address = Address("agent", name) if address is None else address
        self._journal: Journal = InMemoryJournal() if journal is None else journal
        self._given = tuple(messages)  # until they are in the journal
        self._giving = False
        self._blobs = blobs
        self._keeper = None if blobs is None else Keeper(blobs)
        layered = type(self)._committing is not Conversing._committing
        self._conversation = Conversation(
            self._journal, layers=self._through_layers if layered else None
        )
        self._watchers = Watchers(Source(self.address, ""))
        self._committed: object = None  # what came out of the last `_committing`, at the root
        self._interruption: anyio.CancelScope | None = None  # of the run, while one is driven

    # -- the conversation ------------------------------------------------------------------------

    async def _opened(self) -> State:
        """The state, read back from the journal where that is needed."""
        conversation = self._conversation
        if conversation.state.approvals and conversation.state.pending:
            conversation.look_again()
        if conversation.broken and self._interruption is not None:  # what rides would be lost
            raise CommitFailed("a commit failed, and the run that goes on ends of it first")
        if not conversation.is_current:
            await conversation.reopen()
        if self._given:
            if conversation.state.seq and not self._giving:
                raise ConfigurationError(
                    f"{self.name}: messages= and a journal that holds records already: give one"
                )
            self._giving = True  # two callers may come here at once
            messages, notes = paired(self._given)
            if self._keeper is not None:
                messages = await self._keeper.messages(messages)
            records: tuple[Record, ...] = (Snapshot(messages),)
            if notes:
                records = (*records, Repaired(notes))
            await conversation.commit_built(lambda state: () if state.seq else records)
            self._given = ()
        return conversation.state

    def _committing(self, record: R) -> R:
        """Step: one record or delta, before it is stored or shown.

        A layer that changes a record passes a changed copy to `super()`; one that watches (an
        audit) looks at what comes back. Contract: if it raises, nothing is stored, what the
        record tells of does not happen, and the run ends with CommitFailed.
        """
        self._committed = record
        return record

    def _through_layers(self, record: R) -> R:
        written = self._committing(record)
        if written is not self._committed:
            raise ConfigurationError(
                "a _committing layer changed a record on its way out; change it on the way in: "
                "return super()._committing(changed)"
            )
        return written

    async def _record(self, kind: str, payload: dict[str, Any]) -> None:
        """The one door for a layer's own facts: journaled, and folded into `state.layers[kind]`.

        `payload` holds JSON values only.
        """
        await self._conversation.commit(LayerFact(kind, freeze(payload)))

    @property
    def messages(self) -> tuple[ConversationMessage, ...]:
        """The conversation so far, as messages (give it to another agent with `messages=`)."""
        if self._given:
            return self._given
        state = self._conversation.state
        if state.round is not None and state.round.open:
            return (*state.messages, *state.round.results())
        return tuple(state.messages)

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def blobs(self) -> Blobs | None:
        """Where large data are kept, for layers that want the data of an observation."""
        return self._blobs

    async def _kept(self, prompt: Prompt) -> Prompt:
        """The prompt with its large media in the store, if there is one."""
        if self._keeper is None:
            return prompt
        return replace(prompt, messages=await self._keeper.messages(prompt.messages))

    # -- watching --------------------------------------------------------------------------------

    @contextmanager
    def watch(
        self, *, limit: int = WATCH_LIMIT, sub_agents: bool = False
    ) -> Generator[Subscription, None, None]:
        """Subscribe to the events of all runs: `with agent.watch() as events`.

        With `sub_agents=True` to those of the runs inside them as well (agents as tools, actors
        that are asked, agents that tools run in the same thread); `event.address` and
        `event.parent_run` tell whose they are. Bounded: a reader that falls behind loses the
        oldest events and `events.missed` says how many. It never slows the run. Leaving the block
        ends the subscription.
        """
        with watched(self._watchers, limit=limit, below=sub_agents) as subscription:
            yield subscription

    def belong(self, system: Watchers) -> None:
        """Let those who watch a system hear this agent; for the system that it is in."""
        self._watchers.belong(system)

    # -- the control lane ------------------------------------------------------------------------

    async def steer(self, message: PromptLike, *, wake: bool = True, id: str | None = None) -> str:
        """Say something to the agent while it works: it is taken in after the running batch, or
        sooner by the agent's `steering_policy`.

        Returns the item's id (yours, or a new one), for `withdraw`. On an idle agent it waits for
        the next run; with `wake=False` it does not keep an agent going that is done otherwise.
        """
        return await self._queue("steering", message, wake=wake, id=id)

    async def follow_up(self, message: PromptLike, *, id: str | None = None) -> str:
        """Say something for when the agent would otherwise be done. Returns the item's id."""
        return await self._queue("follow_up", message, wake=True, id=id)

    async def _queue(
        self,
        lane: Literal["steering", "follow_up"],
        message: PromptLike,
        *,
        wake: bool,
        id: str | None = None,
    ) -> str:
        await self._opened()
        item = await self._item(lane, message, wake=wake, id=id)
        await self._conversation.commit(item)
        return item.item_id

    async def _item(
        self,
        lane: Literal["steering", "follow_up"],
        message: PromptLike,
        *,
        wake: bool,
        id: str | None = None,
    ) -> Queued:
        """A message as it is queued, with its large media in the store."""
        prompt = Prompt.of(message)
        content: tuple[Content, ...] = tuple(
            block for given in prompt.messages for block in given.content
        )
        if not content:
            raise ConfigurationError(f"{message!r} has no content to queue")
        if self._keeper is not None:
            content = await self._keeper.content(content)
        return Queued(id or new_id("q"), lane, content, wake)

    async def withdraw(self, item_id: str) -> bool:
        """Take a queued message back. False if it is not waiting (any more)."""
        await self._opened()
        return await self._conversation.commit_built(
            lambda state: (Withdrawn(item_id),) if state.queues.find(item_id) else ()
        )
