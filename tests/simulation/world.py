"""What outlives every process of a case: the store, the books of what was done, and the story."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import anyio

from callboard.replies import Reply
from tests.framework.histories.laws import Broken
from tests.simulation.books import Books
from tests.simulation.case import Case, Fault
from tests.simulation.store import Store


@dataclass(frozen=True, slots=True)
class Entry:
    """One execution of a tool."""

    address: str
    call_id: str
    name: str
    key: str
    life: str


class World:
    """The books of one case."""

    def __init__(self, case: Case, store: type[Store] = Store) -> None:
        self.case = case
        self.chance = Random(case.seed)
        self.books = Books(self.breaks)
        self.store = store(self.books)
        self.ledger: list[Entry] = []
        self.acknowledged: set[str] = set()  # ids of letters that were told
        self.answers: dict[str, object] = {}  # job id -> what its asker got
        self.replies: dict[str, Reply] = {}  # job id -> how its run ended
        self.denied: set[str] = set()  # call ids, and acknowledged
        self.cuts = 0  # processes that died, or were stopped
        self.is_calm = False  # nothing goes wrong any more
        self.was_stuck = False  # only a restart of all processes brought everything to its end
        self.lines: list[str] = []
        self.broken: Broken | None = None
        self.over = anyio.Event()
        self._faults = {fault.call: fault for fault in case.faults}
        self.calls = 0
        self.met = 0  # faults

    def fault(self) -> Fault | None:
        """What goes wrong at this call."""
        self.calls += 1
        found = None if self.is_calm else self._faults.get(self.calls)
        self.met += found is not None
        return found

    def tell(self, line: str) -> None:
        """Go on with the story, until the case is over."""
        if self.over.is_set():
            return
        self.lines.append(f"{anyio.current_time():8.3f} {line}")

    def breaks(self, law: str, *facts: object) -> None:
        """A law does not hold: end the case, wherever this was found."""
        if self.broken is None:
            self.broken = Broken(f"{law}: {'; '.join([str(fact)[:400] for fact in facts])}")
            self.tell(f"broken: {self.broken}")
            self.over.set()
