"""What the tests of the layers around the model share."""

from __future__ import annotations

import base64
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from typing import Any

from callboard.agent import ReActAgent
from callboard.events import Event, MessageUpdate, Retry, Warned
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import ModelAttempted
from callboard.messages import ImageBlock
from callboard.model import AttemptDiscarded, TextDelta
from callboard.replies import PromptLike, Reply
from tests.run_script import plain_environment


async def watched(agent: ReActAgent, prompt: PromptLike = "go") -> tuple[Reply, list[Event]]:
    """The reply, and every event of the run."""
    events: list[Event] = []
    async with agent.stream(prompt) as stream:
        events.extend([event async for event in stream])
        assert stream.reply is not None
        return stream.reply, events


def shown(events: Sequence[Event]) -> str:
    """The text as a client puts it together from the updates."""
    text = ""
    for event in events:
        if isinstance(event, MessageUpdate):
            if isinstance(event.delta, TextDelta):
                text += event.delta.text
            elif isinstance(event.delta, AttemptDiscarded):
                text = ""
    return text


def attempts(agent: ReActAgent) -> list[tuple[str, str]]:
    """The model calls in the journal: which model, and how each ended."""
    assert isinstance(agent.journal, InMemoryJournal)
    records: Sequence[Any] = agent.journal.records
    return [(r.model, r.ended) for r in records if isinstance(r, ModelAttempted)]


def retries(events: Sequence[Event]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Retry)]


def warnings(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Warned)]


def png_bytes(width: int = 1, height: int = 1) -> bytes:
    """A grey PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        tail = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + tail

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def png(width: int = 1, height: int = 1) -> ImageBlock:
    """The same as a block."""
    data = base64.b64encode(png_bytes(width, height)).decode()
    return ImageBlock(media_type="image/png", data=data)


def run_without(package: str, code: str) -> subprocess.CompletedProcess[str]:
    """Run some code in an interpreter of its own, in which a package cannot be found."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules[{package!r}] = None\n{code}"],
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
