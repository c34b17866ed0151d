"""Who owns which shard on JetStream: leases that expire at the server, and who is alive."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
            owners = {n: str(one.data["owner"]) for n, one in last.items() if one.data is not None}
            for number in self._free_for_me(kind, owners, nodes):
                found = last.get(number)
                expected = 0 if found is None else found.seq
                inherited = found is not None and "Nats-Marker-Reason" in found.headers
                lease = await self._taken((kind, number), expected, inherited=inherited)
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

    def _free_for_me(
        self, kind: str, owners: Mapping[int, str], nodes: Mapping[str, frozenset[str]]
    ) -> list[int]:
        """Of the shards that nobody owns those that should be this worker's: of the workers with
        room, the one that rendezvous hashing prefers. All workers come to the same result.
        """
        counts = Counter(owners.values())
        room = [name for name, kinds in nodes.items() if kind in kinds]
        bound, mine = _bound(len(room)), list[int]()
        for number in range(SHARDS):
            if number in owners or (kind, number) in self.held:
                continue
            owner = owner_of(kind, number, [one for one in room if counts[one] < bound])
            if owner is not None:
                counts[owner] += 1
            if owner == self._name:
                mine.append(number)
        return mine

    def surplus(
        self, nodes: Mapping[str, frozenset[str]], is_busy: Callable[[Shard], bool]
    ) -> list[Shard]:
        """What others should have, as this worker owns more than its share: what is at rest now."""
        found: list[Shard] = []
        for kind in {kind for kind, _ in self.held}:
            mine = sorted([shard for shard in self.held if shard[0] == kind])
            sharers = sum([kind in kinds for kinds in nodes.values()])
            surplus = max(0, len(mine) - _bound(sharers))
            found += [shard for shard in reversed(mine) if not is_busy(shard)][:surplus]
        return found

    async def give_back(self, shards: Collection[Shard]) -> None:
        """Let others take these at once."""
        for shard in shards:
            lease = self.held.pop(shard, None)
            if lease is not None:
                with suppress(WrongSequence, CommitFailed):
                    await self._stream.swap(f"cb.lease.{shard_place(shard)}", None, lease.seq)

    async def leave(self, *, keeping: Collection[Shard] = ()) -> None:
        """Give all back, and be forgotten. Those that are kept run out: who takes them then does
        what this worker has left undone.
        """
        await self.give_back([shard for shard in self.held if shard not in keeping])
        self.held.clear()
        with suppress(CommitFailed):
            await self._stream.purge("CB_LEASE", f"cb.node.{self._name}")

    def owns(self, address: Address, shard: Shard) -> bool:
        lease = self.held.get(shard)
        return lease is not None and lease.holds


def _bound(workers: int) -> int:
    """How many shards of a kind one of so many workers owns at most."""
    return -(-SHARDS // max(1, workers))
