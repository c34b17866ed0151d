"""What is derived from a message is derived once, and lives no longer than the message."""

from __future__ import annotations

import gc

from callboard.messages import ConversationMessage, TextBlock, UserMessage
from callboard.per_message import PerMessage


def counting() -> tuple[PerMessage[int], list[str]]:
    """A cache, and the ids of the messages that it asked for."""
    asked: list[str] = []

    def make(message: ConversationMessage) -> int:
        asked.append(message.id)
        return len(asked)

    return PerMessage(make), asked


def test_a_value_is_made_once_for_each_message() -> None:
    derived, asked = counting()
    one, other = UserMessage.of("a"), UserMessage.of("a")
    assert [derived(one), derived(other), derived(one)] == [1, 2, 1]
    assert asked == [one.id, other.id]


def test_a_changed_copy_of_the_same_id_is_another_message() -> None:
    derived, _ = counting()
    one = UserMessage(id="m", content=(TextBlock(text="a"),))
    assert derived(one) != derived(UserMessage(id="m", content=()))


def test_a_value_goes_with_its_message() -> None:
    derived, _ = counting()
    message = UserMessage.of("a")
    derived(message)
    assert len(derived) == 1
    del message
    gc.collect()
    assert len(derived) == 0
