"""Between an engine and the actors of this process: takes letters in, keeps what came of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import anyio
from anyio.abc import TaskGroup, TaskStatus

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.control_lane import ControlLane
from callboard.actors.engine import Commit, Engine, Letter, Worker
from callboard.actors.engine_journal import EngineJournal
from callboard.actors.envelope import Envelope
from callboard.actors.kept import KeptLetter
from callboard.actors.payloads import checked, from_body
from callboard.actors.roster import Roster
from callboard.actors.slots import Slots
from callboard.actors.suspects import Suspects
from callboard.agent_calls import AgentCall
from callboard.errors import ActorError, ActorStopped, ConfigurationError, Fenced
from callboard.journaling.records import ToolStarted
from callboard.replies import RunFailed
from callboard.seated import GoOn

QUIET_S = 0.005  # what the worker gets to hand out what it has
OPEN_AGAIN_S = 0.1  # before an actor that could not be made is made again, doubled each time


class Post:
    """Takes letters from the worker into mailboxes, in order for each address."""

    def __init__(self, engine: Engine, roster: Roster) -> None:
        self.engine = engine
        self.slots = Slots()
        self._roster = roster
        self._tasks: TaskGroup | None = None
        self._worker: Worker | None = None
        self._intake = anyio.CancelScope()
        self._end = anyio.Event()
        self._is_sealed = False
        self._in_hand: dict[str, Envelope] = {}
        self._opening: dict[Address, deque[Envelope]] = {}  # their actor is being made
        self._held: dict[Address, deque[Envelope]] = {}  # their agent waits for a human
        self._lane = ControlLane(self)
        self._journals = WeakSet[EngineJournal]()
        self._kinds: list[str] = []  # registered, and not served yet
        self._adding = anyio.Lock(fast_acquire=True)
        self.suspects = Suspects()

    async def settled(self) -> None:
        """Wait until nothing is left to do here: not for parked agents, nor for other processes."""
        while True:
            await self._roster.traffic.settled()
            for _ in range(3):  # what was sent just now comes with the worker's next hand-out
                await anyio.sleep(QUIET_S)
            if not (self._roster.traffic.open or self._opening or self._lane.is_busy):
                return

    # -- the work --------------------------------------------------------------------------------

    async def serve(
        self, tasks: TaskGroup, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Take letters in until `stop_intake`, and give the addresses back after `close`."""
        self._tasks = tasks
        async with self.engine.worker((), on_lost=self._lost) as worker:
            self._worker = worker
            await self.ready()
            task_status.started()
            with self._intake:
                while True:
                    for letter in await worker.next():
                        self._arrived(letter)
            await self._end.wait()
            await worker.release()

    def serve_kind(self, kind: str) -> None:
        """Take part in the work for this kind from now on."""
        self._kinds.append(kind)
        if self._tasks is not None:
            self._spawn(self.ready)

    async def ready(self) -> None:
        """Own what is there for this process of the kinds that were registered of late."""
        if not self._kinds or self._worker is None:
            return
        async with self._adding:
            while self._kinds:
                await self._worker.add(self._kinds[0])
                del self._kinds[0]

    def stop_intake(self) -> None:
        self._intake.cancel()

    def seal(self) -> None:
        """Keep nothing more: what is cut off now looks as if the process had died."""
        self._is_sealed = True

    def close(self) -> None:
        """Give all addresses back."""
        self._end.set()

    @property
    def is_leaving(self) -> bool:
        """Whether this process takes no more part."""
        return self._is_sealed or self._intake.cancel_called

    def owns(self, address: Address) -> bool:
        worker = self._worker
        return worker is not None and not self._is_sealed and worker.owns(address)

    def now(self) -> float:
        return self.engine.now()

    def journal(self, address: Address) -> EngineJournal:
        """The journal of an address, written for as long as this process keeps the address."""
        journal = EngineJournal(self.engine, address, self.keep)
        self._journals.add(journal)
        return journal

    # -- what the engine is told -----------------------------------------------------------------

    async def keep(self, commit: Commit) -> None:
        """Have the engine keep a commit: as the owner of its address where this process serves
        its kind.

        Raises:
            Fenced: another process owns it, or this one gave everything back.
        """
        if self._is_sealed:
            raise Fenced(f"{commit.address}: this process gave it back and writes no more")
        if self._worker is not None and self._roster.knows(commit.address.type):
            await self._worker.commit(commit)
            if _begins(commit) and not self.owns(commit.address):
                raise Fenced(f"{commit.address}: the lease ran out right before an effect")
        else:
            await self.engine.commit(commit)

    async def count(self, letter: Letter, error: str) -> None:
        assert self._worker is not None  # it has handed the letter out
        await self._worker.count(letter, error)

    async def bury(self, letter: Letter, reason: str, error: str | None) -> None:
        self._in_hand.pop(letter.id, None)
        await self.engine.bury(letter, reason, error)

    # -- letters ---------------------------------------------------------------------------------

    def _arrived(self, letter: Letter) -> None:
        if letter.control and "control" in letter.body:
            self._lane.put(letter)
            return
        try:
            payload = from_body(letter.body)
        except (ActorError, ConfigurationError, RunFailed) as error:
            self._spawn(self.bury, letter, "unreadable", str(error))
            return
        envelope = Envelope(letter.to, payload, letter.sender, None, letter.chain)
        if letter.deadline is not None:
            envelope.deadline = anyio.current_time() + letter.deadline - self.now()
        envelope.topic = letter.topic
        envelope.kept = KeptLetter(letter, envelope, self)
        envelope.inside = self.slots.inside(letter.id)
        envelope.run_id = letter.id
        envelope.is_again = letter.attempts > 0
        if envelope.is_again and isinstance(payload, AgentCall):
            envelope.payload = replace(payload, is_again=True)
        self._in_hand[letter.id] = envelope
        self._put(envelope)

    def _put(self, envelope: Envelope) -> None:
        address, goes_on = envelope.to, isinstance(envelope.payload, GoOn)
        if address in self._held and not goes_on:
            self._held[address].append(envelope)
        elif address in self._opening:
            waiting = self._opening[address]
            waiting.appendleft(envelope) if goes_on else waiting.append(envelope)
        elif not self._offered(envelope):
            self._opening[address] = deque((envelope,))
            self._spawn(self._open, address)

    def _offered(self, envelope: Envelope) -> bool:
        """Whether its actor is here and took it into the mailbox."""
        pump = self._roster.active.get(envelope.to)
        if pump is None or pump.mailbox.is_closed:
            return False
        if isinstance(envelope.payload, GoOn):
            pump.mailbox.put_control(envelope)
        elif not pump.mailbox.offer(envelope):
            return False
        self._roster.traffic.open += 1
        return True

    async def _open(self, address: Address, after_s: float = 0.0) -> None:
        """Make the actor, and give it what waits, in order."""
        await anyio.sleep(after_s)
        try:
            await self.reached(address)
        except ActorError as error:  # the system stops, or nobody can be made
            for envelope in self._opening.pop(address, ()):
                self.unread(envelope, None if isinstance(error, ActorStopped) else error)
            return
        waiting = self._opening.pop(address, None)
        while waiting and self._offered(waiting[0]):
            waiting.popleft()
        if waiting:
            self._opening[address] = waiting
            self._spawn(self._open, address, OPEN_AGAIN_S)

    async def reached(self, address: Address) -> None:
        """Make the actor of an address with the arguments that it was spawned with.

        Raises:
            UnknownAddress, ActorStopped: as `Roster.reached`.
        """
        arguments: Mapping[str, Any] = await self.engine.arguments(address) or {}
        await self._roster.reached(address, arguments)

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> None:
        """Keep the arguments of an address; its actor is made by its first letter.

        Raises:
            UnknownAddress: the kind is not registered here.
            ConfigurationError: it was spawned with other arguments, or they are no JSON.
        """
        self._roster.rules(address)
        given = checked(dict(arguments), where=f"spawn({str(address)!r})")
        await self.ready()
        if await self.engine.spawn(address, given):
            return
        known = await self.engine.arguments(address)
        if known != given:
            raise ConfigurationError(
                f"{address} was spawned with {known!r:.200} and not {given!r:.200}; give it"
                " another key"
            )

    async def actor(self, address: Address) -> Actor:
        """The actor at an address that this process owns, made if need be."""
        await self.reached(address)
        return await self._roster.actor(address)

    def unread(self, envelope: Envelope, error: Exception | None) -> None:
        """A mailbox was closed before this was read."""
        kept = envelope.kept
        assert isinstance(kept, KeptLetter)  # this has made it
        if self.is_leaving or not self.owns(envelope.to):
            self.moved(kept.letter.id)  # another process handles it
        elif error is None:
            self._put(envelope)
        else:
            self._spawn(self._not_made, kept, envelope, error)

    async def _not_made(self, kept: KeptLetter, envelope: Envelope, error: Exception) -> None:
        """Its actor could not be made: who asked is told, and others try again for a while."""
        letter = kept.letter
        text = f"{letter.to} could not be made: {type(error).__name__}: {error}"
        if letter.asked:
            await kept.refuse(error)
        elif letter.attempts + 1 >= self._roster.rules(letter.to).attempts:
            await self.bury(letter, "failed", text)
        else:
            await kept.count(text)
            wait_s = OPEN_AGAIN_S * 2**letter.attempts
            if letter.to in self._opening:
                self._opening[letter.to].appendleft(envelope)
            else:
                self._opening[letter.to] = deque((envelope,))
                await self._open(letter.to, wait_s)

    # -- parked agents ---------------------------------------------------------------------------

    def hold(self, envelope: Envelope) -> None:
        """Keep a letter back until the run that waits for a human has ended."""
        self._held.setdefault(envelope.to, deque()).append(envelope)

    def let_go(self, address: Address) -> None:
        """The run has ended: what was held back comes before what came since."""
        for envelope in reversed(self._held.pop(address, ())):
            pump = self._roster.active.get(address)
            if pump is None or pump.mailbox.is_closed:
                self._opening.setdefault(address, deque()).appendleft(envelope)
            else:
                self._roster.traffic.open += 1
                pump.mailbox.put_front(envelope)
        if address in self._opening:
            self._spawn(self._open, address)

    # -- who waits -------------------------------------------------------------------------------

    def answered(self, letter_id: str, value: Any, error: BaseException | None) -> None:
        """A letter is over: tell the one who asked for it in this process."""
        self._in_hand.pop(letter_id, None)
        self.slots.fill(letter_id, value, error)

    def moved(self, letter_id: str) -> None:
        """Whoever owns the address next answers it, through the engine."""
        self._in_hand.pop(letter_id, None)
        self.slots.move(letter_id)

    def give_up(self, letter_id: str) -> bool:
        """The one who asked is gone: cancel the run. False if it is not in hand here."""
        envelope = self._in_hand.get(letter_id)
        if envelope is None or not isinstance(envelope.kept, KeptLetter):
            return False
        envelope.kept.is_given_up = True
        if envelope.scope is not None:
            envelope.scope.cancel("the one who asked gave up")
        return True

    # -- leaving ---------------------------------------------------------------------------------

    def _lost(self, is_lost: Callable[[Address], bool]) -> None:
        """Another process owns these addresses: drop all that is here of them, write nothing, also
        where they come back before what is cancelled here has ended.
        """
        for journal in self._journals:
            if is_lost(journal.address):
                journal.seal()
        for address in [one for one in self._roster.active if is_lost(one)]:
            self._roster.cancel(address)
        for desks in (self._opening, self._held):
            for address in [one for one in desks if is_lost(one)]:
                for envelope in desks.pop(address):
                    self.unread(envelope, None)
        for letter_id, envelope in tuple(self._in_hand.items()):
            if is_lost(envelope.to):
                self.moved(letter_id)
        self._lane.forget(is_lost)

    def _spawn(self, work: Any, *arguments: Any) -> None:
        assert self._tasks is not None  # letters come while it serves
        self._tasks.start_soon(work, *arguments)

    def start(self, work: Any, *arguments: Any) -> None:
        """Do something beside the letters, for as long as the system runs."""
        self._spawn(work, *arguments)


def _begins(commit: Commit) -> bool:
    """Whether an effect comes next."""
    return any([isinstance(record, ToolStarted) for record in commit.records])
