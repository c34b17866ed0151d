"""A layer of records sees each of them once, however the journal comes to write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from callboard import InMemoryJournal, ReActAgent, SqliteJournal
from callboard.errors import CommitFailed
from callboard.journaling.conversation import R
from callboard.journaling.records import Record, ToolStarted
from callboard.model import Delta
from callboard.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Waits(SqliteJournal):
    """A journal on a slow disk: nothing is written at once."""

    def append_at_once(self, records: Sequence[Record], expected: int) -> bool:
        return False


class Seeing(ReActAgent):
    """Notes what goes through it, with the place that it is told."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.seen: list[tuple[int, str]] = []

    def _committing(self, record: R) -> R:
        written = super()._committing(record)
        if not isinstance(written, Delta):
            self.seen.append((self._conversation.number, written.kind))
        return written


class Refusing(Seeing):
    """Stores no start of a tool."""

    def _committing(self, record: R) -> R:
        written = super()._committing(record)
        if isinstance(written, ToolStarted):
            raise ValueError("not this one")
        return written


def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


async def ran(journal: SqliteJournal | InMemoryJournal, kind: type[Seeing] = Seeing) -> Seeing:
    model = ScriptedModel([call("send", to="Ada"), "done"])
    agent = kind(model=model, tools=[send], journal=journal)
    assert (await agent.run("go")).text == "done"
    return agent


@pytest.mark.parametrize("kind", [SqliteJournal, Waits])
async def test_each_record_goes_through_once(tmp_path: Path, kind: type[SqliteJournal]) -> None:
    with kind(tmp_path / "agent.db") as journal:
        agent = await ran(journal)
        kept = [(at, record.kind) for at, record in enumerate(await journal.read())]
    assert agent.seen == kept
    assert (await ran(InMemoryJournal())).seen == kept


@pytest.mark.parametrize("kind", [SqliteJournal, Waits])
async def test_what_a_layer_refuses_is_not_stored(
    tmp_path: Path, kind: type[SqliteJournal]
) -> None:
    with kind(tmp_path / "agent.db") as journal:
        with pytest.raises(CommitFailed, match="not this one"):
            await ran(journal, Refusing)
        assert "tool_started" not in [record.kind for record in await journal.read()]
