"""Several agents on one task: in sequence, side by side, map and reduce, or in a room.

Plain functions over members. A member is an agent, a reference to an actor, or an async function.
What an agent is handed from another one is the text of its reply.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, Lock

from callboard.actors.ref import Ref
from callboard.agent import ReActAgent
from callboard.errors import CallboardError, ConfigurationError
from callboard.replies import Reply

Member = ReActAgent | Ref | Callable[[Any], Awaitable[Any]]
T = TypeVar("T")


async def answered(member: Member, value: Any) -> Any:
    """What a member makes of a value; an agent gets it as its prompt and gives its Reply.

    Raises what the member raises.
    """
    given = value.text if isinstance(value, Reply) else value
    if isinstance(member, ReActAgent):
        return await member.run(given)
    if isinstance(member, Ref):
        return await member.ask(given)
    return await member(given)


async def in_sequence(members: Iterable[Member], value: Any) -> Any:
    """Hand the value from one member to the next; returns what the last one made of it.

    Without members that is the value itself. The first error ends it.
    """
    for member in members:
        value = await answered(member, value)
    return value


async def side_by_side(
    members: Iterable[Member], value: Any, *, limit: int | None = None
) -> list[Any]:
    """Give every member a copy of the value of its own; returns their answers in their order.

    At most `limit` of them work at once. The first error cancels the others and is raised.
    """
    works = [partial(answered, member, deepcopy(value)) for member in members]
    return await _all(works, limit=limit)


async def map_reduce(
    members: Sequence[Member],
    items: Iterable[Any],
    reduce: Callable[[list[Any]], Awaitable[T]],
    *,
    limit: int | None = None,
) -> T:
    """Have each item answered, at most `limit` at once, then make one thing of all answers.

    Several members take the items in turn; one agent takes them one after the other anyway. The
    answers come in the order of the items. The first error cancels the others and is raised.
    """
    if not members:
        raise ConfigurationError("map_reduce has no member to give the items to")
    works = [partial(answered, members[at % len(members)], item) for at, item in enumerate(items)]
    return await reduce(await _all(works, limit=limit))


async def _all(works: Sequence[Callable[[], Awaitable[T]]], *, limit: int | None) -> list[T]:
    """The results of all, in order; the first error cancels the rest and is raised."""
    if limit is not None and limit < 1:
        raise ConfigurationError(f"limit={limit!r}: at least 1 must work")
    slots = CapacityLimiter(limit or max(len(works), 1))
    results: dict[int, T] = {}
    first: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def work(at: int) -> None:
            try:
                async with slots:
                    results[at] = await works[at]()
            except Exception as error:  # the member's own: the group would wrap it
                first.append(error)
                tasks.cancel_scope.cancel()

        for at in range(len(works)):
            tasks.start_soon(work, at)
    if first:
        raise first[0]
    return [results[at] for at in range(len(works))]


class Room:
    """Agents who hear what the others say. All of them hear it in the same order.

    What is heard waits in an agent's queue and goes in front of its next prompt; it wakes nobody.
    A member that cannot be told hurts no other: it stands in `problems`.
    """

    def __init__(self, *members: ReActAgent | Ref) -> None:
        self.members = list(members)
        self.problems: list[tuple[str, CallboardError]] = []
        self._order = Lock(fast_acquire=True)

    async def say(self, text: str, *, speaker: ReActAgent | Ref | None = None) -> None:
        """Tell all members but the speaker; without one it is an announcement."""
        heard = text if speaker is None else f"{_name(speaker)}: {text}"
        async with self._order:
            for member in tuple(self.members):
                if member == speaker:
                    continue
                try:
                    await member.steer(heard, wake=False)
                except CallboardError as error:
                    self.problems.append((_name(member), error))

    async def turn(self, member: ReActAgent | Ref, prompt: str = "It is your turn.") -> Reply:
        """Have a member speak: the others hear the text of its reply, and not what it thought."""
        reply: Reply = await answered(member, prompt)
        if reply.text:
            await self.say(reply.text, speaker=member)
        return reply


def _name(member: ReActAgent | Ref) -> str:
    return member.name if isinstance(member, ReActAgent) else member.address.key
