"""Those who follow an agent: readers of a run's stream, and bounded views beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from callboard.agent import ReActAgent
from callboard.events import AgentEnd, AgentStart, ApprovalAnswered, Event
from callboard.replies import PromptLike, Reply, RunFailed
from callboard.watching import STREAM_LIMIT, EventStream, Subscription
from tests.framework.histories.history import Reader
from tests.framework.histories.laws import broken_unless
from tests.framework.kit import marks

BESIDE = 60  # events that others than the model's answer may tell while a reader is behind


class Left(Exception):
    """What a reader fails of."""


class Reading:
    """One stream that is read. `told` is what a listener of the agent was told, in order."""

    def __init__(self, reader: Reader, told: Sequence[Event]) -> None:
        self.reader = reader
        self.events: list[Event] = []
        self.is_whole = False  # read to its end
        self.most_waiting = 0
        self.stream: EventStream | None = None
        self._told = told
        self._since = len(told)

    async def follow(self, agent: ReActAgent, prompt: PromptLike) -> Reply | None:
        """The reply, None where the reader left; raises what the run raises, and Left."""
        async with agent.stream(prompt) as self.stream:
            try:
                await self._read(self.stream)
            except RunFailed:
                self.is_whole = True
                raise
            return self.stream.reply

    async def _read(self, stream: EventStream) -> None:
        async for event in stream:
            self.events.append(event)
            self.most_waiting = max(self.most_waiting, len(stream._events))
            if len(self.events) == self.reader.leaves_after:
                if self.reader.fails:
                    raise Left
                return
            if self.reader.pause_s:
                await anyio.sleep(self.reader.pause_s)
        self.is_whole = True

    def check(self, *, is_quiet: bool) -> None:
        """What was read is what was told, from the start on and without a gap.

        `is_quiet`: nobody else had the agent do or tell anything.
        """
        bounded = self.most_waiting <= STREAM_LIMIT + BESIDE
        broken_unless(bounded, "a run waits for its reader", self.most_waiting)
        if not self.events:
            return
        told = list(self._told[self._since :])
        ids = [id(event) for event in told]
        start = ids.index(id(self.events[0])) if id(self.events[0]) in ids else len(ids)
        same = ids[start : start + len(self.events)] == [id(event) for event in self.events]
        broken_unless(same, "a stream is complete and in order", marks(self.events), marks(told))
        if is_quiet:
            first = [e for e in self.events if not isinstance(e, ApprovalAnswered)][:1]
            begins = all([isinstance(event, AgentStart) for event in first])
            broken_unless(begins, "a stream has the start of its run", marks(self.events))
        if self.is_whole:
            ends = any([isinstance(event, AgentEnd) for event in self.events])
            broken_unless(ends, "a stream has the end of its run", marks(self.events))
        run_ids = {e.run_id for e in self.events if isinstance(e, AgentStart)}
        ended = run_ids <= {e.run_id for e in told[start:] if isinstance(e, AgentEnd)}
        broken_unless(ended, "a run ends with its reader", marks(told))


class View:
    """A bounded view that is read with a pause after each event."""

    def __init__(self, told: Sequence[Event], *, pause_s: float) -> None:
        self._told = told
        self._since = len(told)
        self._pause_s = pause_s
        self.read: list[Event] = []
        self.missed = 0

    async def follow(self, events: Subscription) -> None:
        async for event in events:
            self.missed += events.missed
            self.read.append(event)
            await anyio.sleep(self._pause_s)
        self.missed += events.missed

    def check(self) -> None:
        """It shows what was told in order, and says how much it did not show."""
        told = self._told[self._since :]
        places: dict[int, int] = {id(event): at for at, event in enumerate(told)}
        at: list[Any] = [places.get(id(event)) for event in self.read]
        rising = None not in at and at == sorted(set(at))
        broken_unless(rising, "a view is in order", at)
        counted = len(self.read) + self.missed == len(told)
        broken_unless(counted, "a view says what it missed", len(at), self.missed, len(told))


def check_numbers(events: Sequence[Event]) -> None:
    """No event of a run is hidden from those who listen."""
    before = 0
    for event in events:
        follows = event.sequence in (before + 1, 1)
        broken_unless(follows, "events count from one", before, event)
        before = event.sequence
