"""What kind of JSON value something is, for code and for type checkers. Used by the adapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from callboard.json_text import EMPTY, Json


def is_object(value: Json) -> TypeGuard[Mapping[str, Json]]:
    """Whether it is a JSON object."""
    return isinstance(value, Mapping)


def is_array(value: Json) -> TypeGuard[Sequence[Json]]:
    """Whether it is a JSON array."""
    return isinstance(value, (list, tuple))


def object_in(holder: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    """The object under a key; an empty one where it is missing, null or something else."""
    value = holder.get(key)
    return value if is_object(value) else EMPTY


def array_in(holder: Mapping[str, Json], key: str) -> Sequence[Json]:
    """The array under a key; an empty one where it is missing, null or something else."""
    value = holder.get(key)
    return value if is_array(value) else ()
