"""What travels on the bus: a payload, where it goes, and who waits for an answer."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from anyio import CancelScope

from callboard.actors.address import Address
from callboard.actors.waiting import Answer
from callboard.lease import Carried


class Kept(Protocol):
    """A letter that an engine keeps until it is done: who handles it tells the engine."""

    async def handle(self, actor: Any, rules: Any) -> None:
        """Have the actor receive it, and keep what came of that.

        Raises what supervision has to see: nobody waits for an answer, or nothing could be kept.
        """
        ...

    @property
    def is_to_be_tried_again(self) -> bool:
        """Whether it failed, and is still in hand."""
        ...

    def unread(self, error: Exception | None) -> None:
        """Its mailbox was closed before it was read: the actor went, or could not be made."""
        ...


class Envelope:
    """One message to one actor. `answer` is None for a `tell`.

    `chain` holds the addresses of the actors that wait for this answer, the first asker first.
    `deadline` is a time of the event loop's clock, or None. `kept` is what an engine has to be
    told of it, None where no engine keeps it.
    """

    __slots__ = (
        "answer",
        "chain",
        "deadline",
        "inside",
        "is_again",
        "kept",
        "payload",
        "run_id",
        "scope",
        "sender",
        "to",
        "topic",
    )

    def __init__(
        self,
        to: Address,
        payload: Any,
        sender: Address | None = None,
        answer: Answer | None = None,
        chain: tuple[Address, ...] = (),
        *,
        deadline: float | None = None,
        topic: str | None = None,
    ) -> None:
        self.to = to
        self.payload = payload
        self.sender = sender
        self.chain = chain
        self.answer = answer
        self.deadline = deadline
        self.topic = topic
        self.inside: Carried | None = None  # for whose runs the one who asks works
        self.scope: CancelScope | None = None  # of its handler, while it runs
        self.kept: Kept | None = None
        self.run_id: str | None = None  # of the run that it begins, where that is fixed
        self.is_again = False  # whether it may have been begun before

    def __repr__(self) -> str:
        kind = "tell" if self.answer is None else "ask"
        return f"Envelope({kind} {self.to} from {self.sender}: {type(self.payload).__name__})"


handling: ContextVar[Envelope | None] = ContextVar("handling", default=None)
"""The envelope whose handler this code runs in, so that asking on goes on in its chain."""
