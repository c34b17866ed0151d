"""The bus of one process: tell, ask and publish. It knows addresses and mailboxes, not agents."""

from __future__ import annotations

from typing import Any

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.control import agent_of, perform
from callboard.actors.dead_letters import DeadLetters, Reason
from callboard.actors.envelope import Envelope, handling
from callboard.actors.roster import Roster
from callboard.actors.waiting import Answer, Late
from callboard.errors import (
    ActorError,
    ActorStopped,
    AskCycle,
    AskTimeout,
    MailboxFull,
    UnknownAddress,
)
from callboard.lease import carried
from callboard.loops import running_loop
from callboard.seated import GoOn


class Bus:
    """Carries letters between the actors of one roster."""

    def __init__(self, roster: Roster, dead_letters: DeadLetters) -> None:
        self._roster = roster
        self._active = roster.active
        self._traffic = roster.traffic
        self._dead_letters = dead_letters
        self._topics: dict[str, dict[Address, None]] = {}

    control_timeout_s = 60.0  # how long a word on the control lane may take elsewhere

    async def tell(
        self, to: Address, payload: Any, *, after_s: float = 0.0, id: str | None = None
    ) -> None:
        """Send without waiting for an answer; waits for room where the mailbox says so.

        With `after_s` it is sent so many seconds later. `id` has a meaning where an engine keeps
        letters: the same id is taken in once.

        Raises:
            UnknownAddress, ActorStopped, MailboxFull: it was not delivered, and is a dead letter.
        """
        asker = handling.get()
        letter = Envelope(to, payload, None if asker is None else asker.to)
        pump = self._active.get(to)
        if after_s:
            self._roster.later(after_s, self._deliver, letter)
        elif pump is not None and pump.mailbox.offer(letter):  # as `_put`: a call less is 4 %
            self._traffic.open += 1
        else:
            await self._deliver(letter)

    async def ask(
        self,
        to: Address,
        payload: Any,
        *,
        timeout_s: float,
        id: str | None = None,
        detached: bool = False,
    ) -> Any:
        """Send, and wait for the answer. Whoever asks on behalf of an ask has no more time than it.

        What the actor raises is raised here. If this is cancelled or times out, an unread letter
        is dropped, and an agent's run is cancelled. Not with `detached`: then it is from there on
        as if it had been told, and what is done for it is no part of the run that asks.

        Raises:
            AskTimeout: no answer in time.
            AskCycle: the one who is asked waits, through others, for this very answer.
            UnknownAddress, ActorStopped, MailboxFull: it was not delivered, or never answered.
        """
        sender, chain, timeout_s = asking(to, timeout_s)
        answer = Answer()
        deadline = answer.now() + timeout_s
        letter = Envelope(to, payload, sender, answer, chain)
        if not detached:
            letter.deadline, letter.inside = deadline, carried()
        try:
            if not self._put(letter):
                await self._deliver(letter, within_s=timeout_s)
            return await answer.wait(until=deadline)
        except Late:
            raise AskTimeout(f"{to} did not answer within {timeout_s:.3g} s") from None
        finally:
            if detached:
                letter.answer = None
            else:
                answer.set()  # whoever finds it filled does nothing more for it
                if letter.scope is not None:
                    letter.scope.cancel("the one who asked gave up")

    def _put(self, letter: Envelope) -> bool:
        """Put a letter into its mailbox, if its actor is there and the mailbox has room."""
        pump = self._active.get(letter.to)
        if pump is None or not pump.mailbox.offer(letter):
            return False
        self._traffic.open += 1
        return True

    async def _deliver(self, letter: Envelope, *, within_s: float | None = None) -> None:
        """Make the actor, or wait for room. What cannot be delivered is a dead letter."""
        self._traffic.open += 1
        try:
            await self._deliver_slowly(letter, within_s)
        except BaseException as error:
            self._traffic.done()
            reason = _REASONS.get(type(error))
            if reason is not None:
                self._dead_letters.add(letter, reason)
            raise

    async def _deliver_slowly(self, letter: Envelope, within_s: float | None) -> None:
        with anyio.move_on_after(within_s):
            while True:
                pump = await self._roster.reached(letter.to)
                try:
                    dropped = await pump.mailbox.put(letter)
                except ActorStopped:
                    if self._roster.active.get(letter.to) is pump:
                        raise
                    continue  # it was put away in this moment: another one is made
                if dropped is not None:
                    self._traffic.done()
                    self._drop(dropped)
                return
        raise Late

    def _drop(self, letter: Envelope) -> None:
        self._dead_letters.add(letter, Reason.DROPPED)
        if letter.answer is not None:
            letter.answer.fail(MailboxFull(f"a newer letter to {letter.to} took its place"))

    async def actor(self, address: Address) -> Actor:
        """The actor itself, for what goes past its mailbox: the control lane of agents."""
        return await self._roster.actor(address)

    async def control(self, to: Address, verb: str, **said: Any) -> Any:
        """Say something on the control lane of an agent; see `control.perform`.

        Raises:
            ConfigurationError: there is no agent. What the agent's method raises.
        """
        agent = agent_of(await self.actor(to), to)
        value, goes_on = await perform(agent, verb, said)
        if goes_on:
            await self.tell(to, GoOn())
        return value

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        """Have what is published on a topic told to this address, from now on."""
        self._topics.setdefault(topic, {})[address] = None

    async def unsubscribe(self, topic: str, address: Address) -> None:
        """No more of it. Nothing happens if it was not subscribed."""
        self._topics.get(topic, {}).pop(address, None)

    async def publish(self, topic: str, payload: Any) -> int:
        """Tell all subscribers, in the order in which they came. Returns how many got it.

        One that cannot be reached hurts no other: its letter is a dead letter.
        """
        asker = handling.get()
        sender = None if asker is None else asker.to
        reached = 0
        for address in tuple(self._topics.get(topic, ())):
            try:
                letter = Envelope(address, payload, sender, topic=topic)
                if not self._put(letter):
                    await self._deliver(letter)
                reached += 1
            except ActorError:
                continue
        return reached


_REASONS: dict[type[BaseException], Reason] = {
    UnknownAddress: Reason.UNKNOWN_ADDRESS,
    ActorStopped: Reason.STOPPED,
    MailboxFull: Reason.DROPPED,
    Late: Reason.EXPIRED,
}


def asking(to: Address, timeout_s: float) -> tuple[Address | None, tuple[Address, ...], float]:
    """Who asks here, on behalf of whom, and how long it may take at most.

    Raises:
        AskCycle: the one who is asked waits for this answer already.
    """
    asker = handling.get()
    if asker is None:
        return None, (), timeout_s
    chain = (*asker.chain, asker.to)
    if to in chain:
        circle = " -> ".join([str(one) for one in (*chain, to)])
        raise AskCycle(f"asking {to} would wait for ever: {circle}; use tell, or ask less")
    if asker.deadline is not None:
        timeout_s = min(timeout_s, asker.deadline - _now())
    return asker.to, chain, timeout_s


def _now() -> float:
    loop = running_loop()
    return anyio.current_time() if loop is None else loop.time()
