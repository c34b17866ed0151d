"""What the store was told, step by step, and the laws that hold after each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, StoredAnswer
from callboard.journaling.records import Record, RunFinished, RunStarted, ToolStarted
from callboard.journaling.transcript import State
from callboard.testing import pairing_faults
from callboard.tooling.tools import Effect


class Books:
    """Checks each step as it is kept. `breaks(law, *facts)` is called where one is wrong."""

    def __init__(self, breaks: Callable[..., None]) -> None:
        self._breaks = breaks
        self._numbers: dict[str, int] = {}  # letters in the order of sending
        self._last: dict[Address, Letter] = {}
        self.states: dict[Address, State] = {}
        self.letters: dict[str, Letter] = {}
        self.done: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()  # runs
        self.ended: dict[str, RunFinished] = {}
        self.answers: dict[str, StoredAnswer] = {}
        self._started: Counter[str] = Counter()  # calls with an effect

    def sent(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            if letter.id in self._numbers:
                self._breaks("a letter is taken in once", letter)
            self._numbers[letter.id] = len(self._numbers)
            self.letters[letter.id] = letter

    def committed(self, commit: Commit, done: Sequence[Letter]) -> None:
        for letter in done:
            self._check_order(letter)
            self.done[letter.id] += 1
        for answer in commit.answers:
            self._check_answer(answer)
        if commit.records:
            self._fold(commit.address, commit.records)

    def _check_order(self, letter: Letter) -> None:
        """What one address gets is done in the order of sending, but for control letters, timers,
        and the calls of an agent above, which are not held back where a human is waited for.
        """
        if letter.control or letter.due is not None or "call" in letter.body:
            return
        last = self._last.get(letter.to)
        self._last[letter.to] = letter
        if last is not None and self._numbers[last.id] > self._numbers[letter.id]:
            self._breaks("letters are done in order", last, letter)

    def _check_answer(self, answer: StoredAnswer) -> None:
        before = self.answers.get(answer.letter_id)
        if before is not None and before.final and before != answer:
            self._breaks("what was answered stays", before, answer)
        self.answers[answer.letter_id] = answer

    def _fold(self, address: Address, records: Sequence[Record]) -> None:
        state = self.states.setdefault(address, State())
        for record in records:
            match record:
                case RunStarted(run_id=id):
                    self.begun[id] += 1
                    if state.run is not None and state.run.run_id != id:
                        self._breaks("one run at a time", record)
                case RunFinished(run_id=id):
                    if id in self.ended:
                        self._breaks("a run ends once", record)
                    self.ended[id] = record
                case ToolStarted(call_id=id, effect=Effect.EFFECT):
                    self._started[id] += 1
                    if self._started[id] > 1:
                        self._breaks("an effect is started once", record)
                case _:
                    pass
            state.apply([record])
        if not state.open_calls and (faults := pairing_faults(state.messages)):
            self._breaks("calls and results pair", faults)
