"""Images made smaller, or brought into a type that models take, by Pillow (the extra "media").

Imported when the first image is looked at, since it takes 30 ms.
"""

from __future__ import annotations

import struct
from io import BytesIO

from PIL import Image, ImageOps

from callboard_mixins.media.policy import MediaPolicy

BROKEN = "its content cannot be read"
TOO_LARGE = "it is too large"
SMALLEST_SIDE = 64
_FAILURES = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,  # where warnings are errors
)


def scaled(data: bytes, policy: MediaPolicy, *, keep: bool) -> tuple[bytes, str] | str | None:
    """The image in fit form with its media type, or why it cannot be sent.

    None where it is fit as it is, which `keep` allows.
    """
    try:
        with Image.open(BytesIO(data)) as image:
            if image.width * image.height > policy.most_pixels:
                return TOO_LARGE
            if keep and max(image.size) <= policy.longest_side:
                return None
            return _encoded(image, policy)
    except _FAILURES:
        return BROKEN


def _encoded(image: Image.Image, policy: MediaPolicy) -> tuple[bytes, str] | str:
    """Its first frame, upright, as PNG where parts of it are transparent and else as JPEG."""
    image = ImageOps.exif_transpose(image)
    form = "PNG" if image.has_transparency_data else "JPEG"
    image = image.convert("RGBA" if form == "PNG" else "RGB")
    side = min(policy.longest_side, max(image.size))
    while True:
        image.thumbnail((side, side))
        out = BytesIO()
        image.save(out, form, quality=85, optimize=True)
        if out.tell() <= policy.image_bytes:
            return out.getvalue(), f"image/{form.lower()}"
        side = side * 3 // 4
        if side < SMALLEST_SIDE:
            return TOO_LARGE
