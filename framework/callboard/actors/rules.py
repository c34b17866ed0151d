"""How the actors of a kind are kept: their mailbox, what follows a failure, when they go."""

from __future__ import annotations

from dataclasses import dataclass

from callboard.actors.mailbox import BOUND, WhenFull
from callboard.actors.supervision import Supervision
from callboard.errors import ConfigurationError

ESCALATING = Supervision()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorRules:
    """How actors of a kind are kept. `idle_s`: put away after so many seconds without a letter.

    `attempts`: how often a letter that an engine keeps may be begun without an end before it is a
    dead letter: its handler raised and nobody waits, or it ended its process.
    """

    mailbox_bound: int = BOUND
    when_full: WhenFull = WhenFull.WAIT
    supervision: Supervision = ESCALATING
    idle_s: float | None = None
    attempts: int = 3

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ConfigurationError(f"attempts={self.attempts!r}: it must be 1 or more")
        if self.mailbox_bound < 1:
            raise ConfigurationError(f"mailbox_bound={self.mailbox_bound!r}: it must be 1 or more")
        if self.idle_s is not None and self.idle_s <= 0:
            raise ConfigurationError(f"idle_s={self.idle_s!r}: it must be above 0, or None")
        object.__setattr__(self, "when_full", WhenFull(self.when_full))
