"""Which part of a conversation is summed up, and which results are cut. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from callboard.json_text import cut
from callboard.messages import (
    ConversationMessage,
    Media,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)

Trim = Callable[[ConversationMessage], ConversationMessage]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is shown of a conversation: a summary instead of the messages up to one, and results
    that are cut up to another. As it stands in the journal.
    """

    upto: str = ""  # the id of the last message that is summed up
    summary: str = ""
    trimmed: str = ""  # the id of the last message whose result may be cut
    newest: str = ""  # the id of the newest message when this was made
    overflow: str = ""  # the newest user message when the model said that it was too long

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> Compacted:
        return cls(**fact)


AS_IT_IS = Compacted()  # a conversation that was never compacted


def place_after(messages: Sequence[ConversationMessage], id: str) -> int:
    """The index behind the message of this id; 0 where there is none. The newest come first."""
    if not id:
        return 0
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].id == id:
            return at + 1
    return 0


def cut_point(messages: Sequence[ConversationMessage], start: int, *, keep_recent: int) -> int:
    """Up to where messages from `start` on may be summed up: whole rounds only, and at least
    `keep_recent` of them stay. `start` where there is nothing to gain.
    """
    borders: list[int] = []
    for at in range(len(messages) - 1, start - 1, -1):
        if not isinstance(messages[at], ToolResultMessage):
            borders.append(at)
        if len(borders) > keep_recent:
            break
    if len(borders) <= keep_recent:
        return start
    point = borders[keep_recent - 1]
    is_prompt_alone = point == start + 1 and newest_prompt(messages) is messages[start]
    return start if is_prompt_alone else point


def newest_prompt(messages: Sequence[ConversationMessage]) -> UserMessage | None:
    """The newest message of the user: it is always shown as it is."""
    return next((one for one in reversed(messages) if isinstance(one, UserMessage)), None)


def media_words(message: ConversationMessage) -> str:
    """What stands for the images, the sound and the files of a message where only text goes:
    "[image/png]"; "" where there are none.
    """
    media = [block for block in message.content if isinstance(block, Media)]
    return " ".join([f"[{getattr(block, 'name', None) or block.media_type}]" for block in media])


def trimmer(longest_bytes: int) -> Trim:
    """What cuts the result of a tool to so many bytes, and leaves other messages as they are."""

    def trim(message: ConversationMessage) -> ConversationMessage:
        if not isinstance(message, ToolResultMessage) or len(message.text) <= longest_bytes // 4:
            return message
        size = len(message.text.encode(errors="replace"))
        if size <= longest_bytes:
            return message
        note = f"\n(an older result: the first {longest_bytes} of its {size} bytes are shown)"
        media = media_words(message)
        note += f"\n(left out: {media})" if media else ""
        return replace(message, content=(TextBlock(text=cut(message.text, longest_bytes) + note),))

    return trim
