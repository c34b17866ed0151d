"""The pump: one task for each actor that works, which hands it one letter after the other.

An actor that is idle for some seconds gives its task back (it takes 5 KB) and dozes: the next
letter starts another one. Those with `started` or `stopping` of their own keep theirs, as what they
enter there belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
from anyio import CapacityLimiter, TaskHandle
from anyio.lowlevel import checkpoint

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.dead_letters import DeadLetters, Reason
from callboard.actors.envelope import Envelope, handling
from callboard.actors.mailbox import Mailbox
from callboard.actors.results import Results
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Restarts
from callboard.actors.traffic import Traffic
from callboard.actors.waiting import Answer
from callboard.errors import ActorFailed, ActorStopped, Fenced
from callboard.replies import Reply, RunFailed
from callboard.seated import GoOn
from callboard.tooling.deadlines import new_scope

AT_A_STRETCH = 32  # letters that are handled before others get the event loop
_PLAIN = (Actor.started, Actor.stopping)


class Begun:
    """Whether an actor has started, for any number of tasks that wait for it."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._error: Exception | None = None

    def end(self, error: Exception | None) -> None:
        """It has started, or it never will. What was told first stays."""
        if not self._event.is_set():
            self._error = error
            self._event.set()

    async def wait(self) -> None:
        """Raises what kept it from starting."""
        await self._event.wait()
        if self._error is not None:
            raise self._error


