"""What outlives every life of an agent: what its tools did, and what people know that they said."""

from __future__ import annotations

from pathlib import Path

from callboard.journaling.blobs import Blobs
from callboard.replies import Reply
from tests.framework.histories.below import Below
from tests.framework.histories.history import History
from tests.framework.histories.house import House
from tests.framework.histories.keeps import blobs_of
from tests.framework.histories.tools import Entry


class World:
    """The books of one history. `file` is where its journal is, where that is a real one."""

    def __init__(self, history: History, file: Path | None = None) -> None:
        self.history = history
        self.file = file
        self.ledger: list[Entry] = []
        self.items: dict[str, str] = {}  # queued and acknowledged: id -> text
        self.withdrawn: set[str] = set()  # and acknowledged
        self.replies: dict[str, Reply] = {}  # prompt -> what run answered
        self.granted: set[str] = set()  # approvals
        self.was_left_long = False  # and what its journal holds was made so
        self.expired: set[str] = set()  # approvals that nobody may give any more
        self.cancelled_calls: set[str] = set()
        self.supplied: dict[str, int] = {}  # text -> the life that was given it
        self.readings = 0  # streams and bounded views that were read and checked
        self.missed = 0  # events that the bounded views did not show
        self.said = 0
        self.lives = 0
        self.deaths: set[int] = set()  # lives that ended by one
        self.house = House(history.layers)
        self.blobs: Blobs | None = blobs_of(history, file)
        self.child = None if history.child is None else Below(history, history.child, file)
        faults = (history.faults, history.blob_faults, history.audit_fails)
        self.commits_fail = any([fault not in (None, ()) for fault in faults])

    def words(self, kind: str) -> str:
        """A text that nobody has said before."""
        self.said += 1
        return f"{kind} {self.said}"
