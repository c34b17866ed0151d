"""Actors that are idle give their tasks back, and nobody can tell."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.actors.actor import Actor
from callboard.actors.envelope import Envelope
from callboard.actors.mailbox import Mailbox
from callboard.actors.ref import Ref
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import Supervision
from callboard.actors.system import ActorSystem
from callboard.agent import ReActAgent
from callboard.errors import ActorStopped, ConfigurationError, UnknownAddress
from callboard.testing import ScriptedModel, call
from callboard.testing.virtual_time import virtual_backend
from callboard.tooling.tools import tool
from tests.framework.actors.kit import Doing, Echo, Failing, Slow, letter
from tests.framework.kit import agent_of

pytestmark = pytest.mark.anyio
LONG_S = 30.0


def dozes(system: ActorSystem, ref: Ref) -> bool:
    return system._roster.active[ref.address].task is None


async def test_an_idle_actor_has_no_task_until_the_next_letter() -> None:
    echo = Echo()
    async with ActorSystem() as system:
        ref = await system.spawn(echo)
        assert not dozes(system, ref)
        await anyio.sleep(LONG_S)
        assert dozes(system, ref)
        assert await ref.ask("hello") == "hello"
        assert not dozes(system, ref)
    assert echo.seen == ["hello"]


async def test_letters_to_an_actor_that_dozes_are_read_in_order() -> None:
    slow = Slow()
    async with ActorSystem() as system:
        ref = await system.spawn(slow)
        await anyio.sleep(LONG_S)
        for number in range(5):
            await ref.tell(number)
    assert (slow.seen, slow.most_at_once) == ([0, 1, 2, 3, 4], 1)


async def test_an_actor_at_work_does_not_doze() -> None:
    async with ActorSystem(stop_s=100) as system:
        ref = await system.spawn(Slow(60))
        await ref.tell("x")
        await anyio.sleep(LONG_S)
        assert not dozes(system, ref)


async def test_a_letter_that_comes_as_it_falls_asleep_is_read() -> None:
    mailbox = Mailbox()
    async with anyio.create_task_group() as tasks:

        async def nudge_and_send() -> None:
            mailbox.nudge()
            assert mailbox.offer(letter("late"))

        tasks.start_soon(nudge_and_send)
        assert await mailbox.get() is None
    late = mailbox.take()
    assert late is not None
    assert late.payload == "late"


GAPS = st.lists(st.sampled_from([0.0, 0.5, 4.9, 5.0, 5.1, 9.9, 10.0, 15.0, 60.0]), max_size=12)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=40, deadline=None)
@given(gaps=GAPS, work_s=st.sampled_from([0.0, 1.0, 5.0]))
def test_whenever_letters_come_each_is_read_once_and_in_order(
    backend: str, gaps: list[float], work_s: float
) -> None:
    slow = Slow(work_s)

    async def main() -> None:
        async with ActorSystem(stop_s=1_000) as system:
            ref = await system.spawn(slow)
            for number, gap_s in enumerate(gaps):
                await anyio.sleep(gap_s)
                await ref.tell(number)

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)
    assert (slow.seen, slow.most_at_once) == (list(range(len(gaps))), min(len(gaps), 1))


class Staged(Actor):
    """Notes the task of each of its hooks."""

    def __init__(self) -> None:
        self.tasks: list[int] = []

    async def started(self) -> None:
        self.tasks.append(anyio.get_current_task().id)

    async def receive(self, letter: Envelope) -> Any:
        self.tasks.append(anyio.get_current_task().id)

    async def stopping(self) -> None:
        self.tasks.append(anyio.get_current_task().id)


async def test_an_actor_with_hooks_lives_in_one_task() -> None:
    staged = Staged()
    async with ActorSystem() as system:
        ref = await system.spawn(staged)
        await anyio.sleep(LONG_S)
        await ref.ask("x")
        await anyio.sleep(LONG_S)
        assert not dozes(system, ref)
    assert len(staged.tasks) == 3
    assert len(set(staged.tasks)) == 1


async def test_supervision_goes_on_after_a_nap() -> None:
    async with ActorSystem() as system:
        rules = ActorRules(supervision=Supervision(on_failure="restart"))  # type: ignore[arg-type]
        system.register("failing", lambda seat: Failing(), rules)
        ref = system.ref("failing/a")
        await ref.ask("hello")
        await anyio.sleep(LONG_S)
        await ref.tell("fail")
        assert await ref.ask("next") == "next"


async def test_an_actor_that_dozes_is_put_away_in_its_time() -> None:
    made: list[Echo] = []

    def make(seat: object) -> Echo:
        made.append(Echo())
        return made[-1]

    async with ActorSystem() as system:
        system.register("echo", make, ActorRules(idle_s=60))
        ref = system.ref("echo/a")
        await ref.ask(1)
        await anyio.sleep(LONG_S)
        assert dozes(system, ref)
        await anyio.sleep(100)
        assert system.active == ()
        await ref.ask(2)
    assert [one.seen for one in made] == [[1], [2]]


async def test_an_actor_that_was_woken_is_not_put_away_while_it_works() -> None:
    async with ActorSystem(stop_s=100) as system:
        system.register("slow", lambda seat: Slow(60), ActorRules(idle_s=20))
        ref = system.ref("slow/a")
        await system.spawn("slow", "a")
        await anyio.sleep(12)
        assert dozes(system, ref)
        await ref.tell("x")
        await anyio.sleep(50)
        assert system.active == (ref.address,)


async def test_an_actor_that_dozes_can_be_stopped() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
        await anyio.sleep(LONG_S)
        pump = system._roster.active[ref.address]
        assert await system.stop(ref)
        assert system.active == ()
        with pytest.raises(ActorStopped):
            await pump.mailbox.put(letter("late"))


async def test_who_dozes_when_the_system_breaks_off_is_gone_with_it() -> None:
    ref: Ref | None = None
    with pytest.raises(ValueError, match="enough"):
        async with ActorSystem() as system:
            ref = await system.spawn(Echo())
            await anyio.sleep(LONG_S)
            raise ValueError("enough")
    assert ref is not None
    with pytest.raises(UnknownAddress):
        await ref.tell("late")


async def test_an_agent_that_dozes_can_be_steered_and_asked() -> None:
    agent, _ = agent_of(["one", "two", "three"], name="a")
    async with ActorSystem() as system:
        ref = await system.spawn(agent)
        await ref.ask("go")
        await anyio.sleep(LONG_S)
        assert dozes(system, ref)
        await ref.steer("and more")
        await system.settled()
        await anyio.sleep(LONG_S)
        assert (await ref.ask("again")).text == "three"


async def test_what_an_actor_runs_is_not_inside_the_run_of_whoever_woke_it() -> None:
    """Its task starts in the context of the system, also where a letter from a run starts it."""
    inner = ReActAgent(name="inner", model=ScriptedModel(["seen"]))

    async def run_inner(payload: Any) -> None:
        await anyio.sleep(1)
        await inner.run("look")

    async with ActorSystem() as system:
        worker = await system.spawn(Doing(run_inner))
        await anyio.sleep(LONG_S)

        @tool
        async def wake() -> str:
            """Tell the worker."""
            await worker.tell("go")
            await anyio.sleep(2)
            return "told"

        root, _ = agent_of([call("wake"), "done"], wake, name="root")
        with inner.watch() as events:
            await root.run("go")
            await system.settled()
    assert {event.parent_run async for event in events} == {None}


async def test_a_thousand_idle_actors_hold_no_task() -> None:
    async with ActorSystem() as system:
        system.register("echo", lambda seat: Echo())
        for number in range(1_000):
            await system.ref(f"echo/{number}").tell(number)
        await system.settled()
        await anyio.sleep(LONG_S)
        assert [pump.task for pump in system._roster.active.values()] == [None] * 1_000


async def test_those_that_were_idle_for_longest_make_room() -> None:
    async with ActorSystem(most_active=2) as system:
        system.register("echo", lambda seat: Echo())
        for key in "abcd":
            await system.ref(f"echo/{key}").ask("x")
            await anyio.sleep(6)
        await anyio.sleep(10)
        assert sorted(address.key for address in system.active) == ["c", "d"]
        assert await system.ref("echo/a").ask("again") == "again"


def test_room_for_nobody_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="most_active=0"):
        ActorSystem(most_active=0)
