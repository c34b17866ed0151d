"""Actors in one process: asked, told, published to, stopped, and made when they are needed."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from callboard.actors.actor import Actor
from callboard.actors.dead_letters import Reason
from callboard.actors.envelope import Envelope
from callboard.actors.mailbox import WhenFull
from callboard.actors.ref import Ref
from callboard.actors.rules import ActorRules
from callboard.actors.system import ActorSystem, Seat
from callboard.errors import (
    ActorStopped,
    AskCycle,
    AskTimeout,
    ConfigurationError,
    MailboxFull,
    UnknownAddress,
)
from tests.framework.actors.kit import Doing, Echo, Failing, Slow, asked_by

pytestmark = pytest.mark.anyio


async def test_an_ask_returns_what_receive_returns() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
        assert await ref.ask("hello") == "hello"


async def test_one_letter_at_a_time_in_the_order_of_sending() -> None:
    slow = Slow()
    async with ActorSystem() as system:
        ref = await system.spawn(slow)
        for number in range(4):
            await ref.tell(number)
    assert (slow.seen, slow.most_at_once) == ([0, 1, 2, 3], 1)


async def test_act_02_what_an_asked_actor_raises_goes_to_the_asker_and_it_lives_on() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Failing())
        with pytest.raises(ValueError, match="this one failed"):
            await ref.ask("fail")
        assert await ref.ask("next") == "next"


@pytest.mark.parametrize("timeout_s", [0.5, None])
async def test_act_01_every_ask_has_a_deadline(timeout_s: float | None) -> None:
    async with ActorSystem(ask_timeout_s=2) as system:
        ref = await system.spawn(Slow(60))
        begun = anyio.current_time()
        with pytest.raises(AskTimeout, match=r"slow/\w+ did not answer within"):
            await ref.ask("?", timeout_s=timeout_s)
        assert anyio.current_time() - begun == pytest.approx(timeout_s or 2)
        await system.stop(ref)


async def test_a_letter_whose_asker_gave_up_is_not_handled() -> None:
    slow = Slow(2)
    async with ActorSystem() as system:
        ref = await system.spawn(slow)
        await ref.tell("first")
        with pytest.raises(AskTimeout):
            await ref.ask("given up", timeout_s=1)
        await system.settled()
    assert slow.seen == ["first"]
    assert [dead.reason for dead in system.dead_letters] == [Reason.EXPIRED]


async def ring(system: ActorSystem, size: int) -> list[Ref]:
    """Actors that each ask the next one, the last the first."""
    refs: list[Ref] = []

    def asking(at: int) -> Actor:
        async def ask_next(payload: Any) -> Any:
            return await refs[(at + 1) % size].ask(payload)

        return Doing(ask_next)

    for at in range(size):
        system.register(f"ring{at}", lambda seat: asking(int(seat.address.type[-1])))
        refs.append(await system.spawn(f"ring{at}", "a"))
    return refs


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_act_01_a_cycle_of_asks_is_an_error_at_once(size: int) -> None:
    async with ActorSystem() as system:
        refs = await ring(system, size)
        begun = anyio.current_time()
        with pytest.raises(AskCycle) as caught:
            await refs[0].ask("round")
        assert anyio.current_time() == begun
    circle = " -> ".join([f"ring{at % size}/a" for at in range(size + 1)])
    assert circle in str(caught.value)


async def test_asking_on_takes_no_longer_than_the_first_asker_waits() -> None:
    """The deadline travels with the chain."""
    left: list[float] = []
    async with ActorSystem(ask_timeout_s=100) as system:
        slow = await system.spawn(Slow(60))

        async def ask_on(payload: Any) -> Any:
            begun = anyio.current_time()
            try:
                return await slow.ask(payload)
            finally:
                left.append(anyio.current_time() - begun)

        first = await system.spawn(Doing(ask_on))
        with pytest.raises(AskTimeout):
            await first.ask("?", timeout_s=3)
        await system.stop(slow)
    assert left == [pytest.approx(3)]


async def test_an_unknown_address_is_an_error_and_a_dead_letter() -> None:
    async with ActorSystem() as system:
        system.register("writer", lambda seat: Echo())
        with pytest.raises(UnknownAddress, match="no actor at reader/x; registered kinds: writer"):
            await system.ref("reader/x").ask("?")
        assert [dead.reason for dead in system.dead_letters] == [Reason.UNKNOWN_ADDRESS]


async def test_act_06_a_mailbox_that_rejects_keeps_what_it_has() -> None:
    slow = Slow()
    rules = ActorRules(mailbox_bound=1, when_full=WhenFull.REJECT)
    async with ActorSystem() as system:
        ref = await system.spawn(slow, rules=rules)
        await ref.tell(1)
        await anyio.wait_all_tasks_blocked()  # it is in hand now
        await ref.tell(2)
        with pytest.raises(MailboxFull):
            await ref.tell(3)
    assert slow.seen == [1, 2]
    assert [dead.letter.payload for dead in system.dead_letters] == [3]


async def test_act_06_memory_stays_bounded_in_front_of_a_slow_actor() -> None:
    slow, depths = Slow(0.1), set[int]()
    async with ActorSystem() as system:
        ref = await system.spawn(slow, rules=ActorRules(mailbox_bound=10))
        for number in range(100):
            await ref.tell(number)
            depths.add(system.depth(ref))
    assert max(depths) <= 11  # the last one was handed over
    assert slow.seen == list(range(100))


async def test_stopping_answers_every_unread_ask() -> None:
    answers: list[Any] = []
    async with ActorSystem() as system:
        ref = await system.spawn(Slow(5))
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(asked_by, ref, number, answers)
            await anyio.wait_all_tasks_blocked()
            assert await system.stop(ref)
    assert [type(answer) for answer in answers] == [ActorStopped, ActorStopped, int]


async def test_what_does_not_stop_in_time_is_cancelled_and_named() -> None:
    async with ActorSystem(stop_s=1) as system:
        ref = await system.spawn(Slow(1000))
        await ref.tell("x")
        await anyio.wait_all_tasks_blocked()
    assert system.late == (ref.address,)


async def test_leaving_handles_what_was_told_first() -> None:
    """Also what the handlers tell each other meanwhile."""
    last = Echo()
    async with ActorSystem() as system:
        end = await system.spawn(last)

        async def pass_on(payload: Any) -> None:
            await anyio.sleep(0.1)
            await end.tell(payload)

        start = await system.spawn(Doing(pass_on))
        for number in range(3):
            await start.tell(number)
    assert last.seen == [0, 1, 2]
    assert len(system.dead_letters) == 0


async def test_leaving_by_an_error_raises_that_error() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with ActorSystem() as system:
            await (await system.spawn(Slow(1000))).tell("x")
            raise KeyError("mine")


async def test_spawning_after_the_end_is_refused() -> None:
    async with ActorSystem() as system:
        ref = await system.spawn(Echo())
    with pytest.raises(ActorStopped, match="does not run"):
        await system.spawn(Echo())
    with pytest.raises(UnknownAddress):
        await ref.ask("late")


async def test_two_actors_at_one_address_are_refused() -> None:
    async with ActorSystem() as system:
        system.register("writer", lambda seat: Echo())
        await system.spawn("writer", "bob")
        with pytest.raises(ConfigurationError, match="an actor at writer/bob already"):
            await system.spawn("writer", "bob")


async def test_spawn_raises_what_started_raises_and_leaves_nobody_there() -> None:
    class Broken(Echo):
        async def started(self) -> None:
            raise OSError("no disk")

    async with ActorSystem() as system:
        system.register("broken", lambda seat: Broken())
        with pytest.raises(OSError, match="no disk"):
            await system.spawn("broken", "a")
        assert system.active == ()


async def test_publishing_tells_all_subscribers() -> None:
    order: list[str] = []
    async with ActorSystem() as system:
        for name in ("a", "b", "c"):

            async def note(payload: Any, name: str = name) -> None:
                order.append(f"{name}{payload}")

            await system.subscribe("news", await system.spawn(Doing(note)))
        assert await system.publish("news", 1) == 3
        await system.settled()
    assert sorted(order) == ["a1", "b1", "c1"]


async def test_a_subscriber_that_is_gone_hurts_no_other() -> None:
    echo = Echo()
    async with ActorSystem() as system:
        gone = await system.spawn(Echo())
        await system.subscribe("news", gone)
        await system.subscribe("news", await system.spawn(echo))
        await system.stop(gone)
        assert await system.publish("news", 1) == 1
    assert echo.seen == [1]


class Counter(Actor):
    """Counts its own letters, and who was made."""

    def __init__(self, seat: Seat, made: list[str]) -> None:
        self.count = 0
        made.append(seat.key)

    async def receive(self, letter: Envelope) -> int:
        self.count += 1
        return self.count


async def test_an_actor_of_a_registered_kind_is_made_by_its_first_letter() -> None:
    made: list[str] = []
    async with ActorSystem() as system:
        system.register("counter", lambda seat: Counter(seat, made))
        bob = system.ref("counter/bob")
        assert made == []
        assert [await bob.ask("+"), await bob.ask("+")] == [1, 2]
    assert made == ["bob"]


async def test_an_idle_actor_is_put_away_and_made_again() -> None:
    made: list[str] = []
    async with ActorSystem() as system:
        system.register("counter", lambda seat: Counter(seat, made), ActorRules(idle_s=10))
        bob = system.ref("counter/bob")
        await bob.ask("+")
        await anyio.sleep(30)
        assert system.active == ()
        assert await bob.ask("+") == 1
    assert made == ["bob", "bob"]


async def test_a_busy_actor_is_not_put_away() -> None:
    made: list[str] = []
    async with ActorSystem() as system:
        system.register("counter", lambda seat: Counter(seat, made), ActorRules(idle_s=10))
        bob = system.ref("counter/bob")
        for _ in range(10):
            await bob.ask("+")
            await anyio.sleep(5)
    assert made == ["bob"]


async def test_an_actor_that_cannot_be_made_is_an_error_for_all_who_asked() -> None:
    answers: list[Any] = []

    def factory(seat: Seat) -> Actor:
        raise RuntimeError("no model")

    async with ActorSystem() as system:
        system.register("broken", factory)
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(asked_by, system.ref("broken/a"), "?", answers)
    assert [str(answer) for answer in answers] == ["no model", "no model"]


async def test_the_arguments_of_spawn_come_back_when_the_actor_does() -> None:
    seen: list[Any] = []

    def factory(seat: Seat) -> Actor:
        seen.append(dict(seat.arguments))
        return Echo()

    async with ActorSystem() as system:
        system.register("writer", factory, ActorRules(idle_s=1))
        ref = await system.spawn("writer", "bob", style="dry")
        await anyio.sleep(5)
        await ref.ask("?")
    assert seen == [{"style": "dry"}] * 2


async def test_a_cancel_that_strikes_while_a_system_is_left_ends_its_actors_and_goes_on() -> None:
    system = ActorSystem()
    with anyio.move_on_after(0.5) as scope:
        async with system:
            await (await system.spawn(Slow(3600))).tell("sleep")
    assert scope.cancelled_caught
    assert system.active == ()
