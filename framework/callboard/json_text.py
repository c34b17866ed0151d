"""JSON at the edge: strict parsing, deep freezing, canonical text, and text that UTF-8 can hold.

Used by everything that takes text from a model, a tool or a file.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn, cast

MAX_DEPTH = 200  # of parsed values: deeper ones would end in a RecursionError somewhere later
Json = Any  # a JSON value: None, bool, int, float, str, list or tuple, dict


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("these arguments are frozen: build a changed copy, {**arguments, ...}")


class FrozenDict(dict[str, Any]):
    """A dict that refuses to change. Equal to a plain dict with the same items."""

    __slots__ = ()

    __setitem__ = __delitem__ = update = setdefault = _refuse
    pop = popitem = clear = __ior__ = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


EMPTY = FrozenDict()


def freeze(value: Json) -> Json:
    """A deeply frozen copy: objects become FrozenDict, arrays become tuples."""
    if type(value) is FrozenDict:
        return value
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Json], value).items()
        return FrozenDict({key: freeze(item) for key, item in pairs})
    if isinstance(value, (list, tuple)):
        return tuple([freeze(item) for item in cast(Sequence[Json], value)])
    return value


def thaw(value: Json) -> Json:
    """A deep copy of plain dicts and lists, for code that wants to change it."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in cast(Mapping[str, Json], value).items()}
    if isinstance(value, (list, tuple)):
        return [thaw(item) for item in cast(Sequence[Json], value)]
    return value


# One encoder for all: json.dumps with options of its own builds one per call, which costs 2 us.
_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode


def canonical(value: Json) -> str:
    """The one JSON text of a value: sorted keys, no spaces. Raises ValueError on NaN."""
    return _encode(value)


def digest(value: Json, *, key: bytes = b"") -> str:
    """The SHA-256 of the canonical text, in hex; with a key its HMAC, so that a short secret
    inside the value cannot be guessed from it.
    """
    text = canonical(value).encode("utf-8", "surrogatepass")
    if not key:
        return hashlib.sha256(text).hexdigest()
    keyed = _keyed(key).copy()
    keyed.update(text)
    return keyed.hexdigest()


@lru_cache(maxsize=16)
def _keyed(key: bytes) -> hmac.HMAC:
    """An HMAC that has read its key: a copy is twice as fast as one from the start."""
    return hmac.new(key, digestmod="sha256")


class NotJson(ValueError):
    """The text is not one JSON value as RFC 8259 and this package want it."""


def _refuse_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NotJson(f"{text} is too large for a number")
    return number


def _frozen_object(pairs: Iterable[tuple[str, Any]]) -> FrozenDict:
    pairs = pairs if isinstance(pairs, list) else list(pairs)
    found = FrozenDict(pairs)
    if len(found) != len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise NotJson(f"the key {twice!r} stands twice in one object")
    return found


_strict = json.JSONDecoder(
    object_pairs_hook=_frozen_object, parse_constant=_refuse_constant, parse_float=_finite
)
_lenient = json.JSONDecoder(
    object_pairs_hook=_frozen_object,
    parse_constant=_refuse_constant,
    parse_float=_finite,
    strict=False,
)


def parse(text: str, *, control_characters: bool = False) -> Json:
    """Parse exactly one JSON value, with its objects frozen and its arrays as tuples.

    NaN, Infinity, numbers too large for a float, duplicate keys and values nested deeper than
    MAX_DEPTH are refused. Lone surrogates become U+FFFD. `control_characters` tolerates raw
    newlines and tabs inside strings.

    Raises:
        NotJson: with the reason and the place.
    """
    decoder = _lenient if control_characters else _strict
    text = text.strip(" \t\n\r")
    try:
        value, end = decoder.raw_decode(text)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise NotJson("the value is nested too deeply") from None
    except NotJson:
        raise
    except ValueError as error:  # an integer with more digits than Python converts
        raise NotJson(str(error)) from None
    if len(text) > MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
        raise NotJson("the value is nested too deeply")
    return _tupled(value) if "[" in text or "\\u" in text or not text.isascii() else value


def _is_deep(value: Json) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
    return any(isinstance(item, (dict, list)) for item in level)


def _children(value: Json) -> Iterable[Json]:
    if isinstance(value, dict):
        return cast(Mapping[str, Json], value).values()
    return cast(Sequence[Json], value) if isinstance(value, list) else ()


def _tupled(value: Json) -> Json:
    """Arrays as tuples and strings as sendable text, below objects that are frozen already."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, dict):
        pairs = cast(Mapping[str, Json], value).items()
        return _frozen_object((sendable(key), _tupled(item)) for key, item in pairs)
    if isinstance(value, list):
        return tuple([_tupled(item) for item in cast(Sequence[Json], value)])
    return value


def sendable(text: str) -> str:
    """Text that UTF-8 can hold: surrogate halves side by side are joined, lone ones become U+FFFD.

    Costs an `isascii` or one encoding attempt for text that is fine already.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def cut(text: str, size_bytes: int) -> str:
    """The longest beginning of `text` that takes at most `size_bytes` bytes of UTF-8."""
    text = sendable(text)
    encoded = text.encode()
    if len(encoded) <= size_bytes:
        return text
    return encoded[: max(size_bytes, 0)].decode("utf-8", "ignore")
