"""What kind of file some bytes are, by how they begin. A declared type is only a claim."""

from __future__ import annotations

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_FTYP = (  # the brand of an ISO media file
    ((b"heic", b"heix", b"mif1", b"hevc"), "image/heic"),
    ((b"avif", b"avis"), "image/avif"),
    ((b"M4A ", b"M4B "), "audio/mp4"),
    ((b"isom", b"iso2", b"mp41", b"mp42", b"qt  "), "video/mp4"),
)


def sniffed(data: bytes) -> str | None:
    """The media type that the bytes show, None where they show none of those known here."""
    for start, kind in _STARTS:
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return next((kind for brands, kind in _FTYP if data[8:12] in brands), None)
    if len(data) > 2 and data[0] == 0xFF and data[1] & 0xE6 in (0xE2, 0xE4, 0xE6):
        return "audio/mpeg"  # a frame of MPEG audio without a tag in front
    if data[:1] == b"\xff" and len(data) > 1 and data[1] & 0xF6 == 0xF0:
        return "audio/aac"
    return None
