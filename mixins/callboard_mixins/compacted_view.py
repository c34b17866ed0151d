"""What a model is shown of a conversation that was compacted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

from callboard.messages import ConversationMessage, UserMessage, blocks_of
from callboard.per_message import PerMessage
from callboard_mixins.compacting import (
    AS_IT_IS,
    Compacted,
    Trim,
    newest_prompt,
    place_after,
    trimmer,
)

LEFT_OUT = "(The messages before this point were too many and are left out: {count} of them.)"
SUMMED_UP = "(What was said before this point, summed up:)\n{summary}"


class CompactedView(Sequence[ConversationMessage]):
    """The messages from `start` on, behind a summary; results before `trimmed_to` are cut."""

    __slots__ = ("_head", "_messages", "_start", "_trim", "_trimmed_to")

    def __init__(
        self,
        messages: Sequence[ConversationMessage],
        *,
        head: tuple[ConversationMessage, ...],
        start: int,
        trimmed_to: int,
        trim: Trim,
    ) -> None:
        self._messages = messages
        self._head = head
        self._start = start
        self._trimmed_to = trimmed_to
        self._trim = trim

    def __len__(self) -> int:
        return len(self._head) + len(self._messages) - self._start

    def __iter__(self) -> Iterator[ConversationMessage]:
        for at in range(len(self)):
            yield self[at]

    @overload
    def __getitem__(self, index: int) -> ConversationMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ConversationMessage, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> ConversationMessage | tuple[ConversationMessage, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(*index.indices(len(self)))])
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"message {index} of {len(self)}")
        if index < len(self._head):
            return self._head[index]
        at = index - len(self._head) + self._start
        message = self._messages[at]
        return self._trim(message) if at < self._trimmed_to else message


def head_of(
    compacted: Compacted, messages: Sequence[ConversationMessage], start: int
) -> tuple[ConversationMessage, ...]:
    """What stands for the messages before `start`: a summary, and the newest message of the user
    if it is one of them.
    """
    if not compacted.upto:
        return ()
    text = LEFT_OUT.format(count=start)
    if compacted.summary:
        text = SUMMED_UP.format(summary=compacted.summary)
    summary = UserMessage(id=f"compaction/{compacted.upto}", content=blocks_of(text))
    if any([isinstance(messages[at], UserMessage) for at in range(start, len(messages))]):
        return (summary,)
    prompt = newest_prompt(messages)
    return (summary,) if prompt is None else (summary, prompt)


class Places(NamedTuple):
    """Where a compaction stands in the messages."""

    start: int = 0  # of what is shown as it is
    trimmed_to: int = 0  # results before it are cut
    fresh_from: int = 0  # what came after the compaction


class Viewer:
    """Shows the messages as they were last compacted, and looks up only once where."""

    __slots__ = ("_last", "_places", "trim")

    def __init__(self, *, longest_result_bytes: int) -> None:
        self.trim = PerMessage(trimmer(longest_result_bytes))
        self._last = AS_IT_IS
        self._places = Places()

    def places(self, now: Compacted, messages: Sequence[ConversationMessage]) -> Places:
        """Where the compaction stands in these messages, which only grow."""
        if self._last is not now:
            ids = (now.upto, now.trimmed, now.newest)
            self._places = Places(*[place_after(messages, id) for id in ids])
            self._last = now
        return self._places

    def shown(
        self, now: Compacted, messages: Sequence[ConversationMessage]
    ) -> Sequence[ConversationMessage]:
        """The messages as they are shown."""
        if now is AS_IT_IS:
            return messages
        start, trimmed_to, _ = self.places(now, messages)
        head = head_of(now, messages, start)
        return CompactedView(
            messages, head=head, start=start, trimmed_to=trimmed_to, trim=self.trim
        )
