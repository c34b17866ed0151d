"""The engine on NATS JetStream (2.12 or newer): several processes on several machines.

asyncio only, as nats-py is. Production uses official server builds, three of them, with
`sync_interval: always`; see docs/engines.md.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
import nats.errors
import sniffio
from nats.aio.msg import Msg

from callboard.actors.address import Address
from callboard.actors.engine import (
    MAILBOX_BOUND,
    ActorEntry,
    Commit,
    DeadEntry,
    Letter,
    Standing,
    StoredAnswer,
    WorkerEntry,
)
from callboard.actors.shards import SHARDS, shard_of
from callboard.errors import AskTimeout, ConfigurationError
from callboard.journaling.records import Record
from callboard_providers.engines.nats_access import connected, servers_of, shown
from callboard_providers.engines.nats_blobs import NatsBlobs
from callboard_providers.engines.nats_journal import Journals
from callboard_providers.engines.nats_leases import live_nodes
from callboard_providers.engines.nats_line import (
    JetStream,
    Stored,
    WrongSequence,
    streams,
    token,
)
from callboard_providers.engines.nats_subjects import (
    address_of,
    answer_of,
    checked,
    letter_subject,
    packed,
    place,
    shard_place,
    unpacked,
)
from callboard_providers.engines.nats_worker import NatsWorker, WorkerTerm

LEASE_S, CLUSTER_LEASE_S = 10.0, 30.0
COPIES = 3  # of each message, in a cluster
LOOK_S = 2.0  # for an answer that nobody tells
READY_S = 15.0
KNOWN_SENT = 10_000  # letters whose numbers are remembered, so that they can be taken back


class NatsEngine:
    """Letters, journals and answers on JetStream.

    `url` is one server or several, separated by commas; `options` go to `nats.connect` (TLS,
    `user_credentials`, `token`), see `nats_access.connected`. `replicas` is how many servers keep
    each message: without it 3 where the URL names as many, and one of them may be lost, else 1. It
    counts where the streams are made. `lease_s` is how long a process that died or stands still
    owns its addresses: without it 10 s for one server, and 30 s for several, whose elections take
    seconds.

    Raises, when it is entered:
        ConfigurationError: no server answers, it has no JetStream, or trio runs.
    """

    def __init__(
        self,
        url: str,
        *,
        lease_s: float | None = None,
        mailbox_bound: int = MAILBOX_BOUND,
        replicas: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        is_cluster = len(servers_of(url)) >= COPIES
        self.name = shown(url)
        self.lease_s = lease_s or (CLUSTER_LEASE_S if is_cluster else LEASE_S)
        if self.lease_s < 1:
            raise ConfigurationError(f"lease_s={lease_s!r}: JetStream counts whole seconds")
        self._url = url
        self._bound = mailbox_bound
        self._replicas = replicas or (COPIES if is_cluster else 1)
        self._options = options or {}
        self._stream: JetStream | None = None
        self._journals: Journals | None = None
        self._digest_key = b""
        self._sent: OrderedDict[str, tuple[str, int]] = OrderedDict()
        self._workers: list[NatsWorker] = []

    def __repr__(self) -> str:
        return f"NatsEngine({self.name!r})"

    @property
    def stream(self) -> JetStream:
        if self._stream is None:
            raise ConfigurationError(f"{self!r} is not open: use it inside its `async with` block")
        return self._stream

    @property
    def journals(self) -> Journals:
        if self._journals is None:
            raise ConfigurationError(f"{self!r} is not open: use it inside its `async with` block")
        return self._journals

    @property
    def digest_key(self) -> bytes:
        """As `Engine.digest_key`; a stream keeps it."""
        if not self._digest_key:
            raise ConfigurationError(f"{self!r} is not open: use it inside its `async with` block")
        return self._digest_key

    @property
    def blobs(self) -> NatsBlobs:
        """As `Engine.blobs`: an object store of the server."""
        return NatsBlobs(self.stream.context)

    def now(self) -> float:
        """As `Engine.now`."""
        return time.time()

    async def __aenter__(self) -> Self:
        if sniffio.current_async_library() != "asyncio":
            raise ConfigurationError("NatsEngine runs on asyncio only, as nats-py does")
        if self._stream is not None:
            raise ConfigurationError(f"{self!r} is in use: make another engine")
        stream = JetStream(await connected(self._url, self._options))
        try:
            await self._prepare(stream)
        except BaseException:
            await stream.client.close()
            raise
        self._stream = stream
        self._journals = Journals(stream, bound=self._bound)
        return self

    async def _prepare(self, stream: JetStream) -> None:
        """Make the streams that are missing, and read the key."""
        try:
            with anyio.fail_after(READY_S):
                while not await stream.answers():  # noqa: ASYNC110  # nobody tells
                    await anyio.sleep(0.1)
        except TimeoutError:
            raise ConfigurationError(
                f"{self.name} has no JetStream, or no leader of it: start NATS with -js"
            ) from None
        for config in streams(self._bound, self._replicas):
            await stream.ensure(config)
        last = await stream.last("cb.meta.key")
        if last is None:
            with suppress(WrongSequence):  # another process was quicker
                await stream.swap("cb.meta.key", {"key": secrets.token_hex(32)}, 0)
            last = await stream.last("cb.meta.key")
        assert last is not None  # it was written just now
        self._digest_key = bytes.fromhex(last.data["key"])

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stream, self._stream, self._journals = self.stream, None, None
        with anyio.CancelScope(shield=True), suppress(OSError, nats.errors.Error):
            await stream.client.close()  # it may be cut off

    # -- letters ---------------------------------------------------------------------------------

    async def send(self, *letters: Letter) -> None:
        """As `Engine.send`, but letters to several mailboxes are not sent all or none."""
        documents = [packed(letter) for letter in letters]  # all of them are JSON, or none is sent
        for letter, document in zip(letters, documents, strict=True):
            subject = letter_subject(letter)
            seq = await self.stream.publish(subject, document, id=letter.id)
            self._sent[letter.id] = subject, seq
            if len(self._sent) > KNOWN_SENT:
                self._sent.popitem(last=False)

    async def answer(
        self, letter_id: str, *, timeout_s: float, final: bool = False
    ) -> StoredAnswer:
        """As `Engine.answer`."""
        subject = f"cb.ans.{token(letter_id)}"
        told: list[StoredAnswer] = []
        came = anyio.Event()

        async def hear(message: Msg) -> None:
            """What is told stands in a journal, if not yet in the stream of answers."""
            told.append(answer_of(letter_id, json.loads(message.data)))
            came.set()

        listening = await self.stream.listen(subject, hear)
        try:
            with anyio.move_on_after(timeout_s):
                while True:
                    came = anyio.Event()
                    last = await self.stream.last(subject)
                    if last is not None and last.data is not None:
                        told.append(answer_of(letter_id, last.data))
                    for answer in told:
                        if answer.final or not final:
                            return answer
                    with anyio.move_on_after(LOOK_S):  # it may have been told while we were cut off
                        await came.wait()
        finally:
            with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
                await listening.unsubscribe()
        raise AskTimeout(f"there was no answer to {letter_id!r} within {timeout_s:.3g} s")

    async def withdraw(self, letter_id: str) -> bool:
        """As `Engine.withdraw`: only what this process sent of late, and nobody serves now."""
        sent = self._sent.pop(letter_id, None)
        if sent is None or not sent[0].startswith("cb.in."):
            return False
        parts = sent[0].split(".")
        if await self.stream.consumers("CB_IN", prefix=f"{parts[2]}-{parts[3]}-"):
            return False
        return await self.stream.delete("CB_IN", sent[1])

    # -- addresses -------------------------------------------------------------------------------

    async def commit(self, commit: Commit) -> None:
        """As `Engine.commit`."""
        await self.journals.keep(commit, writer=None)

    async def records(self, address: Address, start: int = 0) -> Sequence[Record]:
        """As `Engine.records`."""
        return await self.journals.records(address, start)

    async def arguments(self, address: Address) -> Mapping[str, Any] | None:
        """As `Engine.arguments`."""
        last = await self.stream.last(f"cb.actor.{place(address)}")
        return None if last is None or last.data is None else last.data["arguments"]

    async def spawn(self, address: Address, arguments: Mapping[str, Any]) -> bool:
        """As `Engine.spawn`."""
        document = {"arguments": checked(dict(arguments))}
        try:
            await self.stream.swap(f"cb.actor.{place(address)}", document, 0)
        except WrongSequence:
            return False
        return True

    async def actors(
        self, kind: str | None = None, *, after: Address | None = None, limit: int = 1_000
    ) -> Sequence[ActorEntry]:
        """As `Engine.actors`."""
        of = ">" if kind is None else f"{shard_place((kind, 0)).partition('.')[0]}.>"
        unread: dict[Address, int] = {}
        for name in ("in", "ctl"):
            counts = await self.stream.counts(f"CB_{name.upper()}", f"cb.{name}.{of}")
            for subject, count in counts.items():
                address = address_of(subject)
                unread[address] = unread.get(address, 0) + count
        heads = {address_of(one.subject): one for one in await self.stream.lasts([f"cb.j.{of}"])}
        spawned = [
            address_of(one) for one in await self.stream.counts("CB_ACTOR", f"cb.actor.{of}")
        ]
        start = "" if after is None else str(after)
        known = sorted({*unread, *heads, *spawned}, key=str)
        owners = await self._owners()
        return [
            self._entry(one, heads.get(one), unread.get(one, 0), owners)
            for one in known
            if str(one) > start
        ][:limit]

    async def _owners(self) -> dict[tuple[str, int], str]:
        found: dict[tuple[str, int], str] = {}
        for lease in await self.stream.lasts(["cb.lease.>"]):
            if lease.data is not None:
                _, _, kind, shard = lease.subject.split(".")
                found[Address.parse(f"{kind}/x").type, int(shard)] = lease.data["owner"]
        return found

    def _entry(
        self,
        address: Address,
        head: Stored | None,
        unread: int,
        owners: Mapping[tuple[str, int], str],
    ) -> ActorEntry:
        document = {} if head is None else head.document
        return ActorEntry(
            address,
            Standing(document.get("standing", "idle")),
            document.get("n", 0),
            unread,
            document.get("at", 0.0),
            owners.get((address.type, shard_of(address))),
        )

    def worker(
        self,
        kinds: Sequence[str] = (),
        *,
        on_lost: Callable[[Callable[[Address], bool]], None],
    ) -> WorkerTerm:
        """As `Engine.worker`."""
        return WorkerTerm(NatsWorker(self, kinds, on_lost), self._workers)

    async def workers(self) -> Sequence[WorkerEntry]:
        """As `Engine.workers`."""
        owners = await self._owners()
        return [
            WorkerEntry(
                name,
                {
                    kind: [n for n in range(SHARDS) if owners.get((kind, n)) == name]
                    for kind in sorted(kinds)
                },
            )
            for name, kinds in sorted((await live_nodes(self.stream)).items())
        ]

    # -- topics ----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, address: Address) -> None:
        """As `Engine.subscribe`."""
        document = {"address": str(address)}
        try:
            await self.stream.swap(f"cb.topic.{token(topic)}.{token(str(address))}", document, 0)
        except WrongSequence:
            return  # it is there

    async def unsubscribe(self, topic: str, address: Address) -> None:
        """As `Engine.unsubscribe`."""
        await self.stream.purge("CB_TOPIC", f"cb.topic.{token(topic)}.{token(str(address))}")

    async def subscribers(self, topic: str) -> Sequence[Address]:
        """As `Engine.subscribers`."""
        found = await self.stream.lasts([f"cb.topic.{token(topic)}.*"])
        in_order = sorted(found, key=lambda one: one.seq)
        return [Address.parse(one.data["address"]) for one in in_order if one.data is not None]

    # -- dead letters ----------------------------------------------------------------------------

    async def bury(self, letter: Letter, reason: str, error: str | None = None) -> None:
        """As `Engine.bury`."""
        document = {"letter": packed(letter), "reason": reason, "error": error, "at": time.time()}
        await self.stream.publish(f"cb.dead.{place(letter.to)}", document, id=f"dead:{letter.id}")
        for worker in self._workers:
            await worker.finished(letter.id)

    async def dead(self, *, after: int = 0, limit: int = 100) -> Sequence[DeadEntry]:
        """As `Engine.dead`."""
        found = await self.stream.all("cb.dead.>", from_seq=after + 1)
        return [
            DeadEntry(
                one.seq,
                unpacked(one.data["letter"]),
                one.data["reason"],
                one.data["error"],
                one.data["at"],
            )
            for one in found[:limit]
            if one.data is not None
        ]

    async def revive(self, number: int) -> bool:
        """As `Engine.revive`."""
        found = await self.dead(after=number - 1, limit=1)
        if not found or found[0].number != number:
            return False
        document = packed(found[0].letter)
        document |= {
            "id": f"{document['id']}:revived:{number}",
            "asked": False,
            "deadline": None,
            "due": None,
            "attempts": 0,
        }
        await self.send(unpacked(document))
        return await self.drop(number)

    async def drop(self, number: int) -> bool:
        """As `Engine.drop`."""
        return await self.stream.delete("CB_DEAD", number)
