"""Where an actor is reached: a type and a key."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from callboard.errors import ConfigurationError

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")


def _token(text: str) -> str:
    """Text as one token of `[A-Za-z0-9_-]`; other characters are written as `=XX`."""
    if _TOKEN.fullmatch(text) and "=" not in text:
        return text
    escaped = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    return escaped.replace("%", "=")


@dataclass(frozen=True, slots=True)
class Address:
    """`type/key`, for instance `writer/bob`. Never used as a file path."""

    type: str
    key: str
    _hash: int = field(init=False, repr=False, compare=False)  # each letter looks its mailbox up

    def __post_init__(self) -> None:
        if not self.type or not self.key:
            raise ConfigurationError(f"an address needs a type and a key, got {self!s}")
        object.__setattr__(self, "_hash", hash((self.type, self.key)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Address, (self.type, self.key)  # hashes of text differ between processes

    def __str__(self) -> str:
        return f"{_token(self.type)}/{_token(self.key)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The address that `str(address)` wrote.

        Raises:
            ConfigurationError: if the text is not of the form `type/key`.
        """
        type, slash, key = text.partition("/")
        if not slash or not type or not key or "/" in key:
            raise ConfigurationError(f"{text!r} is not an address; write it as 'type/key'")
        return cls(unquote(type.replace("=", "%")), unquote(key.replace("=", "%")))
