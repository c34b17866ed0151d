"""The stores that keep what is large, and what holds for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from callboard.errors import BlobLost, CommitFailed
from callboard.journaling.blobs import Blobs, FileBlobs, InMemoryBlobs
from callboard.journaling.keeping import KEPT_AS
from callboard.messages import ConversationMessage, Media, TextBlock
from tests.framework.histories.history import History
from tests.framework.histories.large import WHOLES
from tests.framework.histories.laws import broken_unless


class SlowBlobs(InMemoryBlobs):
    """A store that takes a moment, and fails at some of what it is given."""

    def __init__(self, faults: Sequence[int], *, moment_s: float) -> None:
        super().__init__()
        self._moment_s = moment_s
        self._faults = frozenset(faults)
        self._puts = 0

    async def put(self, data: bytes) -> str:
        self._puts += 1
        fails = self._puts in self._faults
        if self._moment_s:
            await anyio.sleep(self._moment_s)
        if fails:
            raise CommitFailed("the store is full")
        return await super().put(data)


def blobs_of(history: History, file: Path | None) -> Blobs | None:
    """The store of a history, which outlives its agents."""
    if not history.keeps_blobs:
        return None
    if file is not None:
        return FileBlobs(file.with_suffix(".blobs"))
    return SlowBlobs(history.blob_faults, moment_s=history.moment_s or 0.0)


async def check_kept(messages: Sequence[ConversationMessage], blobs: Blobs, *, full: bool) -> None:
    """What a message names is in the store and is what was put; what is large is there.

    `full`: the store failed at times, and what was large stayed in the journal.
    """
    for message in messages:
        for block in message.content:
            if isinstance(block, Media):
                small = block.data is None or full
                broken_unless(small, "what is large is kept apart", message.id)
                if block.blob is not None:
                    await _check_whole(block.blob, blobs)
            elif isinstance(block, TextBlock) and KEPT_AS in block.text:
                digest = block.text.partition(KEPT_AS)[2].split("]")[0].strip()
                await _check_whole(digest, blobs)


async def _check_whole(digest: str, blobs: Blobs) -> None:
    try:
        whole = await blobs.get(digest)
    except BlobLost as lost:
        broken_unless(False, "what is named is kept", lost)
    else:
        broken_unless(WHOLES.get(digest) == whole, "what is kept is whole", digest)
