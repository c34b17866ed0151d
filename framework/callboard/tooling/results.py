"""Whatever a tool returns, as an observation: content for the model, a payload for programs.

Used by `execution.py`. Text is bounded in bytes here, before anything is stored.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json, to_json, to_jsonable_python

from callboard.json_text import cut, sendable
from callboard.messages import (
    AudioBlock,
    Content,
    FileBlock,
    ImageBlock,
    Observation,
    Status,
    TextBlock,
)
from callboard.tooling.argument_repair import is_array

NO_OUTPUT = "(no output)"
REPR_CHARACTERS = 2_000
Keep = Callable[[str], str]  # takes a whole text that is cut; what the cut says of it
_SHORT = 10**15  # numbers below it need no look at their length
_BYTES = frozenset({bytes, bytearray, memoryview})
_BLOCKS = (TextBlock, ImageBlock, AudioBlock, FileBlock)
_IMAGES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def observe(
    value: Any, *, size_bytes: int, terminate: bool = False, keep: Keep | None = None
) -> Observation:
    """The observation of a returned value, its text bounded to `size_bytes` of UTF-8.

    Never raises: what cannot be encoded becomes a bounded repr. A payload that takes more than
    `size_bytes` as JSON is left out. `keep` is given the whole of a text that is cut.
    """
    if isinstance(value, str) and keep is None:
        text = bounded(value, size_bytes)
        content: tuple[Content, ...] = (TextBlock(text=text),) if text else ()
        return Observation(content=content, terminate=terminate)
    if type(value) is int and -_SHORT < value < _SHORT and size_bytes > 16:
        text = str(value)
        return Observation(content=(TextBlock(text=text),), payload=value, terminate=terminate)
    if isinstance(value, Observation):
        return _kept(value, size_bytes, terminate=terminate, keep=keep)
    content, payload = _content(value, size_bytes)
    bound = bounded_blocks(content, size_bytes, keep)
    return Observation(content=bound, payload=payload, terminate=terminate)


def failure(
    text: str, status: Status, *, size_bytes: int, partial: Any = None, keep: Keep | None = None
) -> Observation:
    """An observation of something that went wrong; what there was of a result comes first."""
    text = bounded(text, size_bytes)
    left = size_bytes - len(text.encode())
    bound = max(left - 1, 0)
    before = () if partial is None else observe(partial, size_bytes=bound, keep=keep).content
    line = TextBlock(text=f"\n{text}" if before else text)
    return Observation(status=status, content=(*before, line))


def bounded(text: str, size_bytes: int, note: str = "") -> str:
    """Sendable text of at most `size_bytes` bytes, which says so where it was cut."""
    if len(text) <= size_bytes and text.isascii():
        return text
    text = sendable(text)
    size = len(text.encode())
    if size <= size_bytes:
        return text
    notice = f"\n[cut: {size} bytes are too many, the first %d are shown{note}]"
    kept = cut(text, size_bytes - (len(notice) - 2 + len(str(size))))
    whole = kept + notice % len(kept.encode())
    return whole if kept else cut(text, size_bytes)


def bounded_blocks(
    blocks: tuple[Content, ...], size_bytes: int, keep: Keep | None = None
) -> tuple[Content, ...]:
    """The blocks, with at most `size_bytes` bytes of text in all; media are not counted."""
    note = "" if keep is None else _note(blocks, size_bytes, keep)
    kept: list[Content] = []
    left = size_bytes
    for block in blocks:
        if isinstance(block, TextBlock):
            text = bounded(block.text, left, note) if left else ""
            left -= len(text.encode())
            if not text:
                continue
            block = block if text is block.text else TextBlock(text=text)
        kept.append(block)
    return tuple(kept)


def _note(blocks: tuple[Content, ...], size_bytes: int, keep: Keep) -> str:
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if sum([len(text.encode()) for text in texts]) <= size_bytes:
        return ""
    return keep("\n".join(texts))


def media_block(data: bytes, *, name: str | None = None) -> Content:
    """A block for bytes, of the type that their beginning tells."""
    encoded = base64.b64encode(data).decode()
    for magic, kind in _IMAGES:
        if data.startswith(magic):
            return ImageBlock(media_type=kind, data=encoded)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageBlock(media_type="image/webp", data=encoded)
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return AudioBlock(media_type="audio/wav", data=encoded)
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] in (b"\xfb", b"\xf3", b"\xf2")):
        return AudioBlock(media_type="audio/mpeg", data=encoded)
    if data.startswith(b"%PDF-"):
        return FileBlock(media_type="application/pdf", data=encoded, name=name)
    return FileBlock(data=encoded, name=name)


def safe_repr(value: object) -> str:
    """A bounded repr that never raises."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # the value's own code
        text = f"<{type(value).__name__}: its repr failed with {type(error).__name__}>"
    return text if len(text) <= REPR_CHARACTERS else f"{text[:REPR_CHARACTERS]}..."


def _kept(
    value: Observation, size_bytes: int, *, terminate: bool, keep: Keep | None
) -> Observation:
    content = bounded_blocks(value.content, size_bytes, keep)
    payload = None if value.payload is None else _json(value.payload, size_bytes)[1]
    terminate = value.terminate or (terminate and value.status is Status.OK)
    return Observation(
        status=value.status,
        content=content,
        payload=payload,
        details=value.details,
        terminate=terminate,
    )


def _content(value: Any, size_bytes: int) -> tuple[tuple[Content, ...], Any]:
    if value is None:
        return (TextBlock(text=NO_OUTPUT),), None
    if isinstance(value, _BLOCKS):
        return (value,), None
    if type(value) in _BYTES:
        return (media_block(bytes(value)),), None
    if is_array(value) and any([_is_block(item) for item in value]):
        parts = [_content(item, size_bytes)[0] for item in value]
        return tuple([block for part in parts for block in part]), None
    if isinstance(value, str):
        return ((TextBlock(text=value),) if value else ()), None
    text, payload = _json(value, size_bytes)
    return (TextBlock(text=text),), payload


def _is_block(value: object) -> bool:
    return isinstance(value, _BLOCKS) or type(value) in _BYTES


def _json(value: Any, size_bytes: int) -> tuple[str, Any]:
    """The JSON text of a value, and the JSON value itself unless it is too large."""
    try:
        text = _encoded(value)
        return text, from_json(text) if len(text.encode()) <= size_bytes else None
    except Exception:  # noqa: BLE001  # the value's own code, cycles, keys unknown to JSON
        return safe_repr(value), None


def _encoded(value: Any) -> str:
    try:
        return to_json(
            value, fallback=safe_repr, bytes_mode="base64", inf_nan_mode="strings"
        ).decode()
    except ValueError:  # lone surrogates, which only Python can hold
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
        return sendable(text)


def _plain(value: Any) -> Any:
    try:
        return to_jsonable_python(value, fallback=safe_repr, bytes_mode="base64")
    except ValueError:
        return safe_repr(value)
