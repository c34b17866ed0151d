"""The messages of a conversation as a request holds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from callboard.messages import ConversationMessage


class MessageView(Sequence[ConversationMessage]):
    """The first messages of an append-only list. O(1) to make, and it never changes: a tuple
    copied per turn would cost 0.3 ms at 1,000 messages.
    """

    __slots__ = ("_history", "_length")

    def __init__(self, history: list[ConversationMessage]) -> None:
        self._history = history
        self._length = len(history)

    def continues(self, earlier: MessageView) -> bool:
        """Whether it begins with all messages of the other view, the same objects."""
        return self._history is earlier._history and self._length >= earlier._length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ConversationMessage]:
        return islice(self._history, self._length)

    @overload
    def __getitem__(self, index: int) -> ConversationMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ConversationMessage, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> ConversationMessage | tuple[ConversationMessage, ...]:
        if isinstance(index, slice):
            return tuple([self._history[at] for at in range(*index.indices(self._length))])
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._history[index]
