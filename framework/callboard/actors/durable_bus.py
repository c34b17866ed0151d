"""The bus over an engine: what is sent is kept before anything happens, and answered once."""

from __future__ import annotations

from math import inf
from typing import Any

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.bus import Bus, asking
from callboard.actors.control_lane import words
from callboard.actors.dead_letters import DeadLetters
from callboard.actors.engine import Engine, Letter, StoredAnswer
from callboard.actors.envelope import handling
from callboard.actors.kept import KeptLetter, patiently
from callboard.actors.payloads import from_body, to_body
from callboard.actors.post import Post
from callboard.actors.roster import Roster
from callboard.actors.slots import Moved
from callboard.actors.waiting import Answer, Late
from callboard.errors import AskTimeout, ConfigurationError, MailboxFull
from callboard.messages import new_id

GIVE_UP_S = 5.0  # how long telling the others may take that nobody waits any more
SOON_S = 0.5  # for an answer that is given here, before the engine is asked for an earlier one


def _is_handling() -> bool:
    """Whether this is asked by a plain actor, under an id made from the letter that it handles."""
    asker = handling.get()
    return asker is not None and isinstance(asker.kept, KeptLetter) and asker.kept.buffers


class DurableBus(Bus):
    """Sends through an engine. A letter is kept when `tell` returns."""

    def __init__(
        self, roster: Roster, dead_letters: DeadLetters, *, engine: Engine, post: Post
    ) -> None:
        super().__init__(roster, dead_letters)
        self._engine = engine
        self._post = post

    async def tell(
        self, to: Address, payload: Any, *, after_s: float = 0.0, id: str | None = None
    ) -> None:
        """As `Bus.tell`; the payload is JSON, or messages for an agent.

        Raises:
            ConfigurationError: the payload is no JSON. MailboxFull: there was no room for a
            minute. CommitFailed: it could not be kept.
        """
        await self._post.ready()
        body = to_body(payload)
        due = self._engine.now() + after_s if after_s else None
        asker = handling.get()
        kept = None if asker is None else asker.kept
        sender = None if asker is None else asker.to
        if isinstance(kept, KeptLetter) and kept.buffers:
            kept.add(to, body, sender=sender, due=due, id=id)
            return
        letter = Letter(id or new_id("l"), to, body, sender, due=due)
        await patiently(lambda: self._engine.send(letter))

    async def ask(
        self,
        to: Address,
        payload: Any,
        *,
        timeout_s: float,
        id: str | None = None,
        detached: bool = False,
    ) -> Any:
        """As `Bus.ask`, through the engine.

        With `id` it is asked once, however often this is called, also after a restart: the
        answer that there is is given again. What comes from another process, or from an earlier
        life of this one, is what JSON holds: a Reply without `messages` and `usage`.
        """
        sender, chain, timeout_s = asking(to, timeout_s)
        await self._post.ready()
        letter = Letter(
            id or self._next_id(to, payload),
            to,
            to_body(payload),
            sender,
            asked=True,
            chain=chain,
            deadline=None if detached or timeout_s == inf else self._engine.now() + timeout_s,
        )
        is_again = id is not None
        if not detached:
            return await self._asked(letter, timeout_s, is_again=is_again)
        with anyio.move_on_after(timeout_s):
            return await self._asked(letter, timeout_s, is_again=is_again, detached=True)
        raise AskTimeout(self._late(to, timeout_s))

    async def control(self, to: Address, verb: str, **said: Any) -> Any:
        """As `Bus.control`, wherever the agent runs."""
        await self._post.ready()
        body = words(verb, said)
        deadline = self._engine.now() + self.control_timeout_s
        letter = Letter(new_id("l"), to, body, None, True, (), deadline, control=True)
        return await self._asked(letter, self.control_timeout_s, is_again=False)

    async def _asked(
        self, letter: Letter, timeout_s: float, *, is_again: bool, detached: bool = False
    ) -> Any:
        slot = self._post.slots.open(letter.id)
        is_over = False
        try:
            await self._send_first()
            await self._sent(letter)
            value = await self._answer(letter, slot, is_elsewhere=is_again)
            is_over = True
            return value
        except Late:
            raise AskTimeout(self._late(letter.to, timeout_s)) from None
        except Exception:  # the answer is an error, or nothing could be kept
            is_over = True
            raise
        finally:
            self._post.slots.close(letter.id)
            if not is_over and not letter.control and not detached:
                await self._give_up(letter)

    def _late(self, to: Address, timeout_s: float) -> str:
        text = f"{to} did not answer within {timeout_s:.3g} s"
        if self._roster.knows(to.type):
            return text
        return f"{text}; no {to.type!r} is registered here, so another process has to serve it"

    def _next_id(self, to: Address, payload: Any) -> str:
        """Made from the letter that a plain actor handles, so that it asks once."""
        asker = handling.get()
        kept = None if asker is None else asker.kept
        if isinstance(kept, KeptLetter) and kept.buffers:
            return kept.next_id(to, to_body(payload))
        return new_id("l")

    async def _send_first(self) -> None:
        """What this handler told others comes before what it asks."""
        asker = handling.get()
        kept = None if asker is None else asker.kept
        if isinstance(kept, KeptLetter) and (letters := kept.taken()):
            await patiently(lambda: self._engine.send(*letters))

    async def _sent(self, letter: Letter) -> None:
        """Send; where there is no room, for as long as the asker waits.

        Raises:
            Late: there was none in time.
        """
        wait_s = 0.01
        while True:
            try:
                await self._engine.send(letter)
                return
            except MailboxFull:
                if wait_s >= self._left_s(letter):
                    raise Late from None
                await anyio.sleep(wait_s)
                wait_s = min(2 * wait_s, 1.0)

    async def _answer(self, letter: Letter, slot: Answer, *, is_elsewhere: bool) -> Any:
        """The answer as it was given here, or as the engine keeps it.

        Raises:
            Late: there was none in time. What the answer raises.
        """
        if not is_elsewhere and self._post.owns(letter.to):
            try:
                return await self._here(letter, slot)
            except Moved:
                pass
        return from_body((await self._kept(letter)).body)

    async def _here(self, letter: Letter, slot: Answer) -> Any:
        """The answer as it is given in this process.

        What an actor asks while it handles a letter may have been answered in an earlier life, in
        which it began that letter: nobody here does it again, and the engine has the answer.
        """
        left_s = self._left_s(letter)
        if not _is_handling() or left_s < SOON_S:
            return await slot.wait(None if left_s == inf else left_s)
        try:
            return await slot.wait(SOON_S)
        except Late:
            slot = self._post.slots.open(letter.id)
        stored = await self._kept(letter)
        try:
            return await slot.wait(SOON_S)  # it may have been given here just now
        except Late:
            return from_body(stored.body)

    async def _kept(self, letter: Letter) -> StoredAnswer:
        """The answer that the engine keeps, once there is one.

        Raises:
            Late: there was none in time.
        """
        try:
            return await self._engine.answer(letter.id, timeout_s=self._left_s(letter))
        except AskTimeout:
            raise Late from None

    def _left_s(self, letter: Letter) -> float:
        """The seconds that the one who asks still waits."""
        return inf if letter.deadline is None else max(0.001, letter.deadline - self._engine.now())

    async def _give_up(self, letter: Letter) -> None:
        """Nobody waits any more: take the letter back, or end the run that it began."""
        if self._post.is_leaving:
            return
        with anyio.move_on_after(GIVE_UP_S, shield=True):
            if self._post.give_up(letter.id) or await self._engine.withdraw(letter.id):
                return
            run_id = letter.body.get("call", {}).get("run_id", letter.id)
            body = {"control": "cancel_run", "run_id": run_id}
            await self._engine.send(Letter(new_id("l"), letter.to, body, control=True))

    async def actor(self, address: Address) -> Actor:
        """As `Bus.actor`.

        Raises:
            ConfigurationError: another process owns the address.
        """
        await self._post.ready()
        if not self._post.owns(address):
            raise ConfigurationError(
                f"{address} runs in another process: ask, tell and the control lane reach it,"
                " `stream` does not"
            )
        return await self._post.actor(address)

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        await self._engine.subscribe(topic, address)

    async def unsubscribe(self, topic: str, address: Address) -> None:
        await self._engine.unsubscribe(topic, address)

    async def publish(self, topic: str, payload: Any) -> int:
        """As `Bus.publish`: each gets a letter of its own; one that is full hurts no other."""
        await self._post.ready()
        body, reached = to_body(payload), 0
        for address in await self._engine.subscribers(topic):
            letter = Letter(new_id("l"), address, body, topic=topic)
            try:
                await self._engine.send(letter)
                reached += 1
            except MailboxFull as error:
                await self._engine.bury(letter, "dropped", str(error))
        return reached
