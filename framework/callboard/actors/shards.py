"""How addresses are shared out among workers: by a stable hash, and by rendezvous."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from callboard.actors.address import Address

SHARDS = 16  # of each kind


@lru_cache(maxsize=10_000)  # each letter looks it up some three times, at 3 us
def shard_of(address: Address, shards: int = SHARDS) -> int:
    """The shard of an address among those of its kind: the same in every process and version."""
    return _hash(str(address)) % shards


def owner_of(kind: str, shard: int, workers: Iterable[str]) -> str | None:
    """The worker that should own a shard. When one comes or goes, only its share moves."""
    return max(workers, key=lambda name: _hash(f"{name}\n{kind}\n{shard}"), default=None)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
