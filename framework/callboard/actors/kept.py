"""One letter that an engine keeps: how it is handled, and what the engine is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Protocol

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.conversing import Conversing
from callboard.actors.engine import Commit, Letter, Standing, StoredAnswer
from callboard.actors.envelope import Envelope
from callboard.actors.payloads import error_body, to_body
from callboard.actors.suspects import Suspects
from callboard.agent_calls import AgentCall
from callboard.errors import ActorStopped, CommitFailed, ConfigurationError, MailboxFull
from callboard.replies import Outcome, Reply, RunFailed
from callboard.seated import GoOn, Seated
from callboard.tooling.deadlines import new_scope

FULL_S = 0.05  # how long to wait before a full mailbox is tried again
LONGEST_FULL_S = 2.0
MOST_TRIES_FULL = 40
_CUT_OFF = object()  # what a handler returned that was cancelled with the one who asked


class Office(Protocol):
    """What a letter needs of the post of its process."""

    @property
    def suspects(self) -> Suspects: ...
    def now(self) -> float: ...
    async def keep(self, commit: Commit) -> None: ...
    async def count(self, letter: Letter, error: str) -> None: ...
    async def bury(self, letter: Letter, reason: str, error: str | None) -> None: ...
    def answered(self, letter_id: str, value: Any, error: BaseException | None) -> None: ...
    def moved(self, letter_id: str) -> None: ...
    def hold(self, envelope: Envelope) -> None: ...
    def let_go(self, address: Address) -> None: ...
    def unread(self, envelope: Envelope, error: Exception | None) -> None: ...


class KeptLetter:
    """The engine's side of an envelope.

    What a plain actor tells others while it handles a letter is sent with the commit that takes
    the letter out of its mailbox, under ids made from the letter's. So a handler that is run
    again after a crash sends nothing twice. An agent's letters need none of that: RunStarted
    takes them out, and what its tools send is theirs.
    """

    __slots__ = (
        "_envelope",
        "_office",
        "_outbox",
        "_sent",
        "buffers",
        "failed",
        "is_given_up",
        "letter",
    )

    def __init__(self, letter: Letter, envelope: Envelope, office: Office) -> None:
        self.letter = letter
        self.failed = False
        self.buffers = False  # whether what is told now waits for the commit of this letter
        self.is_given_up = False  # nobody waits for the answer any more
        self._envelope = envelope
        self._office = office
        self._outbox: list[Letter] = []
        self._sent = 0

    @property
    def is_to_be_tried_again(self) -> bool:
        return self.failed

    # -- handling --------------------------------------------------------------------------------

    async def handle(self, actor: Actor, rules: Any) -> None:
        """As `envelope.Kept.handle`; `rules` are the ActorRules of its kind."""
        self.failed = False
        self._outbox.clear()
        self._sent = 0
        try:
            await self._handled(actor, rules)
        except CommitFailed:  # it stays in hand, and nobody else handles it
            self.buffers, self.failed = False, True
            raise

    async def _handled(self, actor: Actor, rules: Any) -> None:
        if await self._is_over(rules.attempts):
            return
        self.buffers = not isinstance(actor, Conversing)  # an agent's runs are counted by journals
        if not (self.buffers and self.letter.suspect):
            await self._begun(actor, rules)
            return
        async with self._office.suspects.alone():
            await self.count("begun")
            await self._begun(actor, rules)

    async def _begun(self, actor: Actor, rules: Any) -> None:
        if isinstance(actor, Seated) and isinstance(self._envelope.payload, GoOn):
            await self._give_up(actor, rules.attempts)
        try:
            value = await self._received(actor)
        except CommitFailed:
            raise
        except Exception as error:  # the actor's own code
            await self._raised(
                error, rules.attempts, counted=self._closed() and self.letter.suspect
            )
            return
        except BaseException:
            self.buffers = False
            self._office.moved(self.letter.id)
            raise
        self.buffers = False
        await self._ended(value)

    async def _ended(self, value: Any) -> None:
        """Keep what came of it."""
        if isinstance(value, Reply):
            await self._replied(value)
        elif value is _CUT_OFF:
            await self._office.keep(Commit(self.letter.to, done=(self.letter.id,)))
        else:
            await self._returned(value)

    async def _is_over(self, attempts: int) -> bool:
        """Whether nobody wants it handled any more, or it must not be tried again."""
        letter = self.letter
        is_late = letter.deadline is not None and letter.deadline < self._office.now()
        if letter.asked and (is_late or self.is_given_up):
            await self._office.bury(letter, "expired", "the one who asked gave up")
            self._office.moved(letter.id)
            return True
        if letter.attempts < attempts:
            return False
        text = f"{letter.to} began it {letter.attempts} times, and it was never done"
        if letter.asked:
            await self._keep(error=ActorStopped(text))
        await self._office.bury(letter, "failed", text)
        self._office.answered(letter.id, None, ActorStopped(text))
        return True

    async def _give_up(self, agent: Seated, attempts: int) -> None:
        """End and bury a run that may be what ends processes."""
        prompt = await agent.give_up(attempts)
        run = agent.last_run
        if prompt is not None and run is not None:
            letter = Letter(run.run_id, self.letter.to, to_body(prompt))
            await self._office.bury(letter, "failed", run.error)

    async def _received(self, actor: Actor) -> Any:
        envelope = self._envelope
        if not (actor.ends_with_asker and self.letter.asked):
            return await actor.receive(envelope)
        value: Any = _CUT_OFF
        with new_scope() as envelope.scope:  # cancelled when the one who asked gives up
            value = await actor.receive(envelope)
        envelope.scope = None
        return value

    async def _replied(self, reply: Reply) -> None:
        """An agent's run ended or was parked; its end was kept by the journal."""
        letter, is_own = self.letter, reply.run_id == self.letter.id
        goes_on = isinstance(self._envelope.payload, GoOn)
        if isinstance(self._envelope.payload, AgentCall):
            waits = reply.outcome is Outcome.AWAITING_APPROVAL
            await self._keep(reply, standing=Standing.WAITING if waits else None)
        elif reply.outcome is Outcome.AWAITING_APPROVAL:
            if not (is_own or goes_on):
                self._office.hold(self._envelope)  # another run waits for a human
                return
            await self._office.keep(
                Commit(
                    letter.to,
                    done=(letter.id,),
                    answers=(StoredAnswer(reply.run_id, to_body(reply), final=False),),
                    sends=_expiries(letter.to, reply),
                    standing=Standing.WAITING,
                )
            )
        elif goes_on:
            await self._office.keep(Commit(letter.to, done=(letter.id,), standing=Standing.IDLE))
            self._office.let_go(letter.to)
        self._office.answered(letter.id, reply, None)

    async def _returned(self, value: Any) -> None:
        """A plain actor has handled it."""
        try:
            await self._keep(value)
        except ConfigurationError as error:  # it is no JSON, and the one who asked is told
            await self._keep(error=error)
            self._office.answered(self.letter.id, None, error)
            return
        self._office.answered(self.letter.id, value, None)

    async def _keep(
        self,
        value: Any = None,
        error: BaseException | None = None,
        standing: Standing | None = None,
    ) -> None:
        """Take the letter out, send what was told meanwhile, and answer, in one commit."""
        letter = self.letter
        body = to_body(value) if error is None else error_body(error)
        answers = (StoredAnswer(letter.id, body),) if letter.asked else ()
        sends = tuple(self._outbox) if error is None else ()
        await patiently(
            lambda: self._office.keep(
                Commit(
                    letter.to, done=(letter.id,), sends=sends, answers=answers, standing=standing
                )
            )
        )

    def _closed(self) -> bool:
        """What is told from here on is not of this letter any more. Whether anything was."""
        buffered, self.buffers = self.buffers, False
        return buffered

    async def _raised(self, error: Exception, attempts: int, *, counted: bool) -> None:
        """Tell who asked; otherwise try again, or bury it and let supervision decide."""
        letter = self.letter
        if letter.asked and not isinstance(self._envelope.payload, GoOn):
            is_told = isinstance(error, RunFailed) and error.reply.run_id == letter.id
            if not is_told:  # by the commit that ended its run
                await self._keep(error=error)
            self._office.answered(letter.id, None, error)
            return
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, RunFailed) or letter.attempts + (not counted) >= attempts:
            await self._office.bury(letter, "failed", text)
        else:
            if not counted:
                await self.count(text)
            self.failed = True
        self._office.answered(letter.id, None, error)
        raise error

    # -- sending ---------------------------------------------------------------------------------

    def add(self, to: Address, body: Any, *, id: str | None, **more: Any) -> None:
        """A letter that is sent with the commit of this one."""
        self._outbox.append(Letter(id or self.next_id(to, body), to, body, **more))

    def next_id(self, to: Address, body: Any) -> str:
        """The id of what is sent next: the same when this letter is handled again and the same
        is sent.
        """
        self._sent += 1
        digest = sha256(f"{to}\n{body!r}".encode("utf-8", "backslashreplace")).hexdigest()[:12]
        return f"{self.letter.id}:{self._sent}:{digest}"

    def taken(self) -> Sequence[Letter]:
        """What waits to be sent, to be sent now: before the actor asks somebody."""
        taken, self._outbox = tuple(self._outbox), []
        return taken

    # -- unread ----------------------------------------------------------------------------------

    async def refuse(self, error: Exception) -> None:
        """Its actor could not be made: tell the one who asked."""
        await self._keep(error=error)
        self._office.answered(self.letter.id, None, error)

    async def count(self, error: str) -> None:
        """It failed once more, and stays in hand."""
        await self._office.count(self.letter, error)
        self.letter = _again(self.letter)

    def unread(self, error: Exception | None) -> None:
        self._office.unread(self._envelope, error)


async def patiently(keep: Any) -> None:
    """Try again, for about a minute, where a mailbox is full.

    Raises:
        MailboxFull: it stayed full.
    """
    wait_s = FULL_S
    for _ in range(MOST_TRIES_FULL):
        try:
            await keep()
            return
        except MailboxFull:
            await anyio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_FULL_S)
    await keep()


def _expiries(address: Address, reply: Reply) -> tuple[Letter, ...]:
    """Letters that wake a parked agent when its questions expire."""
    times = sorted({one.expires_at for one in reply.pending if one.expires_at is not None})
    return tuple(
        Letter(
            f"{reply.run_id}:expires:{at}", address, {"go_on": True}, due=at + 0.001, control=True
        )
        for at in times
    )


def _again(letter: Letter) -> Letter:
    return Letter(
        letter.id,
        letter.to,
        letter.body,
        letter.sender,
        letter.asked,
        letter.chain,
        letter.deadline,
        letter.due,
        letter.topic,
        letter.control,
        letter.attempts + 1,
        letter.suspect,
    )
