"""One shard as its owner serves it: consumers of its own, taking over, and timers.

There is one consumer for each shard and token. With one that owners shared, the waiting pull of
one that was stopped would swallow letters.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import nats.errors
from nats.aio.msg import Msg
from nats.js.errors import APIError

from callboard.actors.address import Address
from callboard.actors.engine import Letter, Standing
from callboard.errors import CommitFailed
from callboard_providers.engines.nats_journal import Journals
from callboard_providers.engines.nats_leases import Lease
from callboard_providers.engines.nats_line import JetStream, Stored, token
from callboard_providers.engines.nats_pull import Pull
from callboard_providers.engines.nats_subjects import address_of, place, shard_place, unpacked

PENDING = 5_000  # letters of a shard that are in hand at most
LOOK_S = 30.0  # for timers
UNACKED = 7 * 86_400 * 10**9  # a letter waits as long as its agent is parked
LANES = (("in", "CB_IN"), ("ctl", "CB_CTL"))


@dataclass(frozen=True, slots=True)
class Given:
    """A letter in hand, and how the server is told that it is done: False if it was not told."""

    letter: Letter
    acknowledge: Callable[[], Awaitable[bool]]


class Owner(Protocol):
    """The worker as its shares see it."""

    async def given(self, one: Given) -> None: ...
    def goes_on(self, address: Address) -> None: ...
    def knows_done(self, letter_ids: Sequence[str]) -> None: ...


class Home(Protocol):
    @property
    def stream(self) -> JetStream: ...
    @property
    def journals(self) -> Journals: ...


class Share:
    """Serves one shard until it is lost or given back."""

    def __init__(self, owner: Owner, home: Home, lease: Lease) -> None:
        self._owner = owner
        self._stream = home.stream
        self._journals = home.journals
        self._lease = lease
        self._place = shard_place(lease.shard)
        self._scope = anyio.CancelScope()
        self._attempts: dict[str, int] = {}
        self._suspected: set[Address] = set()
        self._backlog_end = 0  # of the mailboxes, when it was taken over from one that died

    @property
    def _consumer(self) -> str:
        return f"{self._place.replace('.', '-')}-{self._lease.token}"

    async def serve(self) -> None:
        """Take over, then hand out what comes, until `end`."""
        with self._scope:
            await self._take_over()
            timers = await self._stream.listen(f"cb.timer.{self._place}.>", self._timer_came)
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._look_for_timers)
                    for name, stream in LANES:
                        group.start_soon(self._pull, name, stream)
            finally:
                with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
                    await timers.unsubscribe()

    async def end(self) -> None:
        self._scope.cancel()

    # -- taking over -----------------------------------------------------------------------------

    async def _take_over(self) -> None:
        for _, stream in LANES:
            await self._drop_older_consumers(stream)
        for stored in await self._stream.lasts([f"cb.try.{self._place}.>"]):
            if stored.data is not None:
                self._attempts[stored.subject.rpartition(".")[2]] = stored.data["attempts"]
        if self._lease.is_inherited:
            info = await self._stream.api("STREAM.INFO.CB_IN")
            self._backlog_end = info["state"]["last_seq"]
        for stored in await self._stream.lasts([f"cb.j.{self._place}.>"]):
            await self._adopt(stored, is_inherited=self._lease.is_inherited)

    async def take_over(self, address: Address) -> None:
        """One address of the shard, once more."""
        for stored in await self._stream.lasts([f"cb.j.{place(address)}"]):
            await self._adopt(stored, is_inherited=True)

    async def _adopt(self, stored: Stored, *, is_inherited: bool) -> None:
        """Go on where a journal ends, and do what its writer may have left undone."""
        address = address_of(stored.subject)
        head = self._journals.learn(address, stored)
        self._owner.knows_done(head.done)
        if is_inherited and stored.document:
            await self._journals.follow(stored.document)
        if head.standing is Standing.RUNNING:
            self._owner.goes_on(address)

    async def _drop_older_consumers(self, stream: str) -> None:
        prefix = f"{self._place.replace('.', '-')}-"
        for name in await self._stream.consumers(stream, prefix=prefix):
            if int(name.rpartition("-")[2]) < self._lease.token:
                with suppress(APIError):
                    await self._stream.api(f"CONSUMER.DELETE.{stream}.{name}")

    async def _make_consumer(self, name: str, stream: str) -> None:
        subject = f"cb.{name}.{self._place}.*"
        config = {
            "name": self._consumer,
            "durable_name": self._consumer,
            "ack_policy": "explicit",
            "filter_subject": subject,
            "max_ack_pending": PENDING,
            "ack_wait": UNACKED,
            "max_deliver": -1,
        }
        request = {"stream_name": stream, "action": "create", "config": config}
        while True:
            try:
                await self._stream.api(
                    f"CONSUMER.CREATE.{stream}.{self._consumer}.{subject}", request
                )
                return
            except (APIError, CommitFailed):
                await self._drop_older_consumers(stream)  # work queues forbid two that overlap
                await anyio.sleep(0.2)

    # -- letters ---------------------------------------------------------------------------------

    async def _pull(self, name: str, stream: str) -> None:
        await self._make_consumer(name, stream)
        await Pull(self._stream, stream, self._consumer, self._came).run()

    async def _look_for_timers(self) -> None:
        """Also those that were not told: while the connection was lost, for instance."""
        while True:
            for stored in await self._stream.lasts([f"cb.timer.{self._place}.>"]):
                if stored.data is not None:
                    await self._timer(stored.seq, stored.data)
            begun, lost = anyio.current_time(), self._stream.losses
            until = begun + LOOK_S
            while self._stream.losses == lost and anyio.current_time() < until:  # noqa: ASYNC110
                await anyio.sleep(1.0)

    async def _came(self, message: Msg) -> None:
        if self._scope.cancel_called:
            return  # the next owner gets it
        document: dict[str, Any] = json.loads(message.data)
        seq = message.metadata.sequence.stream
        address = Address.parse(document["to"])
        suspect = False
        if seq <= self._backlog_end and not document["control"]:
            suspect = address not in self._suspected
            self._suspected.add(address)
        letter = unpacked(document, attempts=self._tried(document["id"]), suspect=suspect)

        async def acknowledge() -> bool:
            try:
                await message.ack_sync(timeout=5.0)
            except nats.errors.MsgAlreadyAckdError:
                return True
            except nats.errors.Error:
                return False
            return True

        await self._owner.given(Given(letter, acknowledge))

    def _tried(self, letter_id: str) -> int:
        return self._attempts.get(token(letter_id), 0)

    async def _timer_came(self, message: Msg) -> None:
        stored = await self._stream.last(message.subject)
        if stored is not None and stored.data is not None:
            await self._timer(stored.seq, stored.data)

    async def _timer(self, seq: int, document: dict[str, Any]) -> None:
        async def acknowledge() -> bool:
            try:
                await self._stream.delete("CB_TIMER", seq)
            except CommitFailed:
                return False
            return True

        await self._owner.given(Given(unpacked(document), acknowledge))
