"""Replays: a journal is run again against the code, and the first difference is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import anyio

from callboard.agent import ReActAgent
from callboard.errors import ConfigurationError
from callboard.journaling.journal import Journal
from callboard.journaling.records import Record
from callboard.model import Model
from callboard.testing.cassette import Cassette
from callboard.testing.difference import Difference
from callboard.testing.recorded_life import Life
from callboard.testing.recorded_model import RecordedModel
from callboard.testing.tape import Tape
from callboard.testing.virtual_time import virtual_backend


class MakesAgent(Protocol):
    """Makes the agent of a replay, as it is made in earnest: a class, or a function.

    It must hand `journal` on; `model` it may ignore, as whatever model it takes is asked nothing.
    """

    def __call__(self, *, model: Model, journal: Journal) -> ReActAgent: ...


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a replay: the first difference, or None if the code does what is recorded.

    `matched` records were made again. `unrecorded` is the number of the record of a model call
    whose answer the journal does not hold; what comes behind it was not compared. `notes` tell
    where the model was sent something else than the conversation.
    """

    matched: int
    recorded: int
    difference: Difference | None
    unrecorded: int | None
    notes: tuple[str, ...]

    def assert_same(self) -> None:
        """Raise AssertionError if there is a difference, or if not all could be compared."""
        if self.difference is not None:
            raise AssertionError(str(self.difference))
        if self.unrecorded is not None:
            raise AssertionError(
                f"record {self.unrecorded}: what the model answered is not in the journal, so only"
                f" {self.matched} of {self.recorded} records could be compared"
            )


def replayed(journal: Journal | Sequence[Record], make: MakesAgent) -> Replay:
    """Run what is recorded again with an agent of `make`, and compare record by record.

    The model answers as recorded, and tools give what is recorded and are not run. Prompts,
    queued messages, answers of people, interrupts, cancels and crashes come at the same points.
    Layers and hooks are the code's own and work in earnest (an audit writes its file): what they
    decide, deny or record otherwise is a difference. Ids, times and costs may differ. Runs an
    event loop of its own, in which waits take no time; call it outside of one.

    Raises:
        ConfigurationError: the agent does not use the journal; or an event loop runs here.
        JournalDamaged: a record cannot be read.
    """
    name, options = virtual_backend("asyncio")
    try:
        return anyio.run(partial(_replayed, journal, make), backend=name, backend_options=options)
    except RuntimeError as error:
        if "event loop" not in str(error) and "Already running" not in str(error):
            raise
        raise ConfigurationError("replayed() runs a loop of its own: call it outside") from error


async def _replayed(journal: Journal | Sequence[Record], make: MakesAgent) -> Replay:
    records = journal if isinstance(journal, Sequence) else await journal.read()
    cassette, notes = Cassette(records), list[str]()
    tape = Tape(records, stops=cassette.stops)
    asked = 0
    while not tape.is_over:
        if tape.at in tape.given.breaks:
            tape.take_up()
            asked = _answers_before(cassette, tape.at)
            continue
        life = Life(tape, cassette, asked=asked, notes=notes)
        life.take(make(model=RecordedModel(life), journal=tape), tape)
        await life.play()
        asked = life.asked
    return Replay(tape.at, len(tape.recorded), tape.difference, tape.unrecorded, tuple(notes))


def _answers_before(cassette: Cassette, number: int) -> int:
    return sum([answer.number < number for answer in cassette.answers])
