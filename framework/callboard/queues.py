"""Messages that wait for an agent: steering and follow-ups. A fold of records, like all state."""

from __future__ import annotations

from enum import StrEnum

from callboard.journaling.records import Queued


class QueueMode(StrEnum):
    """How many waiting messages enter the conversation at once."""

    ONE_AT_A_TIME = "one_at_a_time"
    ALL = "all"


class SteeringPolicy(StrEnum):
    """What a steering message does to the calls of the round that is open."""

    AFTER_BATCH = "after_batch"  # nothing: it is taken in when all of them have their results
    SKIP_PENDING = "skip_pending"  # those that were not started are skipped
    INTERRUPT = "interrupt"  # those that run are cancelled, too


class Queues:
    """What waits. An item leaves only with the record that took or withdrew it."""

    __slots__ = ("_left", "follow_up", "steering")

    def __init__(self) -> None:
        self._left: tuple[str, ...] = ()
        self.steering: dict[str, Queued] = {}
        self.follow_up: dict[str, Queued] = {}

    def add(self, item: Queued) -> None:
        lane = self.steering if item.lane == "steering" else self.follow_up
        lane[item.item_id] = item

    def remove(self, item_id: str) -> None:
        self.steering.pop(item_id, None)
        self.follow_up.pop(item_id, None)

    def find(self, item_id: str) -> Queued | None:
        return self.steering.get(item_id) or self.follow_up.get(item_id)

    def run_ended(self) -> None:
        """Steering that waits now was said before whatever prompt comes next."""
        self._left = tuple(self.steering)

    def left_over(self) -> tuple[Queued, ...]:
        """What goes in front of the next prompt: what an earlier run was told and did not get to,
        and what was only to be heard (`wake=False`).
        """
        waiting = self.steering.items()
        return tuple([item for id, item in waiting if id in self._left or not item.wake])

    def items(self) -> tuple[Queued, ...]:
        """All that waits, steering first."""
        return (*self.steering.values(), *self.follow_up.values())

    def due(self, mode: QueueMode, *, idle: bool) -> tuple[Queued, ...]:
        """What enters the conversation now: steering, or else follow-ups of an idle agent.

        An idle agent has answered everything; messages with `wake=False` alone do not wake it,
        and they are no turn of their own: they enter in front of the next one that does.
        """
        if idle and not any([item.wake for item in self.items()]):
            return ()
        waiting = tuple(self.steering.values())
        if idle and not any([item.wake for item in waiting]):
            waiting += tuple(self.follow_up.values())
        return waiting if mode is QueueMode.ALL else _through_first(waiting)

    def __bool__(self) -> bool:
        return bool(self.steering or self.follow_up)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Queues):
            return NotImplemented
        return self.steering == other.steering and self.follow_up == other.follow_up

    __hash__ = None  # type: ignore[assignment]  # it changes


def _through_first(waiting: tuple[Queued, ...]) -> tuple[Queued, ...]:
    """The first message that wakes, and what is only to be heard in front of it."""
    for place, item in enumerate(waiting, 1):
        if item.wake:
            return waiting[:place]
    return waiting
