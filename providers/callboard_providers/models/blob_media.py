"""Conversations with the data of the media that an agent keeps in its blob store.

Called by adapters before they convert a request.
"""

from __future__ import annotations

from dataclasses import replace

from callboard.journaling.blobs import Blobs
from callboard.journaling.keeping import has_blobs, whole
from callboard.messages import ConversationMessage
from callboard.model import ModelRequest
from callboard.per_message import PerMessage


class _Loaded:
    __slots__ = ("message",)

    def __init__(self) -> None:
        self.message: ConversationMessage | None = None


class BlobMedia:
    """Loads blobs, once for each message object; what is loaded lives as long as its message."""

    def __init__(self) -> None:
        self._loaded: PerMessage[_Loaded | None] = PerMessage(_place)

    async def loaded(self, request: ModelRequest) -> ModelRequest:
        """The request with copies of those messages that have blobs, with the data in them.

        Raises:
            BlobLost: a blob is not there, or is damaged.
        """
        if request.blobs is None:
            return request
        blobs = request.blobs
        messages = [await self._message(message, blobs) for message in request.messages]
        return replace(request, messages=messages)

    async def _message(self, message: ConversationMessage, blobs: Blobs) -> ConversationMessage:
        loaded = self._loaded(message)
        if loaded is None:
            return message
        if loaded.message is None:
            loaded.message = await whole(message, blobs)
        return loaded.message

    def __len__(self) -> int:
        return len(self._loaded)


def _place(message: ConversationMessage) -> _Loaded | None:
    return _Loaded() if has_blobs(message) else None
