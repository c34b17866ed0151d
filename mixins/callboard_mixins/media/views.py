"""A conversation as one model may have it: copies of the messages with media, made once each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from callboard.journaling.blobs import Blobs
from callboard.journaling.message_view import MessageView
from callboard.messages import AudioBlock, ConversationMessage, FileBlock, ImageBlock
from callboard.per_message import PerMessage
from callboard_mixins.media.placeholders import (
    Medium,
    Omitted,
    media_in,
    not_taken_reason,
    with_placeholders,
)
from callboard_mixins.media.policy import MediaPolicy
from callboard_mixins.media.soundness import sound

MEDIA = frozenset({ImageBlock, AudioBlock, FileBlock})
Tell = Callable[[str], None]


class MediaPlaces:
    """Where in a conversation media stand. A history that only grew is not read again."""

    def __init__(self) -> None:
        self._seen: MessageView | None = None
        self._places: list[int] = []

    def find(self, messages: Sequence[ConversationMessage]) -> list[int]:
        """The indices of the messages that hold media."""
        if type(messages) is not MessageView:
            return [at for at, message in enumerate(messages) if _holds_media(message)]
        start = 0
        if self._seen is not None and messages.continues(self._seen):
            start = len(self._seen)
        else:
            self._places = []
        self._seen = messages
        for at in range(start, len(messages)):
            if _holds_media(messages[at]):
                self._places.append(at)
        return self._places


def _holds_media(message: ConversationMessage) -> bool:
    for block in message.content:  # any() over a generator takes three times as long
        if type(block) in MEDIA:
            return True
    return False


class _Views:
    """The copies of one message, by what was not taken."""

    __slots__ = ("by_missing",)

    def __init__(self, _: ConversationMessage) -> None:
        self.by_missing: dict[frozenset[Medium], ConversationMessage] = {}


class MediaViews:
    """Makes the copies. `tell` hears of each medium that is left out because it is not sound."""

    def __init__(self, policy: MediaPolicy, tell: Tell) -> None:
        self._policy = policy
        self._tell = tell
        self._views = PerMessage(_Views)

    async def without(
        self,
        messages: Sequence[ConversationMessage],
        places: Sequence[int],
        missing: frozenset[Medium],
        blobs: Blobs | None,
    ) -> tuple[Sequence[ConversationMessage], frozenset[Medium]]:
        """The messages without the media of `missing`, and which media are still among them.

        Raises:
            BlobLost: data are not in their store any more.
        """
        seen: list[ConversationMessage] = list(messages)
        sent: set[Medium] = set()
        for at in places:
            seen[at] = await self._view(seen[at], missing, blobs)
            sent |= media_in(seen[at])
        return seen, frozenset(sent)

    async def _view(
        self, message: ConversationMessage, missing: frozenset[Medium], blobs: Blobs | None
    ) -> ConversationMessage:
        views = self._views(message).by_missing
        if missing not in views:
            blocks = [await self._block(block, missing, blobs) for block in message.content]
            same = all([one is other for one, other in zip(blocks, message.content, strict=True)])
            views[missing] = message if same else _with_blocks(message, with_placeholders(blocks))
        return views[missing]

    async def _block(self, block: Any, missing: frozenset[Medium], blobs: Blobs | None) -> Any:
        if not isinstance(block, (ImageBlock, AudioBlock, FileBlock)):
            return block
        if block.type in missing:
            return Omitted(block.type, not_taken_reason(block.type))
        made = await sound(block, self._policy, blobs)
        if isinstance(made, Omitted):
            self._tell(f"{made.medium} left out: {made.reason}")
        return made


def _with_blocks(message: Any, blocks: tuple[Any, ...]) -> ConversationMessage:
    """A copy: `replace` cannot be typed for a union."""
    copy: ConversationMessage = replace(message, content=blocks)
    return copy
