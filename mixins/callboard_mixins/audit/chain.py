"""The chain of an audit: each entry is bound to the entry above it in the file, and to the one
before it of the same agent. Pure; trails write it, `verifying.py` checks it.

One entry is one line of canonical JSON. `hash` is the SHA-256 of the entry without `hash` and
`signature`; `above` and `previous` are such hashes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from callboard.errors import ConfigurationError
from callboard.json_text import Json, NotJson, canonical, parse, sendable

VERSION = 1
GENESIS = "0" * 64  # what stands above the first entry
_NEEDED = frozenset({"v", "entry", "above", "agent", "n", "previous", "kind", "facts", "hash"})
_NO_HASH = '"hash":"",'
TRAIL = "audit"  # the agent in entries that a trail writes about itself


class Signs(Protocol):
    """Whoever has a private key."""

    def sign(self, data: bytes) -> str: ...


class Checks(Protocol):
    """Whoever has the public key."""

    def fits(self, signature: str, data: bytes) -> bool: ...


@dataclass(frozen=True, slots=True)
class Link:
    """An entry as the next one refers to it: the number it has, and its hash."""

    number: int
    hash: str


NOTHING = Link(0, GENESIS)


def entry_text(
    body: Mapping[str, Json], *, agent: str, above: Link, previous: Link, key: Signs | None
) -> tuple[str, str]:
    """The line of the entry that follows these, and its hash. `facts` is all that may be nested.

    Encoded once, with the hash put in where it belongs: encoding is most of what an entry takes.
    """
    entry = {
        **body,
        "v": VERSION,
        "entry": above.number + 1,
        "above": above.hash,
        "agent": agent,
        "n": previous.number + 1,
        "previous": previous.hash,
        "hash": "",
    }
    written = canonical(entry)
    text = sendable(written)
    if text is not written:  # what took the place of half a character may be sorted otherwise
        text = canonical(parse(text))
    before, behind = text.rsplit(_NO_HASH, 1)
    hash = hash_of(before + behind)
    sealed = f'{before}"hash":"{hash}",{behind}'
    if key is not None:
        sealed = canonical({**parse(sealed), "signature": key.sign(line_data(hash))})
    return sealed, hash


def hash_of(text: str) -> str:
    """The SHA-256 of an entry's text without its seal."""
    return hashlib.sha256(text.encode()).hexdigest()


def line_data(hash: str) -> bytes:
    """What is signed of an entry."""
    return f"callboard audit entry {hash}".encode()


def head_data(head: Link) -> bytes:
    """What is signed of a head. Differs from an entry's, so that no entry passes for a head."""
    return f"callboard audit head {head.number} {head.hash}".encode()


def head_text(head: Link, key: Signs | None) -> str:
    """A head as it stands beside a trail: how many entries there are, and the last one's hash."""
    signature = "" if key is None else f',"signature":{canonical(key.sign(head_data(head)))}'
    return f'{{"entry":{head.number},"hash":"{head.hash}"{signature}}}'


def read_head(text: str) -> tuple[Link, str | None]:
    """The head and its signature.

    Raises:
        ConfigurationError: it is no head.
    """
    try:
        facts: dict[str, Any] = json.loads(text)
        return Link(int(facts["entry"]), str(facts["hash"])), facts.get("signature")
    except (ValueError, KeyError, TypeError):
        raise ConfigurationError(f"{text!r:.100} is no head of an audit") from None


def read_entry(text: str) -> dict[str, Any] | None:
    """The entry of a line, or None where the line is no whole entry."""
    try:
        entry = parse(text)
    except NotJson:
        return None
    return cast("dict[str, Any]", entry) if _is_whole(entry, text) else None


def _is_whole(entry: object, text: str) -> bool:
    return isinstance(entry, dict) and canonical(entry) == text and entry.keys() >= _NEEDED


def twin_of(data: bytes, key: bytes) -> str:
    """The keyed digest of a record as the journal holds it."""
    return hmac.digest(key, data, "sha256").hex()
