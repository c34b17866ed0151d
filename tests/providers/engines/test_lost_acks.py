"""What was kept although the engine said it was not, and senders that send again."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard import ReActAgent, ToolContext, tool
from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter
from callboard.actors.envelope import Envelope
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Supervision
from callboard.actors.system import ActorSystem, Seat
from callboard.errors import CommitFailed
from callboard.journaling.transcript import fold
from callboard.messages import ToolResultMessage
from callboard.replies import Outcome
from callboard.testing import pairing_faults
from callboard_providers.engines import sqlite_queries as queries
from callboard_providers.engines.sqlite import SqliteEngine
from tests.faults.engine.worker import Obedient

pytestmark = pytest.mark.anyio
RESUME = ActorRules(supervision=Supervision(on_failure=OnFailure.RESUME, backoff_s=0.01))


class LostAck(SqliteEngine):
    """Keeps each commit, and says of one that it did not: the answer was lost on its way."""

    left = 0

    async def keep(self, commit: Commit, *, owner: str | None) -> None:
        await super().keep(commit, owner=owner)
        self.left -= 1
        if self.left == 0:
            raise CommitFailed("the answer was lost")


class Noting(Actor):
    """Writes down what it is told, and passes it on."""

    def __init__(self, ledger: list[Any], pass_on: Callable[[Any], Any] | None = None) -> None:
        self.ledger, self.pass_on = ledger, pass_on

    async def receive(self, letter: Envelope) -> None:
        self.ledger.append(letter.payload)
        if self.pass_on is not None:
            await self.pass_on(letter.payload)


def passing_on(tell: Callable[[Any], Any], seat: Seat) -> Actor:
    return Noting([], tell)


def clerk(ledger: list[str]) -> Callable[[Seat], Actor]:
    """Makes agents that note an order with an effect and an idempotent tool."""

    @tool(effect="effect")
    async def effect_note(order: str) -> str:
        """Note an order."""
        ledger.append(f"effect {order}")
        return "noted"

    @tool(effect="idempotent")
    async def idempotent_note(context: ToolContext, order: str) -> str:
        """Note an order."""
        ledger.append(f"idempotent {order} {context.idempotency_key}")
        return "noted"

    tools = [effect_note, idempotent_note]
    return lambda seat: ReActAgent(
        address=seat.address, model=Obedient(), tools=tools, journal=seat.journal
    )


@pytest.mark.parametrize("lost", range(1, 8))
async def test_an_agent_whose_commit_was_kept_in_secret_does_no_effect_twice(
    tmp_path: Path, lost: int
) -> None:
    ledger: list[str] = []
    first, second = LostAck(tmp_path / "team.db"), SqliteEngine(tmp_path / "team.db")
    first.left = lost
    async with ActorSystem(first, stop_s=1.0) as system:
        system.register("clerk", clerk(ledger), RESUME)
        await system.ref("clerk/a").tell("order 1", id="run-1")
    assert first.left <= 0
    async with ActorSystem(second) as system:
        system.register("clerk", clerk(ledger), RESUME)
        assert (await system.result("run-1", timeout_s=10)).outcome is Outcome.FINISHED
        messages = fold(list(await second.records(Address("clerk", "a")))).messages
    assert pairing_faults(messages) == []
    effect, _ = [m for m in messages if isinstance(m, ToolResultMessage)]
    assert (effect.status, ledger.count("effect 1")) in [
        ("ok", 1),
        ("unknown_outcome", 0),
        ("unknown_outcome", 1),
    ]
    assert len({line for line in ledger if line.startswith("idempotent")}) == 1


async def test_what_a_plain_actor_tells_comes_once_though_its_commit_was_kept_in_secret(
    tmp_path: Path,
) -> None:
    told: list[Any] = []
    first, second = LostAck(tmp_path / "team.db"), SqliteEngine(tmp_path / "team.db")
    first.left = 1
    for engine in (first, second):
        async with ActorSystem(engine, stop_s=1.0) as system:
            pass_on = system.ref("sink/s").tell
            system.register("teller", partial(passing_on, pass_on), RESUME)
            system.register("sink", lambda seat: Noting(told))
            await system.ref("teller/t").tell("x", id="letter-1")
            await system.ref("sink/s").ask("last")
    assert told.count("x") == 1


async def test_a_sender_that_sends_again_is_heard_once_within_the_hour(tmp_path: Path) -> None:
    ledger: list[Any] = []
    engine = SqliteEngine(tmp_path / "team.db")

    async def forget(age_s: float) -> None:
        await engine.write(
            lambda connection: connection.execute("UPDATE seen SET at = ?", (time.time() - age_s,))
        )
        await engine.write(partial(queries.sweep, seen_s=3_600.0, answers_s=86_400.0))

    async with ActorSystem(engine) as system:
        system.register("note", lambda seat: Noting(ledger))
        for age_s in (0.0, 3_000.0, 4_000.0):
            await forget(age_s)
            await system.ref("note/a").tell("x", id="letter-1")
            await system.settled()
            await anyio.sleep(0.05)
    assert ledger == ["x", "x"]  # the second one after the hour: a sender has to give up by then


async def test_a_run_is_not_begun_again_for_a_day(tmp_path: Path) -> None:
    ledger: list[str] = []
    engine = SqliteEngine(tmp_path / "team.db")
    async with ActorSystem(engine) as system:
        system.register("clerk", clerk(ledger))
        for _ in range(2):
            reply = await system.ref("clerk/a").ask("order 1", id="run-1", timeout_s=10)
            assert reply.outcome is Outcome.FINISHED
            await engine.write(partial(queries.sweep, seen_s=-1.0, answers_s=86_400.0))
    assert ledger.count("effect 1") == 1


@pytest.mark.parametrize(
    "body", [{"prompt": "no messages"}, {"call": {}}, {"error": "Oops", "text": "x"}, {"reply": 1}]
)
async def test_a_body_that_cannot_be_read_is_dead_and_ends_nobody(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    ledger: list[Any] = []
    engine = SqliteEngine(tmp_path / "team.db")
    async with ActorSystem(engine) as system:
        system.register("note", lambda seat: Noting(ledger))
        await engine.send(Letter("bad", Address("note", "a"), body))
        await system.ref("note/a").ask("x", timeout_s=10)
        assert [one.reason for one in await engine.dead()] == ["unreadable"]
    assert ledger == ["x"]
