"""What is too large for a record is put into the blob store before the record is made.

Used by the actor for prompts and queued messages, and by `tool_run` for observations.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from anyio import CancelScope

from callboard.errors import CommitFailed
from callboard.journaling.blobs import Blobs, digest_of
from callboard.json_text import sendable
from callboard.messages import Content, ConversationMessage, Media, Observation, TextBlock

BLOB_BYTES = 256 * 1024  # media above it leave the record
KEPT_AS = "; the whole is kept as "

B = TypeVar("B")
Clean = Callable[[Any], Any]
M = TypeVar("M", bound=ConversationMessage)


class Wholes:
    """The texts that were cut while one observation was made, by the digest that names them."""

    __slots__ = ("_clean", "texts")

    def __init__(self, clean: Clean | None = None) -> None:
        self.texts: dict[str, bytes] = {}
        self._clean = clean

    def note(self, text: str) -> str:
        """Remember the whole text; returns what the notice of the cut says of it."""
        encoded = sendable(text if self._clean is None else self._clean(text)).encode()
        digest = digest_of(encoded)
        self.texts[digest] = encoded
        return KEPT_AS + digest


class Keeper:
    """Puts large things into an agent's store. Not cut short by a cancellation.

    `clean` has each text and each block of media before it is put, which no layer of records sees.
    """

    __slots__ = ("_blobs", "clean")

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.clean: Clean | None = None

    def wholes(self) -> Wholes:
        """A collection of what is cut from one observation."""
        return Wholes(self.clean)

    async def content(self, blocks: tuple[B, ...]) -> tuple[B, ...]:
        """The blocks, with the digests of large media in the place of their data.

        Raises:
            CommitFailed: something could not be kept.
        """
        if not any([_is_large(block) for block in blocks]):
            return blocks
        return tuple([await self._small(block) for block in blocks])

    async def messages(self, messages: Sequence[M]) -> tuple[M, ...]:
        """The messages with such content; those without large media are the same objects.

        Raises:
            CommitFailed: as `content`.
        """
        kept: list[M] = []
        for message in messages:
            content: tuple[Any, ...] = await self.content(message.content)
            same = content is message.content
            kept.append(message if same else _with_content(message, content))
        return tuple(kept)

    async def observation(
        self, observation: Observation, wholes: Wholes, *, warn: Callable[[str], None]
    ) -> Observation:
        """The observation with such content, once the texts that it names are kept.

        The tool has run, so its result is not lost where the store fails: media stay in it, a
        text is cut and names nothing.
        """
        content = observation.content
        named = [d for d in wholes.texts if any([_names(block, d) for block in content])]
        for digest in named:
            try:
                with CancelScope(shield=True):
                    await self._blobs.put(wholes.texts[digest])
            except CommitFailed as problem:
                warn(f"the whole of a result is lost: {problem}")
                content = _unnamed(content, digest)
        try:
            content = await self.content(content)
        except CommitFailed as problem:
            warn(f"large media stay in the journal: {problem}")
        same = content is observation.content
        return observation if same else replace(observation, content=content)

    async def _small(self, block: B) -> B:
        if not isinstance(block, Media) or not _is_large(block):
            return block
        media: Media = block if self.clean is None else self.clean(block)
        try:
            data = base64.b64decode(media.data or "", validate=True)
        except binascii.Error:
            return cast(B, media)  # for the provider to refuse
        with CancelScope(shield=True):
            media = replace(media, data=None, blob=await self._blobs.put(data))
        return cast(B, media)


def unkept(observation: Observation, wholes: Wholes) -> Observation:
    """The observation as it is where nothing could be kept."""
    content = observation.content
    for digest in wholes.texts:
        content = _unnamed(content, digest)
    return replace(observation, content=content)


def has_blobs(message: ConversationMessage) -> bool:
    """Whether data of the message are in a store."""
    return any([isinstance(block, Media) and block.blob is not None for block in message.content])


async def whole(message: M, blobs: Blobs) -> M:
    """A copy of the message with the data of its blobs in it, as it was before they were kept.

    Raises:
        BlobLost: a blob is not there, or is damaged.
    """
    content = tuple([await _whole(block, blobs) for block in message.content])
    return cast(M, _with_content(message, content))


async def _whole(block: B, blobs: Blobs) -> B:
    if not isinstance(block, Media) or block.blob is None:
        return block
    data = base64.b64encode(await blobs.get(block.blob)).decode()
    return cast(B, replace(block, data=data, blob=None))


def _with_content(message: Any, content: tuple[Any, ...]) -> Any:
    """A copy: `replace` cannot be typed for a union."""
    return replace(message, content=content)


def _is_large(block: object) -> bool:
    if not isinstance(block, Media) or block.data is None:
        return False
    return len(block.data) // 4 * 3 - block.data[-2:].count("=") > BLOB_BYTES


def _names(block: object, digest: str) -> bool:
    return isinstance(block, TextBlock) and KEPT_AS + digest in block.text


def _unnamed(blocks: tuple[Content, ...], digest: str) -> tuple[Content, ...]:
    name = KEPT_AS + digest
    return tuple(
        [
            TextBlock(text=block.text.replace(name, "")) if isinstance(block, TextBlock) else block
            for block in blocks
        ]
    )
