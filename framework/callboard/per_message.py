"""A cache of what is derived from one message, so that a turn does not rescan history.

Used by the adapters' conversions and by layers. An entry lives as long as its message.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from callboard.messages import ConversationMessage

T = TypeVar("T")


class PerMessage(Generic[T]):
    """Calls `make` once for each message object.

    Keyed by identity: hashing a message reads all of its content, and a message that is a changed
    copy of another keeps its id.
    """

    def __init__(self, make: Callable[[ConversationMessage], T]) -> None:
        self._make = make
        self._made: dict[int, tuple[weakref.ref[ConversationMessage], T]] = {}

    def __call__(self, message: ConversationMessage) -> T:
        key = id(message)
        entry = self._made.get(key)
        if entry is not None and entry[0]() is message:
            return entry[1]
        made, value = self._made, self._make(message)

        def forget(_: object) -> None:
            made.pop(key, None)

        made[key] = (weakref.ref(message, forget), value)
        return value

    def __len__(self) -> int:
        return len(self._made)
