"""A file that version 0.1.0 wrote is read whole by every later version."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from callboard import ReActAgent, tool
from callboard.actors.address import Address
from callboard.actors.engine import Standing
from callboard.actors.system import ActorSystem, Seat
from callboard.testing import ScriptedModel
from callboard.testing.engine_kit import working
from callboard_providers.engines.sqlite import SqliteEngine

FROZEN = Path(__file__).parents[2] / "data" / "engines" / "0.1.0.db"
pytestmark = pytest.mark.anyio


@pytest.fixture
def engine(tmp_path: Path) -> SqliteEngine:
    """An engine on a copy of the file."""
    return SqliteEngine(shutil.copy(FROZEN, tmp_path / "team.db"))


async def test_its_letters_are_handed_out(engine: SqliteEngine) -> None:
    async with engine, working(engine, "writer") as share:
        found = {one.id: one for one in await share.letters(2)}
    assert found["l-1"].body == {"value": {"text": "ünï \ud83d"}}
    assert (found["l-1"].topic, found["l-1"].chain) == ("news", (Address("a", "b"),))
    assert (found["l-2"].control, found["l-2"].body["control"]) == (True, "steer")


async def test_what_it_knows_of_addresses_is_read(engine: SqliteEngine) -> None:
    async with engine:
        entries = {one.address: one for one in await engine.actors()}
        clerk = entries[Address("clerk", "ann")]
        arguments = await engine.arguments(clerk.address)
        topics = await engine.subscribers("news")
        (dead,) = await engine.dead()
        interim = await engine.answer("run-1", timeout_s=1)
    assert (clerk.standing, clerk.unread, arguments) == (Standing.WAITING, 0, {"desk": "Ünter"})
    assert list(topics) == [Address("writer", "bob smith")]
    assert (dead.letter.id, dead.error) == ("l-4", "ValueError: no")
    assert interim.body["reply"]["outcome"] == "awaiting_approval"


async def test_its_parked_agent_is_approved_and_goes_on(engine: SqliteEngine) -> None:
    @tool(effect="effect")
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def make(seat: Seat) -> ReActAgent:
        model = ScriptedModel(["Paid."])
        return ReActAgent(address=seat.address, model=model, tools=[pay], journal=seat.journal)

    async with ActorSystem(engine) as system:
        system.register("clerk", make)
        (asked,) = await system.ref("clerk/ann").pending()
        await system.ref("clerk/ann").approve(asked.id, by="alice")
        reply = await system.result("run-1", timeout_s=10)
        said = [message.text for message in await system.ref("clerk/ann").messages()]
    assert (reply.text, said[2]) == ("Paid.", "paid 3")
