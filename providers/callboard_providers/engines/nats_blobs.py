"""Blobs in an object store of JetStream, for agents on several machines."""

from __future__ import annotations

from nats.js.client import JetStreamContext
from nats.js.errors import APIError, BucketNotFoundError, NotFoundError, ObjectNotFoundError

from callboard.errors import BlobLost, CommitFailed
from callboard.journaling.blobs import digest_of

BUCKET = "CB_BLOBS"


class NatsBlobs:
    """As `Blobs`; the bucket is made by the first blob."""

    def __init__(self, context: JetStreamContext) -> None:
        self._context = context

    async def put(self, data: bytes) -> str:
        """As `Blobs.put`."""
        digest = digest_of(data)
        try:
            store = await self._context.create_object_store(BUCKET)  # pyright: ignore[reportUnknownMemberType]
            await store.put(digest, data)
        except APIError as error:
            raise CommitFailed(f"a blob could not be kept in {BUCKET}: {error}") from error
        return digest

    async def get(self, digest: str) -> bytes:
        """As `Blobs.get`."""
        try:
            store = await self._context.object_store(BUCKET)
            data = (await store.get(digest)).data or b""
        except (BucketNotFoundError, ObjectNotFoundError, NotFoundError) as error:
            raise BlobLost(f"there is no blob {digest} in {BUCKET}: {error}") from error
        if digest_of(data) != digest:
            raise BlobLost(f"the blob {digest} is damaged")
        return data
