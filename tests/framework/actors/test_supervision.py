"""What becomes of an actor that fails on a letter which nobody waits for."""

from __future__ import annotations

import anyio
import pytest

from callboard.actors.dead_letters import Reason
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Restarts, Supervision
from callboard.actors.system import ActorSystem, Seat
from callboard.errors import ActorFailed, ConfigurationError
from tests.framework.actors.kit import Failing, Slow

pytestmark = pytest.mark.anyio


def rules(on_failure: OnFailure, *, most_restarts: int = 5) -> ActorRules:
    rules = Supervision(on_failure=on_failure, most_restarts=most_restarts)
    return ActorRules(supervision=rules)


async def test_act_02_by_default_the_system_ends_with_the_failure() -> None:
    with pytest.raises(ActorFailed, match=r"failing/\w+ failed on .*: this one failed") as caught:
        async with ActorSystem() as system:
            await (await system.spawn(Failing())).tell("fail")
            await anyio.sleep(1000)
    assert isinstance(caught.value.__cause__, ValueError)


async def test_act_02_a_failure_during_the_last_letters_is_raised_too() -> None:
    with pytest.raises(ActorFailed):
        async with ActorSystem() as system:
            await (await system.spawn(Failing())).tell("fail")


async def test_a_failure_cancels_the_other_actors() -> None:
    slow = Slow(1000)
    with pytest.raises(ActorFailed):
        async with ActorSystem() as system:
            await (await system.spawn(slow)).tell("x")
            await (await system.spawn(Failing())).tell("fail")
            await anyio.sleep(2000)
    assert slow.seen == []


async def test_resume_goes_on_with_the_next_letter() -> None:
    actor = Failing()
    async with ActorSystem() as system:
        ref = await system.spawn(actor, rules=rules(OnFailure.RESUME))
        for payload in ("a", "fail", "b"):
            await ref.tell(payload)
    assert actor.seen == ["a", "b"]
    assert [(dead.reason, dead.error) for dead in system.dead_letters] == [
        (Reason.FAILED, "ValueError: this one failed")
    ]


async def test_stop_ends_the_actor_and_its_unread_letters_are_dead() -> None:
    actor = Failing()
    async with ActorSystem() as system:
        ref = await system.spawn(actor, rules=rules(OnFailure.STOP))
        for payload in ("a", "fail", "b"):
            await ref.tell(payload)
    assert actor.seen == ["a"]
    assert [dead.reason for dead in system.dead_letters] == [Reason.FAILED, Reason.STOPPED]


async def test_restart_makes_a_new_actor_that_takes_the_mailbox_over() -> None:
    made: list[Failing] = []

    def factory(seat: Seat) -> Failing:
        made.append(Failing())
        return made[-1]

    async with ActorSystem() as system:
        system.register("failing", factory, rules(OnFailure.RESTART))
        ref = await system.spawn("failing", "a")
        for payload in ("a", "fail", "b"):
            await ref.tell(payload)
    assert [actor.seen for actor in made] == [["a"], ["b"]]


async def test_too_many_restarts_escalate() -> None:
    with pytest.raises(ActorFailed, match="failed again after 2 restarts within 60 s"):
        async with ActorSystem() as system:
            system.register(
                "failing", lambda seat: Failing(), rules(OnFailure.RESTART, most_restarts=2)
            )
            ref = await system.spawn("failing", "a")
            for _ in range(3):
                await ref.tell("fail")
            await anyio.sleep(1000)


def test_the_first_restart_comes_at_once_and_later_ones_wait_twice_as_long() -> None:
    restarts = Restarts(Supervision(most_restarts=4, backoff_s=1, longest_backoff_s=3))
    assert [restarts.next_wait_s(0) for _ in range(5)] == [0, 1, 2, 3, None]
    assert restarts.next_wait_s(61) == 0


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(ValueError, match="explode"):
        Supervision(on_failure="explode")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="below zero"):
        Supervision(most_restarts=-1)
