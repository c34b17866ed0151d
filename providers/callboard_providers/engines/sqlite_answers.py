"""Who in this process waits for an answer that somebody writes into the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import inf

from callboard.actors.engine import StoredAnswer
from callboard.actors.waiting import Answer, Late
from callboard.errors import AskTimeout


class Answers:
    """Askers by the ids of their letters."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[Answer, bool]]] = {}

    def waiting(self) -> list[str]:
        return list(self._waiting)

    async def wait(
        self,
        letter_id: str,
        look: Callable[[], Awaitable[Sequence[StoredAnswer]]],
        *,
        timeout_s: float,
        final: bool,
    ) -> StoredAnswer:
        """The answer to a letter, as soon as it is there or was there all along.

        Raises:
            AskTimeout: there was none in time.
        """
        place = Answer(), final
        self._waiting.setdefault(letter_id, []).append(place)
        try:
            self.told(await look())
            found: StoredAnswer = await place[0].wait(None if timeout_s == inf else timeout_s)
        except Late:
            text = f"there was no answer to {letter_id!r} within {timeout_s:.3g} s"
            raise AskTimeout(text) from None
        finally:
            self._leave(letter_id, place)
        return found

    def _leave(self, letter_id: str, place: tuple[Answer, bool]) -> None:
        places = self._waiting[letter_id]
        places.remove(place)
        if not places:
            del self._waiting[letter_id]

    def told(self, answers: Sequence[StoredAnswer]) -> None:
        """These are in the file."""
        for answer in answers:
            for place, wants_final in self._waiting.get(answer.letter_id, ()):
                if answer.final or not wants_final:
                    place.set(answer)
