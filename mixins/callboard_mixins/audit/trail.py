"""What every trail does: it numbers entries, chains them, and counts for several agents."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal, Protocol

from callboard.errors import ConfigurationError
from callboard.json_text import Json
from callboard_mixins.audit.chain import NOTHING, Link, Signs, entry_text

Sync = Literal["never", "effects", "always"]
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time now."""
    return datetime.now(UTC)


class AuditTrail(Protocol):
    """Where an audit is written. Several agents may share one."""

    def write(self, agent: str, body: Mapping[str, Json], *, is_intent: bool) -> str:
        """Append one entry, and return its line. Done when it returns; not async.

        `is_intent` says that an effect follows which must not outlive the entry.

        Raises:
            CommitFailed: nothing was written; the effect must not happen.
        """
        ...


class Chained(ABC):
    """A trail that is a chain of entries. Threads and processes may share its file.

    `sync="effects"` (the default) waits for the disk before an effect only, "always" after each
    entry, "never" leaves it to the system: then a power loss may take the last entries, while the
    end of the process does not.
    """

    def __init__(self, *, key: Signs | None, sync: Sync, clock: Clock) -> None:
        if sync not in ("never", "effects", "always"):
            raise ConfigurationError(f"sync={sync!r}: give 'never', 'effects' or 'always'")
        self._key = key
        self._sync = sync
        self._clock = clock
        self._turn = threading.Lock()

    def write(self, agent: str, body: Mapping[str, Json], *, is_intent: bool = False) -> str:
        """As `AuditTrail.write`."""
        durable = self._sync == "always" or (self._sync == "effects" and is_intent)
        with self._turn:
            return self._append(agent, body, durable=durable)

    @abstractmethod
    def _append(self, agent: str, body: Mapping[str, Json], *, durable: bool) -> str:
        """Write one entry. The caller holds the lock of this trail's threads."""

    def _entry(
        self, agent: str, body: Mapping[str, Json], above: Link, previous: Link | None
    ) -> tuple[str, Link, Link]:
        """The line of an entry, and what it is to the entry below and to the agent's next."""
        previous = previous or NOTHING
        timed = {**body, "at": self._clock().isoformat(timespec="microseconds")}
        text, hash = entry_text(timed, agent=agent, above=above, previous=previous, key=self._key)
        return text, Link(above.number + 1, hash), Link(previous.number + 1, hash)
