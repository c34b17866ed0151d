"""Who in this process waits for an answer to a letter that an engine keeps."""

from __future__ import annotations

from typing import Any

from callboard.actors.waiting import Answer
from callboard.lease import Carried, carried


class Moved(Exception):
    """The letter is handled by another process: its answer comes through the engine."""


class Slots:
    """Askers of this process by the ids of their letters, and for whose runs they ask."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Answer, Carried | None]] = {}

    def open(self, letter_id: str) -> Answer:
        """A place for the answer as it was given, with all that JSON would lose."""
        answer = Answer()
        self._open[letter_id] = answer, carried()
        return answer

    def close(self, letter_id: str) -> None:
        self._open.pop(letter_id, None)

    def inside(self, letter_id: str) -> Carried | None:
        """The runs of this process that the asker works for."""
        found = self._open.get(letter_id)
        return None if found is None else found[1]

    def fill(self, letter_id: str, value: Any, error: BaseException | None) -> None:
        found = self._open.get(letter_id)
        if found is None:
            return
        if error is None:
            found[0].set(value)
        else:
            found[0].fail(error)

    def move(self, letter_id: str) -> None:
        """The answer comes from elsewhere."""
        self.fill(letter_id, None, Moved())
