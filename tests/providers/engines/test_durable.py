"""Actors over an engine: what is sent outlives the system, and is done once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from callboard import Proceed, ReActAgent, ToolCall, Verdict, tool
from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.engine import Engine, Letter
from callboard.actors.envelope import Envelope
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Supervision
from callboard.actors.system import ActorSystem, Seat
from callboard.errors import AskTimeout, ConfigurationError
from callboard.messages import AssistantMessage
from callboard.model import ModelRequest
from callboard.replies import Outcome, RunFailed
from callboard.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio
Opened = Callable[[], Engine]  # one more handle on what the test keeps
RESUME = ActorRules(supervision=Supervision(on_failure=OnFailure.RESUME))


class Counting(Actor):
    """Counts what it gets; raises on "fail"."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    async def receive(self, letter: Envelope) -> Any:
        self.seen.append(letter.payload)
        if letter.payload == "fail":
            raise ValueError("this one failed")
        return len(self.seen)


class Guarded(ReActAgent):
    """Asks a human before each call."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        return verdict.ask("a human looks first") if isinstance(verdict, Proceed) else verdict


def counting(seen: list[Any]) -> Callable[[Seat], Actor]:
    return lambda seat: Counting(seen)


def agents(*scripts: list[Any], cls: type[ReActAgent] = ReActAgent, **more: Any) -> Any:
    """A factory whose agents play these scripts, one for each time that they are made."""
    left = list(scripts)

    def make(seat: Seat) -> ReActAgent:
        return cls(
            address=seat.address, model=ScriptedModel(left.pop(0)), journal=seat.journal, **more
        )

    return make


async def test_an_ask_is_answered_through_the_engine(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("counter", counting([]))
        assert await system.ref("counter/a").ask("x") == 1
        assert await system.ref("counter/a").ask("y") == 2


async def test_an_agent_answers_with_its_whole_reply_where_it_runs_here(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("writer", agents(["Done."]))
        reply = await system.ref("writer/bob").ask("Write.")
        assert (reply.text, len(reply.messages)) == ("Done.", 2)


async def test_what_was_told_before_the_system_ended_is_done_by_the_next(opened: Opened) -> None:
    seen = list[Any]()
    async with ActorSystem(opened()) as system:  # nobody serves counters here
        await system.ref("counter/a").tell("x")
        await system.ref("counter/a").tell("y")
    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen))
        assert await system.ref("counter/a").ask("z") == 3
    assert seen == ["x", "y", "z"]


async def test_a_letter_that_fails_is_tried_again_then_dead(opened: Opened) -> None:
    seen = list[Any]()
    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen), RESUME)
        await system.ref("counter/a").tell("fail")
        assert await system.ref("counter/a").ask("next", timeout_s=60) == 4
    assert seen == ["fail", "fail", "fail", "next"]
    async with opened() as engine:
        (dead,) = await engine.dead()
    assert (dead.reason, dead.error) == ("failed", "ValueError: this one failed")


async def test_an_asker_gets_what_the_actor_raised(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("counter", counting([]))
        with pytest.raises(ValueError, match="this one failed"):
            await system.ref("counter/a").ask("fail")


async def test_a_payload_that_is_no_json_is_refused_by_name(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("counter", counting([]))
        with pytest.raises(ConfigurationError, match="holds a object, which is no JSON"):
            await system.ref("counter/a").tell({"a": object()})


async def test_an_object_cannot_be_spawned_over_an_engine(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        with pytest.raises(ConfigurationError, match=r"system\.register"):
            await system.spawn(Counting([]))


async def test_spawned_arguments_outlive_the_system(opened: Opened) -> None:
    styles = list[Any]()

    def make(seat: Seat) -> Actor:
        styles.append(seat.arguments["style"])
        return Counting([])

    for _ in range(2):
        async with ActorSystem(opened()) as system:
            system.register("writer", make)
            ref = await system.spawn("writer", "bob", style="dry")
            await ref.ask("x")
    assert styles == ["dry", "dry"]


async def test_another_set_of_arguments_for_one_address_is_refused(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("writer", counting([]))
        await system.spawn("writer", "bob", style="dry")
        with pytest.raises(ConfigurationError, match="was spawned with"):
            await system.spawn("writer", "bob", style="wet")


async def test_what_a_plain_actor_tells_is_sent_with_the_end_of_its_letter(opened: Opened) -> None:
    seen = list[Any]()

    class Teller(Actor):
        tries = 0

        async def receive(self, letter: Envelope) -> None:
            await system.ref("counter/a").tell("told")
            Teller.tries += 1
            if Teller.tries == 1:
                raise ValueError("in the middle")

    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen))
        system.register("teller", lambda seat: Teller(), RESUME)
        await system.ref("teller/t").tell("go")
        await system.settled()
        with anyio.move_on_after(5):
            while not seen:
                await anyio.sleep(0.01)
    assert (Teller.tries, seen) == (2, ["told"])


async def test_the_same_id_is_asked_once_also_in_the_next_life(opened: Opened) -> None:
    seen = list[Any]()
    for _ in range(2):
        async with ActorSystem(opened()) as system:
            system.register("counter", counting(seen))
            assert await system.ref("counter/a").ask("x", id="order-7") == 1
    assert seen == ["x"]


async def test_a_letter_comes_after_a_while(opened: Opened) -> None:
    seen: list[Any] = []
    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen))
        await system.ref("counter/a").tell("late", after_s=0.3)
        await system.ref("counter/a").ask("soon")
        assert seen == ["soon"]
        await anyio.sleep(0.5)
        assert seen == ["soon", "late"]


async def test_nobody_who_serves_a_kind_is_named_when_time_is_up(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        with pytest.raises(AskTimeout, match="no 'ghost' is registered here"):
            await system.ref("ghost/a").ask("x", timeout_s=0.05)


async def test_publishing_reaches_subscribers_that_are_not_made_yet(opened: Opened) -> None:
    seen: list[Any] = []
    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen))
        await system.subscribe("news", system.ref("counter/a"))
        await system.subscribe("news", system.ref("counter/b"))
        assert await system.publish("news", "x") == 2
        await system.ref("counter/a").ask("y")
        await system.ref("counter/b").ask("y")
    assert seen.count("x") == 2


async def test_a_run_that_was_cut_off_goes_on_in_the_next_system(opened: Opened) -> None:
    ledger = list[str]()
    hang = True

    @tool(effect="idempotent")
    async def pay(amount: int) -> str:
        """Pay."""
        ledger.append(f"pay {amount}")
        if hang:
            await anyio.sleep_forever()
        return "paid"

    make = agents([call("pay", amount=3), "Paid."], ["Paid."], tools=[pay])
    system = ActorSystem(opened(), stop_s=0.1)
    async with system:
        system.register("clerk", make)
        await system.ref("clerk/a").tell("Pay 3.", id="run-1")
        while not ledger:
            await anyio.sleep(0.01)
    assert system.late == (Address("clerk", "a"),)
    hang = False
    async with ActorSystem(opened()) as system:
        system.register("clerk", make)
        reply = await system.result("run-1", timeout_s=5)
    assert (reply.outcome, reply.text) == (Outcome.FINISHED, "Paid.")
    assert ledger == ["pay 3", "pay 3"]


async def test_an_approval_is_given_in_the_next_system(opened: Opened) -> None:
    ledger = list[str]()

    @tool(effect="effect")
    async def pay(amount: int) -> str:
        """Pay."""
        ledger.append(f"pay {amount}")
        return "paid"

    make = agents([call("pay", amount=3)], ["Paid."], cls=Guarded, tools=[pay])
    async with ActorSystem(opened()) as system:
        system.register("clerk", make)
        reply = await system.ref("clerk/a").ask("Pay 3.", id="run-1")
        assert reply.outcome is Outcome.AWAITING_APPROVAL
    async with ActorSystem(opened()) as system:
        system.register("clerk", make)
        ref = system.ref("clerk/a")
        (asked,) = await ref.pending()
        assert await ref.approve(asked.id, by="alice")
        reply = await system.result("run-1", timeout_s=5)
    assert (reply.text, ledger) == ("Paid.", ["pay 3"])


async def test_what_comes_while_an_agent_waits_for_a_human_is_held_back(opened: Opened) -> None:

    @tool(effect="effect")
    async def pay() -> str:
        """Pay."""
        return "paid"

    make = agents([call("pay"), "Paid.", "Second.", "Third."], cls=Guarded, tools=[pay])
    async with ActorSystem(opened()) as system:
        system.register("clerk", make)
        ref = system.ref("clerk/a")
        await ref.ask("Pay.", id="run-1")
        await ref.tell("Second?", id="run-2")
        await ref.tell("Third?", id="run-3")
        (asked,) = await ref.pending()
        await ref.approve(asked.id, by="alice")
        replies = [await system.result(f"run-{n}", timeout_s=5) for n in (1, 2, 3)]
    assert [reply.text for reply in replies] == ["Paid.", "Second.", "Third."]


async def test_a_client_that_serves_nothing_asks_and_approves(opened: Opened) -> None:

    @tool(effect="effect")
    async def pay() -> str:
        """Pay."""
        return "paid"

    make = agents([call("pay"), "Paid."], cls=Guarded, tools=[pay])
    async with ActorSystem(opened()) as worker, ActorSystem(opened()) as client:
        worker.register("clerk", make)
        await worker.ref("clerk/a").pending()
        ref = client.ref("clerk/a")
        reply = await ref.ask("Pay.")
        assert reply.outcome is Outcome.AWAITING_APPROVAL
        (asked,) = await ref.pending()
        assert await ref.approve(asked.id, by="alice")
        assert (await client.result(reply.run_id, timeout_s=5)).text == "Paid."


async def test_a_caller_that_gives_up_cancels_the_run(opened: Opened) -> None:

    @tool(effect="pure")
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return ""

    async with ActorSystem(opened()) as worker, ActorSystem(opened()) as client:
        worker.register("clerk", agents([call("hang")], tools=[hang]))
        await worker.ref("clerk/a").pending()
        with pytest.raises(AskTimeout):
            await client.ref("clerk/a").ask("Hang.", timeout_s=0.2, id="run-1")
        reply = await client.result("run-1", timeout_s=5)
    assert reply.outcome is Outcome.INTERRUPTED


async def test_a_failed_run_is_raised_at_the_asker_wherever_it_is(opened: Opened) -> None:
    async with ActorSystem(opened()) as worker, ActorSystem(opened()) as client:
        worker.register("clerk", agents([]))
        await worker.ref("clerk/a").pending()
        with pytest.raises(RunFailed):
            await client.ref("clerk/a").ask("x", timeout_s=5)


async def test_a_letter_that_nobody_can_read_is_dead(opened: Opened) -> None:
    async with ActorSystem(opened()) as system:
        system.register("counter", counting([]))
        assert system.engine is not None
        await system.engine.send(Letter("l-1", Address("counter", "a"), {"what": "is this"}))
        assert await system.ref("counter/a").ask("x") == 1
        (dead,) = await system.engine.dead()
    assert dead.reason == "unreadable"


async def test_an_actor_that_cannot_be_made_fails_its_asker_at_once(opened: Opened) -> None:
    def broken(seat: Seat) -> Actor:
        raise ValueError("no such thing")

    async with ActorSystem(opened()) as system:
        system.register("counter", broken)
        with pytest.raises(ValueError, match="no such thing"):
            await system.ref("counter/a").ask("x", timeout_s=5)


async def test_what_was_told_last_is_done_before_the_block_is_left(opened: Opened) -> None:
    seen: list[Any] = []
    async with ActorSystem(opened()) as system:
        system.register("counter", counting(seen))
        for number in range(100):
            await system.ref("counter/a").tell(number)
    assert seen == list(range(100))


async def test_a_run_that_nobody_gets_on_with_is_given_up(opened: Opened) -> None:
    class Hanging(ReActAgent):
        async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
            await anyio.sleep_forever()
            return await super()._reasoning(request)

    def make(seat: Seat) -> Actor:
        return Hanging(address=seat.address, model=ScriptedModel([]), journal=seat.journal)

    for _ in range(5):
        async with ActorSystem(opened(), stop_s=0.05) as system:
            system.register("clerk", make, RESUME)
            await system.ref("clerk/a").tell("Hang.", id="run-1")
            await anyio.sleep(0.1)
    async with opened() as engine:
        (dead,) = await engine.dead()
        answer = await engine.answer("run-1", timeout_s=1)
    assert "4 processes took this run up" in (dead.error or "")
    assert answer.body["reply"]["outcome"] == "failed"
