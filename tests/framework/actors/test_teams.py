"""Pipelines and rooms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from callboard.actors.system import ActorSystem
from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.journaling.records import Record
from callboard.replies import RunFailed
from callboard.teams import Room, in_sequence, map_reduce, side_by_side
from callboard.testing import ScriptedModel, error, say, stream, think

pytestmark = pytest.mark.anyio


async def add_1(value: int) -> int:
    return value + 1


async def add_2(value: int) -> int:
    return value + 2


async def times_3(value: int) -> int:
    return value * 3


def agent(name: str, *answers: Any) -> ReActAgent:
    return ReActAgent(name=name, model=ScriptedModel(list(answers)))


def heard(member: ReActAgent) -> list[str]:
    """What it was told by the others, once it has taken it in."""
    return [message.text for message in member.messages if message.role == "user"]


async def test_qp_62_in_sequence_each_gets_what_the_one_before_made() -> None:
    assert await in_sequence([add_1, add_2, times_3], 0) == 9
    assert await in_sequence([], 7) == 7


async def test_qp_62_side_by_side_answers_come_in_the_order_of_the_members() -> None:
    async def slow(value: int) -> int:
        await anyio.sleep(5)
        return value

    assert await side_by_side([slow, add_1, add_2], 0) == [0, 1, 2]
    assert await side_by_side([], 0) == []


async def test_qp_62_side_by_side_the_inputs_are_independent() -> None:
    async def eat(value: list[int]) -> int:
        value.pop()
        return len(value)

    assert await side_by_side([eat, eat], [1, 2]) == [1, 1]


async def test_no_more_than_the_limit_work_at_once() -> None:
    now = [0, 0]

    async def work(value: int) -> int:
        now[0] += 1
        now[1] = max(now)
        await anyio.sleep(1)
        now[0] -= 1
        return value

    assert await side_by_side([work] * 7, 1, limit=3) == [1] * 7
    assert now[1] == 3
    with pytest.raises(ConfigurationError, match="limit=0"):
        await side_by_side([work], 1, limit=0)


async def test_the_first_error_cancels_the_others_and_is_raised_bare() -> None:
    ended: list[str] = []

    async def slow(value: int) -> None:
        try:
            await anyio.sleep(100)
        finally:
            ended.append("cancelled")

    async def fail(value: int) -> None:
        await anyio.sleep(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await side_by_side([slow, fail], 0)
    assert ended == ["cancelled"]


async def test_map_reduce_gives_the_items_to_the_members_in_turn() -> None:
    async def total(values: list[int]) -> int:
        return sum(values)

    assert await map_reduce([add_1, times_3], [1, 2, 3, 4], total) == 2 + 6 + 4 + 12
    with pytest.raises(ConfigurationError, match="no member"):
        await map_reduce([], [1], total)


async def test_agents_in_sequence_hand_on_the_text_of_their_replies() -> None:
    critic = agent("critic", "Too long.")
    reply = await in_sequence([agent("writer", "A poem."), critic], "Write.")
    assert reply.text == "Too long."
    assert heard(critic) == ["A poem."]


async def test_qp_60_all_hear_the_announcement_and_the_others_hear_a_reply() -> None:
    a, b, c = agent("a", say(think("hm"), "Hello all.")), agent("b", "b"), agent("c", "c")
    room = Room(a, b, c)
    await room.say("Welcome.")
    await room.turn(a, "Speak.")
    for member in (b, c):
        await member.run("go")
    assert heard(a) == ["Welcome.", "Speak."]
    assert heard(b) == heard(c) == ["Welcome.", "a: Hello all.", "go"]


async def test_all_hear_the_same_order() -> None:
    members = [agent(name, "x") for name in "abc"]
    room = Room(*members)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(room.say, str(number))
    for member in members:
        await member.run("go")
    assert heard(members[0]) == heard(members[1]) == heard(members[2])


class Full:
    """A journal on a full disk."""

    async def append(self, records: Sequence[Record], expected: int) -> None:
        raise OSError("no space left on device")

    async def read(self, start: int = 0) -> Sequence[Record]:
        return ()


async def test_a_member_that_cannot_be_told_hurts_no_other() -> None:
    broken = ReActAgent(name="broken", model=ScriptedModel([]), journal=Full())
    fine = agent("fine", "x")
    room = Room(broken, fine)
    await room.say("hello")
    await fine.run("go")
    assert heard(fine) == ["hello", "go"]
    assert [name for name, _ in room.problems] == ["broken"]


async def test_a_room_of_actors() -> None:
    async with ActorSystem() as system:
        a = await system.spawn(agent("a", "Hello."))
        other = agent("b", "Good day.")
        room = Room(a, await system.spawn(other))
        await room.turn(a, "Speak.")
        await room.turn(room.members[1])
    assert heard(other) == ["a: Hello.", "It is your turn."]


async def test_qp_62_what_was_said_before_an_error_is_told_and_then_it_is_raised() -> None:
    said: list[str] = []
    async with ActorSystem() as system:
        ref = await system.spawn(agent("a", stream("one", error("down"))))
        with pytest.raises(RunFailed):
            async with ref.stream("go") as events:
                async for event in events:
                    said.append(event.kind)  # noqa: PERF401  # what came before the error
    assert said.count("message_update") == 1
    assert said[-1] == "agent_end"
