"""Hides what was found in a text: behind a mask for good, or behind a placeholder."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from callboard.errors import ConfigurationError
from callboard.json_text import FrozenDict, Json
from callboard_mixins.redaction.finding import TOKEN, Finder, Span
from callboard_mixins.redaction.halves import without_halves
from callboard_mixins.redaction.patterns import PERSONAL, SECRETS, Pattern
from callboard_mixins.redaction.vault import Vault

Hide = Callable[[Pattern, str], str]
KEPT = 512  # texts with nothing to hide that are remembered: most are seen several times
LONGEST = 2_000  # characters of one of them
_PLAIN = frozenset({bool, int, float, type(None)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What is hidden, and how.

    `masked` is hidden for good: "[API_KEY hidden]". `kept` is hidden behind placeholders
    ("[EMAIL_1]"), whose values a vault gives to tools. Add patterns of your own to either:
    `Redaction(masked=(*SECRETS, Pattern("ticket", r"TCK-\\d{6}")))`.

    Raises:
        ConfigurationError: nothing is to be hidden, or a name is in both.
    """

    masked: tuple[Pattern, ...] = SECRETS
    kept: tuple[Pattern, ...] = PERSONAL

    def __post_init__(self) -> None:
        both = {one.name for one in self.masked} & {one.name for one in self.kept}
        if both:
            raise ConfigurationError(f"{sorted(both)} cannot be both masked and kept: choose one")
        if not self.masked and not self.kept:
            raise ConfigurationError("Redaction hides nothing: give patterns in masked or kept")


class Redactor:
    """Redacts texts and JSON values. The same value always gives the same text."""

    __slots__ = ("_clean", "_hide", "finder")

    def __init__(self, patterns: Sequence[Pattern], hide: Hide) -> None:
        self.finder = Finder(patterns)
        self._hide = hide
        self._clean: set[str | tuple[str, str]] = set()  # texts, and those that are named by a key

    def text(self, text: str) -> str:
        """The text with everything hidden that is to be; the same object where there is nothing.

        Where a result was cut, what may be a part of something goes too.
        """
        if text in self._clean:
            return text
        found = self.finder.spans(text)
        redacted = without_halves(self.hidden(text, found) if found else text, self.finder)
        if redacted is text and len(text) <= LONGEST:
            self._remember(text)
        return redacted

    def _remember(self, clean: str | tuple[str, str]) -> None:
        if len(self._clean) >= KEPT:
            self._clean.clear()
        self._clean.add(clean)

    def hidden(self, text: str, spans: Sequence[Span]) -> str:
        """The text with these parts hidden."""
        parts: list[str] = []
        at = 0
        for start, end, pattern in spans:
            parts += [text[at:start], self._hide(pattern, text[start:end])]
            at = end
        return "".join([*parts, text[at:]])

    def json(self, value: Json) -> Json:
        """A JSON value with its texts redacted; what has nothing to hide is the same object.

        The value of a key counts as assigned to it, so that {"password": ...} is seen.
        """
        kind = cast("type[object]", type(value))
        if kind is str:
            return self.text(value)
        if kind in _PLAIN:
            return value
        if kind is FrozenDict or isinstance(value, Mapping):
            given = cast(Mapping[str, Json], value)
            if self._is_clean(given):
                return given
            made = {self.text(key): self._assigned(key, item) for key, item in given.items()}
            return FrozenDict(made) if kind is FrozenDict else made
        if isinstance(value, (list, tuple)):
            array = cast(Sequence[Json], value)
            items = [self.json(item) for item in array]
            if all([a is b for a, b in zip(items, array, strict=True)]):
                return array
            return tuple(items) if isinstance(value, tuple) else items
        return value

    def _is_clean(self, given: Mapping[str, Json]) -> bool:
        known = self._clean
        for key, item in given.items():
            if key not in known and self.text(key) is not key:
                return False
            if type(item) not in _PLAIN and self._assigned(key, item) is not item:
                return False
        return True

    def _assigned(self, key: str, item: Json) -> Json:
        if type(item) is not str:
            return self.json(item)
        if (key, item) in self._clean:
            return item
        redacted = self.text(item)
        if redacted is not item:
            return redacted
        head = f"{key}="
        spans = [s for s in self.finder.spans(head + item) if s.start >= len(head)]
        found = [s._replace(start=s.start - len(head), end=s.end - len(head)) for s in spans]
        if found:
            return self.hidden(item, found)
        if len(item) <= LONGEST:
            self._remember((key, item))
        return item


def masking(pattern: Pattern, found: str) -> str:
    """Hide for good."""
    return f"[{pattern.name.upper()} hidden]"


def keyed_masking(key: bytes) -> Hide:
    """Hide for good behind a keyed digest: whoever has the key and the value can compare."""

    def hide(pattern: Pattern, found: str) -> str:
        digest = hmac.digest(key, found.encode("utf-8", "surrogatepass"), "sha256").hex()
        return f"[{pattern.name.upper()} {digest[:16]}]"

    return hide


def vaulted(redaction: Redaction, vault: Vault) -> Hide:
    """Masks for what is masked, placeholders of this vault for what is kept."""
    kept = frozenset([pattern.name for pattern in redaction.kept])

    def hide(pattern: Pattern, found: str) -> str:
        if pattern.name in kept:
            return vault.placeholder(pattern.name, found)
        return masking(pattern, found)

    return hide


class Gone(Exception):
    """There is nothing to put in the place of what stands for something hidden."""


class Restorer:
    """Puts the values back that stand behind placeholders. Knows the names of its patterns."""

    __slots__ = ("_names", "_vault")

    def __init__(self, redaction: Redaction, vault: Vault) -> None:
        self._names = tuple([f"[{p.name.upper()}" for p in (*redaction.masked, *redaction.kept)])
        self._vault = vault

    def text(self, text: str) -> str:
        """The text as people may read it: placeholders without a value stay."""
        return TOKEN.sub(lambda token: self._vault.value(token[0]) or token[0], text)

    def json(self, value: Json) -> Json:
        """A JSON value with all values put back.

        Raises:
            Gone: names what stands there without a value.
        """
        if type(value) is str:
            return TOKEN.sub(self._value, value) if "[" in value else value
        if isinstance(value, Mapping):
            pairs = cast(Mapping[str, Json], value).items()
            return {self.json(key): self.json(item) for key, item in pairs}
        if isinstance(value, (list, tuple)):
            return tuple([self.json(item) for item in cast(Sequence[Json], value)])
        return value

    def _value(self, token: re.Match[str]) -> str:
        found = self._vault.value(token[0])
        if found is not None:
            return found
        if token[0].startswith(self._names):
            raise Gone(token[0])
        return token[0]

    def stands_in(self, value: Any) -> bool:
        """Whether something hidden of ours stands anywhere in the JSON value."""
        if type(value) is str:
            return any([t[0].startswith(self._names) for t in TOKEN.finditer(value)])
        if isinstance(value, Mapping):
            pairs = cast(Mapping[str, Json], value).items()
            return any([self.stands_in(key) or self.stands_in(item) for key, item in pairs])
        if isinstance(value, (list, tuple)):
            return any([self.stands_in(item) for item in cast(Sequence[Json], value)])
        return False
