"""Every text in the arguments of a call, with the JSON pointer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

MOST_LEAVES = 10_000
MOST_DEPTH = 64
_TEXT_NAMES = frozenset(
    "content contents text old_text new_text old_string new_string old_str new_str file_text "
    "message body prompt description code query pattern regex replacement note question answer "
    "title summary thought reason diff patch comment html markdown".split()
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text in the arguments. `name` is the nearest key above it, in small letters."""

    where: str
    name: str
    text: str
    in_text: bool = False  # found by reading a text as JSON

    @property
    def prose(self) -> bool:
        """Whether it is by its name a text to read or to write, and no path or address."""
        return self.name in _TEXT_NAMES


class TooMany(ValueError):
    """The arguments hold more than a guard looks at."""


def leaves_of(arguments: Mapping[str, Any]) -> list[Leaf]:
    """All texts at any depth; keys too, and those in JSON that stands in a text.

    Raises TooMany where they are more, or deeper, than is looked at.
    """
    found: list[Leaf] = []
    for leaf in _walk(arguments, "", "", 0, in_text=False):
        if len(found) >= MOST_LEAVES:
            raise TooMany(f"the arguments hold more than {MOST_LEAVES} texts")
        found.append(leaf)
    return found


def _walk(value: Any, where: str, name: str, depth: int, *, in_text: bool) -> Iterator[Leaf]:
    if depth > MOST_DEPTH:
        raise TooMany(f"the arguments are nested more than {MOST_DEPTH} deep")
    if isinstance(value, str):
        yield Leaf(where, name, value, in_text)
        inner = read_json(value) if depth < 4 or not in_text else None
        if inner is not None:
            yield from _walk(inner, where, name, depth + 1, in_text=True)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, Any]", value).items():
            below = where if in_text else f"{where}/{escape(str(key))}"
            if depth:
                yield Leaf(below, "", str(key), in_text)
            yield from _walk(item, below, str(key).lower(), depth + 1, in_text=in_text)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(cast("Sequence[Any]", value)):
            below = where if in_text else f"{where}/{at}"
            yield from _walk(item, below, name, depth + 1, in_text=in_text)


def read_json(text: str) -> Any:
    """A text that is JSON of an object or a list, read."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def escape(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
