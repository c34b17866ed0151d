"""Whether what happens is what was recorded, but for what is new in every run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import Record

SHOWN = 80  # characters of a value that is told
NEW = frozenset(  # fields that differ from run to run, or are measured
    {
        "active_s",
        "answer.id",
        "approval.digest",
        "approval.expires_at",
        "cost",
        "digest",
        "idempotency_key",
        "parent_run",
    }
)
_ID = re.compile(r"\b[a-z]+_[0-9a-f]{13,}\b")  # what `new_id` makes
_MODEL_ERROR = "ModelError: "  # its category is not recorded, so layers may word it otherwise


class Likeness:
    """Compares records. An id that is new stands for the recorded one from then on."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}
        self._recorded: dict[str, str] = {}

    def difference(self, recorded: Record, happened: Record) -> str | None:
        """Where and how they differ, in words; None if they are alike."""
        if recorded.kind != happened.kind:
            return "they are of different kinds"
        pairs: list[tuple[str, str]] = []
        for path, was, now in _differing(_document(recorded), _document(happened), ""):
            if path in NEW or (path == "error" and _is_loose(recorded.kind, was, now)):
                continue
            if not (isinstance(was, str) and isinstance(now, str) and self._is_like(was, now)):
                return f"{path or 'it'} was {_shown(was)} and is {_shown(now)}"
            pairs += zip(_ID.findall(was), _ID.findall(now), strict=True)
        return self._learned(pairs)

    def translated(self, recorded: Record) -> Record:
        """The record with the ids of this run."""
        text = encode(recorded).decode()
        return decode(_ID.sub(lambda id: self._new.get(id[0], id[0]), text).encode())

    def _is_like(self, was: str, now: str) -> bool:
        """Whether the texts differ in ids alone, and in none that is known to be another's."""
        if _ID.split(was) != _ID.split(now):
            return False
        ids = zip(_ID.findall(was), _ID.findall(now), strict=True)
        return all(
            self._new.get(one, other) == other and self._recorded.get(other, one) == one
            for one, other in ids
        )

    def _learned(self, pairs: list[tuple[str, str]]) -> str | None:
        for was, now in pairs:
            if self._new.setdefault(was, now) != now or self._recorded.setdefault(now, was) != was:
                return f"{was} would be {now}, which is another one"
        return None


def _document(record: Record) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(encode(record)))


def _differing(was: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """The leaves that are not equal, with their places."""
    before, after = _parts(was), _parts(now)
    if before is not None and after is not None and type(was) is type(now):
        for name in {**before, **after}:
            place = f"{path}.{name}" if path else str(name)
            yield from _differing(before.get(name), after.get(name), place)
    elif was != now or type(was) is not type(now):
        yield path, was, now


def _parts(value: object) -> dict[Any, Any] | None:
    """What an object or an array is made of, by name or place."""
    if isinstance(value, dict):
        return dict(cast("Mapping[Any, Any]", value))
    return dict(enumerate(cast("Sequence[Any]", value))) if isinstance(value, list) else None


def _is_loose(kind: str, was: Any, now: Any) -> bool:
    """Whether the words of a failure of the model do not count."""
    if kind == "model_attempt":
        return (was is None) == (now is None)
    texts = [text for text in (was, now) if isinstance(text, str)]
    return len(texts) == 2 and all(text.startswith(_MODEL_ERROR) for text in texts)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
