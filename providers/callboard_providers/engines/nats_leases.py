"""Who owns which shard on JetStream: leases that expire at the server, and who is alive."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from callboard.actors.address import Address
from callboard.actors.shards import SHARDS, owner_of
from callboard.errors import CommitFailed
from callboard_providers.engines.nats_line import JetStream, WrongSequence
from callboard_providers.engines.nats_subjects import Shard, shard_place


async def live_nodes(stream: JetStream) -> dict[str, frozenset[str]]:
    """The workers that live: names, and the kinds they serve."""
    return {
        one.subject.rpartition(".")[2]: frozenset[str](one.data["kinds"])
        for one in await stream.lasts(["cb.node.>"])
        if one.data is not None
    }


@dataclass(slots=True)
class Lease:
    """One shard that this worker owns. `token` rises with each owner; `until` is monotonic."""

    shard: Shard
    token: int
    seq: int
    until: float
    is_inherited: bool  # its last owner died and gave nothing back

    @property
    def holds(self) -> bool:
        return time.monotonic() < self.until


class Leases:
    """The leases of one worker."""

    def __init__(self, stream: JetStream, name: str, *, lease_s: float) -> None:
        self._stream = stream
        self._name = name
        self._lease_s = lease_s
        self.held: dict[Shard, Lease] = {}

    async def renew(self) -> list[Shard]:
        """Renew all. Returns those that are lost: others own them now, or nobody."""
        lost: list[Shard] = []
        for shard, lease in tuple(self.held.items()):
            until = time.monotonic() + self._lease_s
            try:
                lease.seq = await self._stream.swap(
                    f"cb.lease.{shard_place(shard)}",
                    {"owner": self._name},
                    lease.seq,
                    ttl_s=self._lease_s,
                )
                lease.until = until
            except WrongSequence:
                lost.append(shard)
                del self.held[shard]
        return lost

    async def live(self, kinds: Sequence[str]) -> dict[str, frozenset[str]]:
        """Show that this worker lives, and see who else does: names, and the kinds they serve."""
        await self._stream.publish(
            f"cb.node.{self._name}",
            {"kinds": list(kinds)},
            headers={"Nats-TTL": str(max(1, round(self._lease_s)))},
        )
        nodes = await live_nodes(self._stream)
        nodes[self._name] = frozenset(kinds)
        return nodes

    async def take(self, kinds: Sequence[str], nodes: dict[str, frozenset[str]]) -> list[Lease]:
        """Take what is free of this worker's share."""
        taken: list[Lease] = []
        for kind in kinds:
            subject = f"cb.lease.{shard_place((kind, 0)).partition('.')[0]}.*"
            last = {
                int(one.subject.rpartition(".")[2]): one
                for one in await self._stream.lasts([subject])
            }
            for number in range(SHARDS):
                shard, found = (kind, number), last.get(number)
                if shard in self.held or not self.is_wanted(shard, nodes):
                    continue
                if found is not None and found.data is not None:
                    continue  # it is owned, or its lease has yet to run out
                expected = 0 if found is None else found.seq
                inherited = found is not None and "Nats-Marker-Reason" in found.headers
                lease = await self._taken(shard, expected, inherited=inherited)
                if lease is not None:
                    taken.append(lease)
        return taken

    async def _taken(self, shard: Shard, expected: int, *, inherited: bool) -> Lease | None:
        until = time.monotonic() + self._lease_s
        try:
            seq = await self._stream.swap(
                f"cb.lease.{shard_place(shard)}",
                {"owner": self._name},
                expected,
                ttl_s=self._lease_s,
            )
        except WrongSequence:
            return None  # another one was quicker
        lease = self.held[shard] = Lease(shard, seq, seq, until, inherited)
        return lease

    def is_wanted(self, shard: Shard, nodes: dict[str, frozenset[str]]) -> bool:
        """Whether this worker should own a shard."""
        candidates = [name for name, kinds in nodes.items() if shard[0] in kinds]
        return owner_of(*shard, candidates) == self._name

    async def give_back(self, shards: Collection[Shard]) -> None:
        """Let others take these at once."""
        for shard in shards:
            lease = self.held.pop(shard, None)
            if lease is not None:
                with suppress(WrongSequence, CommitFailed):
                    await self._stream.swap(f"cb.lease.{shard_place(shard)}", None, lease.seq)

    async def leave(self) -> None:
        """Give all back, and be forgotten."""
        await self.give_back(tuple(self.held))
        with suppress(CommitFailed):
            await self._stream.purge("CB_LEASE", f"cb.node.{self._name}")

    def owns(self, address: Address, shard: Shard) -> bool:
        lease = self.held.get(shard)
        return lease is not None and lease.holds