class Pump:
    """Drives one actor until its mailbox is closed or its supervision ends it."""

    __slots__ = (
        "_dead_letters",
        "_make",
        "_on_end",
        "_restarts",
        "_results",
        "_start",
        "_traffic",
        "actor",
        "address",
        "begun",
        "idle_since",
        "is_idle",
        "mailbox",
        "rules",
        "task",
    )

    def __init__(
        self,
        address: Address,
        make: Callable[[], Actor],
        *,
        rules: ActorRules,
        dead_letters: DeadLetters,
        traffic: Traffic,
        results: Results,
        start: Callable[[Pump], TaskHandle[None]],
        on_end: Callable[[Pump], None],
    ) -> None:
        self.address = address
        self.rules = rules
        self.mailbox = Mailbox(bound=rules.mailbox_bound, when_full=rules.when_full)
        self.actor: Actor | None = None
        self.task: TaskHandle[None] | None = None  # None: it dozes
        self.begun: Begun | None = None  # for those who wait until it has started
        self.is_idle = False
        self.idle_since: float | None = None  # as the last sweep saw it
        self._make = make
        self._restarts: Restarts | None = None
        self._dead_letters = dead_letters
        self._traffic = traffic
        self._results = results
        self._start = start
        self._on_end = on_end

    def start(self) -> None:
        """Begin, or go on, in a task of its own."""
        self.is_idle, self.idle_since = False, None
        self.task = self._start(self)

    async def run(self) -> None:
        """The actor's life, until it dozes. What ends it else has every unread letter answered."""
        dozes = False
        try:
            actor = await self._begun() if self.actor is None else self.actor
            dozes = actor is not None and await self._deliver_all(actor)
        finally:
            if not dozes:
                self.close()
                if self.begun is not None:
                    text = f"{self.address} was cancelled before it had begun"
                    self.begun.end(ActorStopped(text))
                self._on_end(self)

    async def _begun(self) -> Actor | None:
        """A started actor. None: it could not be made, and those who wait for it were told."""
        try:
            actor = self._make()
            await actor.started()
        except Exception as error:  # the factory's and the actor's own code
            self.close(error)
            if self.begun is not None:
                self.begun.end(error)
            return None
        self.actor = actor
        if self.begun is not None:
            self.begun.end(None)
            self.begun = None
        return actor

    async def _deliver_all(self, actor: Actor) -> bool:
        """Hand over what comes. True if nothing came, and it dozes from here on."""
        mailbox, traffic, take = self.mailbox, self._traffic, self.mailbox.take
        in_a_row = 0
        while True:
            letter = take()
            if letter is None:
                self.is_idle, in_a_row = True, 0
                letter = await mailbox.get() or take()
                if letter is None:
                    break
                self.is_idle, self.idle_since = False, None
            slot = None if traffic.slots is None else await self._slot(letter, traffic.slots)
            try:
                handling.set(letter)
                if letter.kept is not None:
                    await letter.kept.handle(actor, self.rules)
                elif letter.answer is not None:
                    await self._answer(letter, letter.answer, actor)
                else:
                    value = await actor.receive(letter)
                    if type(value) is Reply:
                        self._note(value)
            except Exception as error:  # the actor's own code, and nobody waits
                actor = await self._failed(letter, actor, error)
            finally:
                if slot is not None:
                    slot.release()
                traffic.open -= 1
                if not traffic.open:
                    traffic.rest()
            in_a_row += 1
            if in_a_row == AT_A_STRETCH:
                in_a_row = 0
                await checkpoint()
        if not mailbox.is_closed:
            self.task = None
            mailbox.on_letter = self.start
            return True
        await actor.stopping()
        return False

    async def _slot(self, letter: Envelope, slots: CapacityLimiter) -> CapacityLimiter | None:
        """Wait until a letter from outside may be handled. What others of the system sent needs no
        slot: somebody who has one may wait for it.
        """
        if letter.sender is not None or isinstance(letter.payload, GoOn):
            return None
        try:
            await slots.acquire()
        except BaseException:
            self.mailbox.put_front(letter)  # who waits for it is told there
            raise
        return slots

    async def _answer(self, letter: Envelope, answer: Answer, actor: Actor) -> None:
        """Have an ask handled: its asker gets what the actor returns or raises."""
        if answer.is_set:
            self._dead_letters.add(letter, Reason.EXPIRED)
            return
        try:
            if not actor.ends_with_asker:
                answer.set(await actor.receive(letter))
                return
            with new_scope() as letter.scope:  # cancelled when the one who asked gives up
                value = await actor.receive(letter)
                self._note(value)
                answer.set(value)
        except Exception as error:  # the actor's own code
            if letter.answer is None:
                raise  # it was detached, and nobody waits any more
            self._note(error)
            answer.fail(error)
        except BaseException:
            answer.fail(ActorStopped(f"{self.address} was cancelled before it answered"))
            raise
        finally:
            letter.scope = None

    def _note(self, value: Any) -> None:
        """Keep the reply of a run for those who ask for it later."""
        if type(value) is Reply:
            self._results.add(value)
        elif isinstance(value, RunFailed):
            self._results.add(value.reply)

    async def _failed(self, letter: Envelope, actor: Actor, error: Exception) -> Actor:
        """Nobody waits for the answer: tell the actor, then do what its supervision says."""
        self._note(error)
        if isinstance(error, Fenced):
            self.close()  # another process goes on with this address
            return actor
        what = self.rules.supervision.on_failure
        if letter.kept is None or not letter.kept.is_to_be_tried_again:
            self._dead_letters.add(letter, Reason.FAILED, error)
        elif self.mailbox.is_closed:
            letter.kept.unread(None)  # it was put away meanwhile, or another process has it
        elif what is not OnFailure.ESCALATE:
            self._traffic.open += 1
            self.mailbox.put_front(letter)  # before those that came after it
            await anyio.sleep(self.rules.supervision.backoff_s)
        await actor.failed(error)
        if what is OnFailure.STOP:
            self.close()
        elif what is OnFailure.RESTART:
            actor = await self._restarted(error)
        elif what is OnFailure.ESCALATE:
            raise ActorFailed(f"{self.address} failed on {letter!r}: {error}") from error
        return actor

    async def _restarted(self, error: Exception) -> Actor:
        self._restarts = self._restarts or Restarts(self.rules.supervision)
        wait_s = self._restarts.next_wait_s(anyio.current_time())
        if wait_s is None:
            rules = self.rules.supervision
            raise ActorFailed(
                f"{self.address} failed again after {rules.most_restarts} restarts "
                f"within {rules.within_s:g} s: {error}"
            ) from error
        await anyio.sleep(wait_s)
        actor = self.actor = self._make()
        await actor.started()
        return actor

    # -- ending ----------------------------------------------------------------------------------

    def close(self, error: Exception | None = None) -> None:
        """Take no more letters: the one being handled is finished, unread ones are dead letters,
        and those who asked are told, with `error` as the cause.
        """
        unread = self.mailbox.close()
        for letter in unread:
            if letter.kept is not None:
                letter.kept.unread(error)
                continue
            reason = Reason.STOPPED if error is None else Reason.FAILED
            self._dead_letters.add(letter, reason, error)
            if letter.answer is not None:
                stopped = ActorStopped(f"{self.address} stopped before it read this")
                stopped.__cause__ = error
                letter.answer.fail(stopped if error is None else error)
        self._traffic.done(len(unread))

        if self.task is None:
            self._on_end(self)

    def idle_s(self, now: float) -> float:
        """How long it has been idle, as far as those who asked this have seen; 0 if it works."""
        works = not self.is_idle or self.mailbox.depth
        if works or (self.actor is not None and self.actor.is_busy):
            self.idle_since = None
            return 0.0
        if self.idle_since is None:
            self.idle_since = now
        return now - self.idle_since

    def doze(self) -> None:
        """Give the task back until the next letter, if the actor can do without one."""
        if self.task is None or self.actor is None:
            return
        kind = type(self.actor)
        if (kind.started, kind.stopping) == _PLAIN:
            self.mailbox.nudge()

    def cancel(self) -> None:
        """Have it end in the middle of what it does."""
        if self.task is not None:
            self.task.cancel()

    async def ended(self) -> None:
        """Wait for the end of what it does now."""
        if self.task is not None:
            await self.task.wait()

    async def abandon(self) -> None:
        """Cancel it, and wait for the end."""
        self.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended()

    async def stop(self, within_s: float) -> bool:
        """Close, and wait for the end; cancel what takes longer. False if it was cancelled."""
        self.close()
        with anyio.move_on_after(within_s):
            await self.ended()
            return True
        await self.abandon()
        return False
