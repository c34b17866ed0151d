"""One life of an agent: a process, until it dies. What is done to it, and what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from callboard.agent import ReActAgent
from callboard.approving import ApprovalPolicy, OnPrompt
from callboard.budget import Budget
from callboard.errors import CommitFailed, ConfigurationError, ModelError
from callboard.events import Event
from callboard.journaling.records import Record
from callboard.replies import Outcome, PromptLike, Reply, RunFailed
from callboard.testing import ScriptedModel
from callboard.testing.script import Answer
from tests.framework.histories.history import Act, Leg
from tests.framework.histories.journals import FaultyJournal, journal_of
from tests.framework.histories.large import pictured
from tests.framework.histories.laws import Broken, broken_unless
from tests.framework.histories.readers import Left, Reading, View
from tests.framework.histories.stacks import stack
from tests.framework.histories.supplies import SupplierFailed, Supplies
from tests.framework.histories.tools import Hands
from tests.framework.histories.world import World

KEY = b"k" * 32
ASKING = ApprovalPolicy(expires_s=1e6)
WITHDRAWING = ApprovalPolicy(expires_s=1e6, on_prompt=OnPrompt.WITHDRAW)


class Life:
    """An agent object, until its process dies."""

    def __init__(
        self, world: World, script: Sequence[Answer], records: Sequence[Record] = ()
    ) -> None:
        history = world.history
        world.lives += 1
        self.world = world
        self.script = script
        self.hands = Hands(world.ledger, world.items, life=world.lives)
        self.events: list[Event] = []
        self.records: Sequence[Record] | None = None  # what is left of it
        self._audit_failed = False
        self._inherited = len(records)
        self._audited = 0
        self._scope = anyio.CancelScope()
        self._task: asyncio.Task[Reply | None] | None = None
        self._cancel_asked = False
        self.reading: Reading | None = None  # the stream that is followed
        self._disturbed = False
        self.was_absent = False
        self.supplies = Supplies(world, lambda: self.dead)
        self.journal = journal_of(history, world.file, records)
        if isinstance(self.journal, FaultyJournal) and world.lives == 1:
            self.journal.expect(history.faults)
        self.model = ScriptedModel(script, then="ok", capabilities=world.house.capabilities)
        audit: dict[str, Any] = {"audit_sink": self._audit} if "audit" in history.layers else {}
        self.agent: ReActAgent = stack(history.layers)(
            model=self.model,
            tools=[*self.hands.tools(), *([world.child.begin()] if world.child else [])],
            max_iters=history.max_iters,
            tool_execution=history.execution,
            max_concurrency=history.max_concurrency,
            budget=Budget(model_calls=history.model_calls),
            queue_mode=history.mode,
            steering_policy=history.policy,
            journal=self.journal,
            digest_key=KEY,
            hooks=self.supplies.hooks(),
            blobs=world.blobs,
            approvals=WITHDRAWING if history.withdraws else ASKING,
            **audit,
            **world.house.keywords(),
        )
        if history.is_watched:
            self.agent._watchers.add(self.events.append)

    def _audit(self, _: object) -> None:
        self._audited += 1
        if self.world.lives == 1 and self._audited == self.world.history.audit_fails:
            self._audit_failed = True
            raise OSError("the audit is full")

    @property
    def a_commit_failed(self) -> bool:
        """Also where nobody heard of it: a cancelled run closes in silence."""
        return self._audit_failed or getattr(self.journal, "failures", 0) > 0

    @property
    def dead(self) -> bool:
        return self.records is not None

    # -- a leg -----------------------------------------------------------------------------------

    async def leg(self, leg: Leg) -> None:
        """A run or a resume, and what is done to the agent meanwhile and after it."""
        if leg.watch is None:
            await self._leg(leg)
            return
        view = View(self.events, pause_s=0.25)
        async with anyio.create_task_group() as group:
            with self.agent.watch(limit=leg.watch) as events:
                group.start_soon(view.follow, events)
                await self._leg(leg)
        view.check()
        self.world.readings += 1
        self.world.missed += view.missed

    async def _leg(self, leg: Leg) -> None:
        self._scope, self._task, self._cancel_asked = anyio.CancelScope(), None, False
        async with anyio.create_task_group() as self._group:
            for act in leg.acts:
                self._group.start_soon(self._act, act)
            if leg.native and self.world.history.backend == "asyncio":
                await self._in_a_task(leg)
            else:
                with self._scope:
                    await self._begin(leg)

    async def _in_a_task(self, leg: Leg) -> None:
        self._task = asyncio.get_running_loop().create_task(self._begin(leg))
        with anyio.CancelScope(shield=True):
            await asyncio.wait([self._task])
        if self._task.cancelled():
            return
        self._task.result()
        leaves = leg.reader is not None and leg.reader.leaves_after is not None
        asked = self._cancel_asked and not leaves  # leaving cancels, too: the two may become one
        broken_unless(not asked or self.dead, "cancellation propagates")

    async def _begin(self, leg: Leg) -> Reply | None:
        if leg.start == "resume":
            return await self.attempt(self.agent.resume)
        text = self.world.words("prompt")
        prompt: PromptLike = pictured(text) if leg.picture else text
        if leg.reader is None:
            reply = await self.attempt(partial(self.agent.run, prompt))
        else:
            reply = await self._followed(Reading(leg.reader, self.events), prompt)
        if reply is not None and not self.dead:
            self.world.replies[text] = reply
        return reply

    async def _followed(self, reading: Reading, prompt: PromptLike) -> Reply | None:
        self.reading, self._disturbed = reading, False
        reply: Reply | None = None
        with suppress(Left):
            reply = await self.attempt(partial(reading.follow, self.agent, prompt))
        if not self.dead and not self.a_commit_failed:
            self.world.readings += 1
            reading.check(is_quiet=not self._disturbed)
        return reply if reading.is_whole else None

    async def run(self) -> Reply | None:
        """A plain run, with a prompt of its own."""
        text = self.world.words("prompt")
        reply = await self.attempt(partial(self.agent.run, text))
        if reply is not None and not self.dead:
            self.world.replies[text] = reply
        return reply

    async def attempt(self, start: Callable[[], Awaitable[Reply | None]]) -> Reply | None:
        """What this answers, None where it fails as it may."""
        try:
            return await start()
        except RunFailed as failed:
            if not isinstance(failed.__cause__, (ModelError, SupplierFailed)):
                raise Broken(f"a run fails of its model only: {failed}") from failed
            return None
        except CommitFailed as failed:
            self._note_failed_commit(failed)
            return None
        except ConfigurationError as refused:
            if "never asked anything" not in str(refused):
                raise
            return None

    def _note_failed_commit(self, failed: CommitFailed) -> None:
        broken_unless(self.world.commits_fail, "no commit fails by itself", failed)

    # -- what is done ----------------------------------------------------------------------------

    async def _act(self, act: Act) -> None:
        await anyio.sleep(act.at)
        for _ in range(act.ticks):
            await checkpoint()
        if self.dead:
            return
        self._disturbed = True
        try:
            await getattr(self, f"_{act.deed}")()
        except CommitFailed as failed:
            self._note_failed_commit(failed)

    async def _cancel(self) -> None:
        if self._task is not None:
            self._cancel_asked = self._task.cancel() or self._cancel_asked
        else:
            self._scope.cancel()

    async def _interrupt(self) -> None:
        await self.agent.interrupt()

    async def _clear(self) -> None:
        await self.agent.interrupt(clear=True)

    async def _steer(self) -> None:
        text = self.world.words("steering")
        self._acknowledge(await self.agent.steer(text), text)

    async def _mention(self) -> None:
        text = self.world.words("mention")
        self._acknowledge(await self.agent.steer(text, wake=False), text)

    async def _follow_up(self) -> None:
        text = self.world.words("follow-up")
        self._acknowledge(await self.agent.follow_up(text), text)

    def _acknowledge(self, item_id: str, text: str) -> None:
        if not self.dead:
            self.world.items[item_id] = text

    async def _withdraw(self) -> None:
        for item in self.agent.state.queued[:1]:
            if await self.agent.withdraw(item.item_id) and not self.dead:
                self.world.withdrawn.add(item.item_id)

    async def _cancel_call(self) -> None:
        for call in self.agent.state.open_calls:
            if self.agent.cancel_call(call.id):
                self.world.cancelled_calls.add(call.id)
                return

    async def _approve(self) -> None:
        await self.answer(yes=True)

    async def _deny(self) -> None:
        await self.answer(yes=False)

    async def answer(self, *, yes: bool) -> None:
        """Answer what waits longest."""
        for asked in self.agent.pending[:1]:
            if not yes:
                await self.agent.deny(asked.id, by="amy")
            elif await self.agent.approve(asked.id, by="amy"):
                broken_unless(asked.id not in self.world.granted, "an approval is given once")
                broken_unless(asked.id not in self.world.expired, "no answer comes too late")
                self.world.granted |= set() if self.dead else {asked.id}

    async def _run(self) -> None:
        await self.run()

    async def _resume(self) -> None:
        await self.attempt(self.agent.resume)

    async def _show(self) -> None:
        text = self.world.words("picture")
        self._acknowledge(await self.agent.follow_up(pictured(text)), text)

    async def _close(self) -> None:
        stream = self.reading.stream if self.reading is not None else None
        if stream is not None:
            await stream.aclose()
            broken_unless(stream._over, "a stream that was closed is over")

    async def _absent(self) -> None:
        """The process is gone for so long that nobody waits for an answer any more."""
        await self._die()
        self.was_absent = True

    async def _die(self) -> None:
        """The process is gone: nothing counts from now on but what the journal holds."""
        self.records = tuple(self.journal.records)
        self.script = self.script[len(self.model.requests) :]
        self.hands.dead = True
        if self.world.child is not None:
            self.world.child.end()
        self.world.deaths.add(self.hands.life)
        if self._task is not None:
            self._task.cancel()
        self._group.cancel_scope.cancel()

    # -- the end ---------------------------------------------------------------------------------

    async def to_the_end(self, answers: Any) -> None:
        """Resume, and answer what waits, until there is nothing left to do."""
        for _ in range(80):
            with suppress(CommitFailed):
                await self.answer(yes=answers.random() < 0.6)
            await self.attempt(self.agent.resume)
            if self._is_idle():
                return
        raise Broken("resuming reaches an end")

    def _is_idle(self) -> bool:
        if not self.agent._conversation.is_current:
            return False
        state = self.agent.state
        waits = any([item.wake for item in state.queued])
        return state.run_id is None and not waits and not state.approvals

    async def last_words(self) -> None:
        """The conversation can be gone on with."""
        if isinstance(self.journal, FaultyJournal):
            self.journal.expect(())
        self._audited = 10_000
        self.model._script = ()
        self.supplies.stop()
        reply = await self.run()
        said = reply is not None and reply.outcome in (Outcome.FINISHED, Outcome.BUDGET)
        broken_unless(said, "the conversation can be gone on with", reply)
