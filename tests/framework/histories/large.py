"""What is too large for a record: a picture and a text."""

from __future__ import annotations

import base64

from callboard.journaling.blobs import digest_of
from callboard.journaling.keeping import BLOB_BYTES
from callboard.messages import Content, ImageBlock, TextBlock

FILM_BYTES = b"\x89PNG\r\n\x1a\n" + b"\x7f" * BLOB_BYTES
FILM = ImageBlock(media_type="image/png", data=base64.b64encode(FILM_BYTES).decode())
TOME = "once upon a time " * 100
LONGEST_BYTES = 400  # of a result that is such a text
WHOLES = {digest_of(data): data for data in (FILM_BYTES, TOME.encode())}


def pictured(text: str) -> list[Content]:
    """A prompt with the picture."""
    return [TextBlock(text=text), FILM]
