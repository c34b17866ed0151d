"""Whether media may be sent and are what they claim to be: where they come from, their type by
content, their size.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace
from typing import TypeVar
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import anyio.to_thread

from callboard.journaling.blobs import Blobs
from callboard.messages import AudioBlock, FileBlock, ImageBlock, Media
from callboard.workspace import OutsideWorkspace
from callboard_mixins.media.placeholders import Omitted
from callboard_mixins.media.policy import MediaPolicy
from callboard_mixins.media.sniffing import sniffed

MediaBlock = ImageBlock | AudioBlock | FileBlock
B = TypeVar("B", bound=Media)
TAKEN_BY_MODELS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
NEEDS_PILLOW = "it is too large or of an unusual type, and Pillow is not installed"
TOO_LARGE = "it is too large"
NOT_BASE64 = "its data cannot be decoded"
NOT_ALLOWED = "its file stands in no folder that may be read"
UNREADABLE = "its file cannot be read"
STRANGE_URL = "its address is of a kind that is not passed on"
_HERE = ("", "localhost")


async def sound(
    block: MediaBlock, policy: MediaPolicy, blobs: Blobs | None
) -> MediaBlock | Omitted:
    """The block as it may be sent, a changed copy where it must be; or why it may not.

    Raises:
        BlobLost: its data are not in their store any more.
    """
    if block.blob is not None:
        if blobs is None:
            return block  # the adapter says what it makes of it
        data = await blobs.get(block.blob)
        return await anyio.to_thread.run_sync(_examined, block, data, policy)
    if block.data is None and _is_passed_on(block, policy):
        return block
    return await anyio.to_thread.run_sync(_read_and_examined, block, policy)


def _is_passed_on(block: MediaBlock, policy: MediaPolicy) -> bool:
    return block.url is not None and _scheme(block.url) in policy.schemes


def _scheme(url: str) -> str:
    """The scheme of a URL; a path counts as a file."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower() if colon and scheme.isalnum() else "file"


def _read_and_examined(block: MediaBlock, policy: MediaPolicy) -> MediaBlock | Omitted:
    if block.data is not None:
        try:
            data = base64.b64decode(block.data, validate=True)
        except binascii.Error:
            return Omitted(block.type, NOT_BASE64)
        return _examined(block, data, policy)
    url = block.url or ""
    if _scheme(url) == "data":
        return _of_data_url(block, url, policy)
    if _scheme(url) != "file":
        return Omitted(block.type, STRANGE_URL)
    return _of_file(block, url, policy)


def _of_data_url(block: MediaBlock, url: str, policy: MediaPolicy) -> MediaBlock | Omitted:
    head, _, text = url.partition(",")
    try:
        raw = unquote_to_bytes(text)
        data = base64.b64decode(raw, validate=True) if head.endswith(";base64") else raw
    except binascii.Error:
        return Omitted(block.type, NOT_BASE64)
    kind = head.removeprefix("data:").partition(";")[0] or block.media_type
    return _examined(replace(block, url=None, media_type=kind), data, policy, changed=True)


def _of_file(block: MediaBlock, url: str, policy: MediaPolicy) -> MediaBlock | Omitted:
    """Opened through the handle of its folder: nothing can be swapped after the check."""
    parts = urlsplit(url)
    if parts.netloc.lower() not in _HERE:
        return Omitted(block.type, STRANGE_URL)
    path = unquote(parts.path) if parts.scheme else url
    longest = 10 * policy.image_bytes if isinstance(block, ImageBlock) else policy.other_bytes
    for workspace in policy.workspaces:
        try:
            with workspace.open(path) as file:
                data = file.read(longest + 1)
        except OutsideWorkspace:
            continue
        except OSError:
            return Omitted(block.type, UNREADABLE)
        if len(data) > longest:
            return Omitted(block.type, TOO_LARGE)
        return _examined(replace(block, url=None), data, policy, changed=True)
    return Omitted(block.type, NOT_ALLOWED)


def _examined(
    block: MediaBlock,
    data: bytes,
    policy: MediaPolicy,
    changed: bool = False,  # noqa: FBT001, FBT002  # it runs in a thread, which takes no keywords
) -> MediaBlock | Omitted:
    """The same object if nothing about it must be changed."""
    kind = sniffed(data)
    if isinstance(block, ImageBlock):
        return _image(block, data, kind, policy, changed=changed)
    if isinstance(block, AudioBlock) and not (kind or "").startswith("audio/"):
        return Omitted("audio", "its content is no audio")
    if block.media_type == "application/pdf" and kind != "application/pdf":
        return Omitted("file", "its content is no PDF")
    if len(data) > policy.other_bytes:
        return Omitted(block.type, TOO_LARGE)
    declared = block.media_type if isinstance(block, FileBlock) or kind is None else kind
    return _with_data(block, data, declared) if changed else _retyped(block, declared)


def _image(
    block: ImageBlock, data: bytes, kind: str | None, policy: MediaPolicy, *, changed: bool
) -> MediaBlock | Omitted:
    if kind is None or not kind.startswith("image/"):
        return Omitted("image", "its content is no image")
    fit = _fitted(data, kind, policy)
    if isinstance(fit, str):
        return Omitted("image", fit)
    if changed or fit is not None:
        return _with_data(block, *(fit or (data, kind)))
    return _retyped(block, kind)


def _fitted(data: bytes, kind: str, policy: MediaPolicy) -> tuple[bytes, str] | str | None:
    """The image as it may be sent, None for as it is, or why it may not."""
    keep = kind in TAKEN_BY_MODELS and len(data) <= policy.image_bytes
    try:
        from callboard_mixins.media.scaling import scaled  # it needs Pillow
    except ImportError:
        return None if keep else NEEDS_PILLOW
    return scaled(data, policy, keep=keep)


def _retyped(block: B, kind: str) -> B:
    return block if block.media_type == kind else replace(block, media_type=kind)


def _with_data(block: B, data: bytes, kind: str) -> B:
    text = base64.b64encode(data).decode()
    return replace(block, data=text, url=None, blob=None, media_type=kind)
