"""The first difference of a replay, in words, and what stops the agent there."""

from __future__ import annotations

from dataclasses import dataclass

from callboard.errors import CommitFailed
from callboard.journaling.record_codec import encode
from callboard.journaling.records import Record

SHOWN = 200  # characters of a record that is told


class Halted(CommitFailed):
    """Stops the agent where the recorded one stopped, or where they differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the code does not do what is recorded.

    `number` is that of the record, from 0; `recorded` is None behind the last one. `happened` is
    the record that was made instead, or what happened in words. `detail` says where they differ.
    """

    number: int
    recorded: Record | None
    happened: Record | str
    detail: str

    def __str__(self) -> str:
        was = "nothing more" if self.recorded is None else _told(self.recorded)
        now = self.happened if isinstance(self.happened, str) else _told(self.happened)
        return f"record {self.number}: {self.detail}\n  recorded: {was}\n  now: {now}"


def _told(record: Record) -> str:
    text = encode(record).decode()
    body = text[text.index(record.kind) + len(record.kind) + 2 : -1]
    return f"{record.kind} {body if len(body) <= SHOWN else f'{body[: SHOWN - 1]}…'}"
