"""What a conversation holds of the answers in a form that were tried: wrong ones, and corrections.

Pure; used by `structured_output.py`. Read off the conversation, so that a restart counts the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    Status,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from callboard.replies import Prompt
from callboard_mixins.output_form import OutputInvalid, correction

TOOL_NAME = "final_answer"
_CORRECTION = re.compile(r"/output/\d+\Z")  # ends the id of a message that asks for another form
_WRONG = (Status.INVALID, Status.FAILED)


def answers(messages: Sequence[ConversationMessage]) -> Iterator[ToolResultMessage]:
    """What the tool answered since the last message of the user, the newest first."""
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return
        if _is_answer(message):
            yield message


class Corrections:
    """How often an answer was wrong: by a call of the tool, or as a text that was corrected.

    One bound for both, counted from the last message that is no correction. Looks at each message
    once.
    """

    __slots__ = ("_most", "_seen", "_wrong")

    def __init__(self, most: int) -> None:
        self._most = most
        self._wrong: list[str] = []  # what was wrong, the newest last
        self._seen = 0

    def check(self, messages: Sequence[ConversationMessage]) -> None:
        """Raise OutputInvalid where more answers were wrong than are corrected."""
        self._look(messages)
        if len(self._wrong) > self._most:
            raise OutputInvalid(self._wrong[-1], attempts=len(self._wrong))

    def next(
        self,
        prompt: Prompt,
        messages: Sequence[ConversationMessage],
        problem: str,
        *,
        tool: str | None,
    ) -> Prompt:
        """What corrects a text, under the next id that is made of the prompt's: one that is entered
        again after a restart is the same.

        Raises:
            OutputInvalid: all corrections were made.
        """
        self._look(messages)
        attempts = len(self._wrong) + 1
        if attempts > self._most:
            raise OutputInvalid(problem, attempts=attempts)
        begun = f"{prompt.id}/output/"
        id = f"{begun}{sum([message.id.startswith(begun) for message in messages]) + 1}"
        content = blocks_of(correction(problem, tool=tool))
        return Prompt(id, (UserMessage(id=id, content=content),))

    def _look(self, messages: Sequence[ConversationMessage]) -> None:
        if len(messages) < self._seen:  # a commit failed, and the journal was read back
            self._wrong, self._seen = [], 0
        for at in range(self._seen, len(messages)):
            self._take(messages[at])
        self._seen = len(messages)

    def _take(self, message: ConversationMessage) -> None:
        if isinstance(message, UserMessage):
            is_correction = _CORRECTION.search(message.id) is not None
            self._wrong = [*self._wrong, message.text] if is_correction else []
        elif _is_answer(message) and message.status in _WRONG:
            self._wrong.append(message.text)


def _is_answer(message: ConversationMessage) -> TypeGuard[ToolResultMessage]:
    return isinstance(message, ToolResultMessage) and message.tool_name == TOOL_NAME


def last_said(messages: Sequence[ConversationMessage]) -> AssistantMessage | None:
    """The newest message of the model."""
    return next((one for one in reversed(messages) if isinstance(one, AssistantMessage)), None)
