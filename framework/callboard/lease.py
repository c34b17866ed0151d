"""A run that is started inside another one spends from the budget of the run around it.

An agent that runs in a tool, or in a layer, of another agent leases from that one's `Purse`: what
it uses is recorded there too, and it stops with a summary where nothing is left. Turns and
repeats are each agent's own. `detached()` is the way out.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from math import inf
from threading import Lock, get_ident
from time import monotonic
from typing import Protocol

from callboard.budget import Budget, Use, reached
from callboard.chain import Link, inside
from callboard.journaling.conversation import Conversation
from callboard.journaling.records import Spent
from callboard.prices import Costs

_detached_at: ContextVar[int] = ContextVar("callboard_detached_at", default=0)
_making = Lock()


@contextmanager
def detached() -> Generator[None, None, None]:
    """Runs that are started in this block spend nothing of the budget of the run around it.

    For agents that have a budget of their own. They still end with the tool that runs them.
    """
    token = _detached_at.set(len(inside.get()))
    try:
        yield
    finally:
        _detached_at.reset(token)


Carried = tuple[tuple[Link, ...], int]


def carried() -> Carried | None:
    """For whom this task works, to go with a message to another task; None: for nobody."""
    chain = inside.get()
    return (chain, _detached_at.get()) if chain else None


@contextmanager
def carrying(work: Carried | None) -> Generator[None, None, None]:
    """Work for those for whom the sender of a message did, or for nobody."""
    chain, detached_at = work or ((), 0)
    tokens = inside.set(chain), _detached_at.set(detached_at)
    try:
        yield
    finally:
        inside.reset(tokens[0])
        _detached_at.reset(tokens[1])


class Lessor(Link, Protocol):
    """An agent whose run others may run inside."""

    _purse: Purse | None

    def new_purse(self) -> Purse: ...


def leased(run_id: str) -> Lease | None:
    """The share of a new run in the budget of the run that it is started in, if there is one."""
    chain = inside.get()
    if len(chain) <= _detached_at.get():
        return None
    lessor: Lessor = chain[-1]  # type: ignore[assignment]  # whoever enters the chain is one
    with _making:  # tools in threads may come at once
        if lessor._purse is None:
            lessor._purse = lessor.new_purse()
    return None if lessor._purse.is_over else Lease(lessor._purse, run_id)


class Purse:
    """What one run may use, for the runs inside it. Made when the first of them starts.

    Runs in other threads spend here at once, too; what they spent is recorded when the tool that
    they ran in has ended.
    """

    def __init__(
        self,
        run_id: str,
        *,
        owner: str,
        budget: Budget,
        costs: Costs | None,
        conversation: Conversation,
        outer: Lease | None,
    ) -> None:
        self.run_id = run_id
        self.owner = owner
        self.allowed = replace(budget, turns=None, repeats=None)
        self.costs = costs
        self.outer = outer
        self.in_flight = 0  # model calls that have begun
        self._conversation = conversation
        self._late: dict[str, Spent] = {}  # spent, and maybe not folded yet
        self._due: dict[str, Spent] = {}  # not even handed to the journal
        self._made_s = monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended: what still goes on inside has escaped from it."""
        run = self._conversation.state.run
        return run is None or run.run_id != self.run_id

    @property
    def is_here(self) -> bool:
        """Whether the run is driven in this thread."""
        return self._conversation.thread == get_ident()

    def used(self) -> Use:
        """What was used by now, with the seconds of what runs."""
        use = self._conversation.state.use.copy()
        for spent in tuple(self._late.values()):
            if (use.inner or {}).get(spent.run_id) == spent:
                self._late.pop(spent.run_id, None)
            else:
                use.spend(spent)
        clock = self._conversation.since_lap() if self.is_here else monotonic() - self._made_s
        use.active_s += clock
        return use

    def spend(self, spent: Spent) -> None:
        """Take note. In its own thread it is written with the next commit."""
        if self.is_over or self._late.get(spent.run_id) == spent:
            return
        self._late[spent.run_id] = self._due[spent.run_id] = spent
        if self.is_here:
            self.hand_over()
        if self.outer is not None:
            self.outer.note(self.used())

    def hand_over(self) -> bool:
        """Let what is due ride with the next commit. Whether anything does."""
        due, self._due = self._due, {}
        for spent in due.values():
            self._conversation.ride(spent)
        return bool(due)

    async def write_late(self) -> None:
        """Commit what threads have spent, before the run decides how to go on."""
        if self.hand_over():
            await self._conversation.commit()

    async def write(self) -> None:
        """Commit what was spent, so that a crash does not forget it."""
        if self.is_here and not self.is_over:
            await self._conversation.commit()
        if self.outer is not None:
            await self.outer.settle(self.used())


class Lease:
    """The share of one run in the purse of the run around it."""

    __slots__ = ("_run_id", "purse")

    def __init__(self, purse: Purse, run_id: str) -> None:
        self.purse = purse
        self._run_id = run_id

    def reached(self) -> str | None:
        """The limit of the runs around that is reached, in words for people, or None."""
        purse = self.purse
        if purse.is_over:
            return f"the run of {purse.owner} is over"
        used = purse.used()
        used.model_calls += purse.in_flight
        limit = reached(purse.allowed, used)
        if limit is not None:
            return f"{limit} of {purse.owner}"
        return None if purse.outer is None else purse.outer.reached()

    def left_s(self) -> float:
        """The active seconds that are left."""
        purse = self.purse
        seconds = purse.allowed.seconds
        left = inf if seconds is None else seconds - purse.used().active_s
        return left if purse.outer is None else min(left, purse.outer.left_s())

    @contextmanager
    def call(self) -> Generator[None, None, None]:
        """Around a model call: runs beside this one do not count on it."""
        self.purse.in_flight += 1
        try:
            if self.purse.outer is None:
                yield
            else:
                with self.purse.outer.call():
                    yield
        finally:
            self.purse.in_flight -= 1

    def note(self, use: Use) -> None:
        """Tell the run around what this one has used so far. Writes nothing yet."""
        self.purse.spend(use.spent_by(self._run_id))

    async def settle(self, use: Use) -> None:
        """`note`, and write it.

        Raises:
            CommitFailed: the journal of the run around could not be written.
        """
        self.note(use)
        await self.purse.write()
