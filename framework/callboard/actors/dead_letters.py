"""What could not be delivered: counted, the newest kept, and visible."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from callboard.actors.envelope import Envelope

KEPT = 1_000


class Reason(StrEnum):
    """Why a letter is dead."""

    UNKNOWN_ADDRESS = "unknown_address"
    STOPPED = "stopped"  # its actor stopped before it read the letter
    EXPIRED = "expired"  # the one who asked gave up before it was read
    DROPPED = "dropped"  # a full mailbox made room for a newer letter
    FAILED = "failed"  # the actor raised, and nobody waits for an answer


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A letter that reached nobody, or failed there. `error` is what was raised, as text."""

    letter: Envelope
    reason: Reason
    error: str | None = None


class DeadLetters:
    """The newest dead letters of a system, oldest first. `count` counts all there ever were."""

    def __init__(self, *, kept: int = KEPT) -> None:
        self.count = 0
        self._kept: deque[DeadLetter] = deque(maxlen=kept)

    def add(self, letter: Envelope, reason: Reason, error: BaseException | None = None) -> None:
        self.count += 1
        text = None if error is None else f"{type(error).__name__}: {error}"
        self._kept.append(DeadLetter(letter, reason, text))

    def __iter__(self) -> Iterator[DeadLetter]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)
