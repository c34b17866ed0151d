"""What stands in a message for media that are left out: one line for a run of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from callboard.messages import AudioBlock, ConversationMessage, FileBlock, ImageBlock, TextBlock
from callboard.model import Capabilities
from callboard.plain import plain

Medium = str  # "image", "audio" or "file", as the type of a block says
TAKES_NONE = "this model takes no {plural}"
_PLURALS = {"image": "images", "audio": "audio", "file": "files"}
_PIECES = {"image": "images", "audio": "audio clips", "file": "files"}
_WORDS: dict[Medium, re.Pattern[str]] = {
    "image": re.compile(r"\b(image|picture|photo|vision)", re.IGNORECASE),
    "audio": re.compile(r"audio\b|\bsound", re.IGNORECASE),
    "file": re.compile(r"\b(pdf|document|file)s?\b", re.IGNORECASE),
}


@plain
class Omitted:
    """A block that is left out, and why."""

    medium: Medium
    reason: str


def media_in(message: ConversationMessage) -> frozenset[Medium]:
    """The media that a message holds."""
    kinds = (ImageBlock, AudioBlock, FileBlock)
    return frozenset([block.type for block in message.content if isinstance(block, kinds)])


def not_taken(capabilities: Capabilities) -> frozenset[Medium]:
    """What a model does not take by its description."""
    taken = {
        "image": capabilities.images,
        "audio": capabilities.audio,
        "file": capabilities.files,
    }
    return frozenset([medium for medium, takes in taken.items() if not takes])


def named_in(text: str) -> frozenset[Medium]:
    """The media that the text of an error names."""
    return frozenset([medium for medium, words in _WORDS.items() if words.search(text)])


def not_taken_reason(medium: Medium) -> str:
    return TAKES_NONE.format(plural=_PLURALS[medium])


def with_placeholders(blocks: Iterable[Any | Omitted]) -> tuple[Any, ...]:
    """The blocks, with one text for each run that is left out for the same reason."""
    made: list[Any] = []
    for key, run in groupby(blocks, _run_of):
        if key is None:
            made.extend(run)
        else:
            made.append(TextBlock(text=placeholder(*key, count=len(list(run)))))
    return tuple(made)


def _run_of(block: Any | Omitted) -> tuple[Medium, str] | None:
    return (block.medium, block.reason) if isinstance(block, Omitted) else None


def placeholder(medium: Medium, reason: str, *, count: int = 1) -> str:
    """The line that the model reads instead."""
    what = (
        medium if count == 1 else f"{count} {'audio clips' if medium == 'audio' else medium + 's'}"
    )
    return f"[{what} omitted: {reason}]"
