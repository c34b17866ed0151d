"""An actor's mailbox: bounded, read by one pump, with a lane for control that never waits.

Senders that wait for room are served in order. Whoever closes it gets what was not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum

from callboard.actors.envelope import Envelope
from callboard.actors.waiting import Answer
from callboard.errors import ActorStopped, ConfigurationError, MailboxFull

BOUND = 1_000


class WhenFull(StrEnum):
    """What happens to a message for which there is no room."""

    WAIT = "wait"  # its sender waits
    REJECT = "reject"  # its sender gets MailboxFull
    DROP_OLDEST = "drop_oldest"  # the oldest one that is unread makes room, as a dead letter


class Mailbox:
    """Letters for one actor. `put` is called by anybody, `take` and `get` by its pump alone.

    A letter for a reader who waits is handed over at once; queues are made when they are needed
    (an empty deque takes 760 bytes). `on_letter` is called once, by the next letter that comes
    while nobody reads.
    """

    __slots__ = (
        "_bound",
        "_control",
        "_letters",
        "_reader",
        "_senders",
        "_when_full",
        "is_closed",
        "on_letter",
    )

    def __init__(self, *, bound: int = BOUND, when_full: WhenFull = WhenFull.WAIT) -> None:
        if bound < 1:
            raise ConfigurationError(f"bound={bound!r}: a mailbox needs room for 1 letter at least")
        self._bound = bound
        self._when_full = when_full
        self._letters: deque[Envelope] | None = None
        self._control: deque[Envelope] | None = None
        self._senders: deque[tuple[Envelope, Answer]] | None = None
        self._reader: Answer | None = None  # who waits, or was handed a letter just now
        self.is_closed = False
        self.on_letter: Callable[[], None] | None = None

    @property
    def depth(self) -> int:
        """How many letters are unread, those of waiting senders included."""
        handed = self._reader is not None and self._reader.value is not None
        queues = (self._letters, self._control, self._senders)
        return handed + sum([len(queue) for queue in queues if queue])

    def offer(self, letter: Envelope) -> bool:
        """Put a letter in if the mailbox is open and has room."""
        reader = self._reader
        if reader is not None and not reader.is_set:
            reader.set(letter)
            return True
        letters = self._letters
        if letters is None:
            if self.is_closed:
                return False
            self._letters = deque((letter,))
            if self.on_letter is not None:
                self._call()
            return True
        if len(letters) >= self._bound:
            return False
        letters.append(letter)
        return True

    def put_nowait(self, letter: Envelope) -> Envelope | None:
        """Put a letter in. Returns the one that was dropped for it, if that is the policy.

        Raises:
            MailboxFull: there is no room; also where the policy is to wait.
            ActorStopped: the mailbox was closed.
        """
        if self.offer(letter):
            return None
        if self._letters is None:
            raise ActorStopped(f"{letter.to} has stopped")
        if self._when_full is not WhenFull.DROP_OLDEST:
            raise MailboxFull(f"the mailbox of {letter.to} is full: {self._bound} letters")
        dropped = self._letters.popleft()
        self._letters.append(letter)
        return dropped

    async def put(self, letter: Envelope) -> Envelope | None:
        """As `put_nowait`, but where the policy is to wait it waits for room.

        A sender that is cancelled while it waits has sent nothing.
        """
        if self._when_full is not WhenFull.WAIT or self.is_closed:
            return self.put_nowait(letter)
        if self.offer(letter):
            return None
        turn = Answer()
        if self._senders is None:
            self._senders = deque()
        self._senders.append((letter, turn))
        try:
            await turn.wait()
        except BaseException:
            if not turn.is_set:
                self._senders.remove((letter, turn))
            raise
        return None

    def put_control(self, letter: Envelope) -> None:
        """Put a letter in before all others that are no control letters.

        Raises:
            ActorStopped: the mailbox was closed.
        """
        if self.is_closed:
            raise ActorStopped(f"{letter.to} has stopped")
        if self._reader is not None and not self._reader.is_set:
            self._reader.set(letter)
            return
        if self._control is None:
            self._control = deque()
        self._control.append(letter)
        self._call()

    def put_front(self, letter: Envelope) -> None:
        """Put a letter that was taken before in front of all others, control letters too.

        Raises:
            ActorStopped: the mailbox was closed.
        """
        if self.is_closed:
            raise ActorStopped(f"{letter.to} has stopped")
        if self._reader is not None and not self._reader.is_set:
            self._reader.set(letter)
            return
        if self._control is None:
            self._control = deque()
        self._control.appendleft(letter)
        self._call()

    def take(self) -> Envelope | None:
        """The next letter if there is one."""
        if self._control:
            return self._control.popleft()
        if not self._letters:
            return None
        letter = self._letters.popleft()
        if self._senders:
            admitted, turn = self._senders.popleft()
            self._letters.append(admitted)
            turn.set()
        return letter

    async def get(self) -> Envelope | None:
        """The next letter; None once the mailbox is closed, or at a nudge. Does not suspend while
        there is one.
        """
        letter = self.take()
        if letter is None and not self.is_closed:
            self._letters = None
            self._reader = Answer()
            letter = await self._reader.wait()
            self._reader = None
        return letter

    def nudge(self) -> None:
        """Have a reader who waits get None, as if the mailbox were closed."""
        if self._reader is not None and not self._reader.is_set:
            self._reader.set()

    def _call(self) -> None:
        on_letter, self.on_letter = self.on_letter, None
        if on_letter is not None:
            on_letter()

    def close(self) -> list[Envelope]:
        """Refuse further letters, and hand back those that were not read."""
        self.is_closed = True
        unread = [*(self._control or ()), *(self._letters or ())]
        self._control = self._letters = None
        while self._senders:
            letter, turn = self._senders.popleft()
            turn.fail(ActorStopped(f"{letter.to} has stopped"))
        if self._reader is not None and self._reader.value is not None:
            unread.insert(0, self._reader.value)  # its reader was cancelled, or never sees it now
            self._reader.value = None
        elif self._reader is not None:
            self._reader.set()
        return unread
