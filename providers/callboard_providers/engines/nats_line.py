"""The connection to JetStream: publishing with what is expected, and reading subjects in batches.

Writes are tried again through elections and short losses of the connection: each has an id, so
that a server drops a second copy, and compare-and-set tells its own write from another's.
"""

# nats-py leaves parts of its types open; they end here.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError, ServiceUnavailableError

from callboard.errors import CommitFailed, ConfigurationError, MailboxFull
from callboard.messages import new_id

TRY_FOR_S = 30.0  # how long a write is tried again; elections take 5 to 7 s
WRONG_SEQUENCE = frozenset({10071, 10164})
FULL = 10077
STREAM_EXISTS = 10058  # with other settings, which stay
BATCH = 500
_LOST = (
    nats.errors.TimeoutError,
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.NoRespondersError,
    NoStreamResponseError,
    ServiceUnavailableError,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """One message of a stream. `data` is None where it was deleted or has expired."""

    subject: str
    seq: int
    data: Any
    headers: Mapping[str, str]

    @property
    def document(self) -> dict[str, Any]:
        """What it says; nothing where it was deleted or has expired."""
        return self.data or {}


class WrongSequence(Exception):
    """Somebody else wrote to the subject."""


def token(text: str) -> str:
    """Any text as one token of a subject."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class JetStream:
    """JetStream as an engine uses it. Belongs to one asyncio loop."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.context: JetStreamContext = client.jetstream(timeout=5.0)

    @property
    def losses(self) -> int:
        """How often the connection was lost so far, and what was published meanwhile not heard."""
        return int(self.client.stats["reconnects"])

    async def listen(self, subject: str, hear: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Have what is published there told, until `unsubscribe`."""
        return await self.client.subscribe(subject, cb=hear)

    async def api(self, name: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A call of the JetStream API, tried again through elections and losses of the connection.

        Raises:
            APIError: the server refused it. CommitFailed: nobody answered.
        """
        until = time.monotonic() + TRY_FOR_S
        while True:
            try:
                return await self._api_once(name, request)
            except APIError as error:
                if error.code != 503:
                    raise
                await _again(error, until)
            except _LOST as error:
                await _again(error, until)

    async def _api_once(self, name: str, request: Mapping[str, Any] | None) -> dict[str, Any]:
        body = json.dumps(request or {}).encode()
        answer = await self.client.request(f"$JS.API.{name}", body, timeout=5.0)
        found: dict[str, Any] = json.loads(answer.data)
        if "error" in found:
            raise APIError.from_error(found["error"])
        return found

    async def answers(self) -> bool:
        """Whether JetStream is there, with a leader."""
        try:
            await self._api_once("INFO", None)
        except (APIError, *_LOST):
            return False
        return True

    async def ensure(self, config: Mapping[str, Any]) -> None:
        """Make a stream, unless it is there.

        Raises:
            ConfigurationError: the server cannot.
        """
        try:
            await self.api(f"STREAM.CREATE.{config['name']}", config)
        except APIError as error:
            if error.err_code != STREAM_EXISTS:
                raise ConfigurationError(
                    f"the stream {config['name']} could not be made: {error.description}"
                ) from error

    async def delete(self, stream: str, seq: int) -> bool:
        """Delete a message. False if it is not there."""
        try:
            await self.api(f"STREAM.MSG.DELETE.{stream}", {"seq": seq, "no_erase": True})
        except APIError:
            return False
        return True

    async def purge(self, stream: str, subject: str) -> None:
        await self.api(f"STREAM.PURGE.{stream}", {"filter": subject})

    async def consumers(self, stream: str, *, prefix: str) -> list[str]:
        """The names of consumers that begin so."""
        found: list[str] = []
        while True:
            answer = await self.api(f"CONSUMER.NAMES.{stream}", {"offset": len(found)})
            names: list[str] = answer.get("consumers") or []
            found += names
            if not names or len(found) >= answer.get("total", 0):
                return [name for name in found if name.startswith(prefix)]

    # -- writing ---------------------------------------------------------------------------------

    async def publish(
        self,
        subject: str,
        value: Any,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> int:
        """Have a value stored; the number it got. With `id` a copy is dropped.

        Raises:
            MailboxFull: the subject has no room. CommitFailed: it could not be stored.
        """
        sent: dict[str, str] = {**(headers or {}), "Nats-Msg-Id": id or new_id("w")}
        data = b"" if value is None else json.dumps(value, separators=(",", ":")).encode()
        if len(data) > self.client.max_payload:
            raise CommitFailed(
                f"{subject}: {len(data):,} bytes at once, and the server takes"
                f" {self.client.max_payload:,}: put large data into blobs, or raise max_payload"
            )
        until = time.monotonic() + TRY_FOR_S
        while True:
            try:
                return (await self.context.publish(subject, data, headers=sent)).seq
            except APIError as error:
                if error.err_code == FULL:
                    raise MailboxFull(f"{subject} is full") from None
                if error.err_code in WRONG_SEQUENCE:
                    raise WrongSequence(subject) from None
                if error.code != 503:
                    raise CommitFailed(f"JetStream refused {subject}: {error}") from error
                await _again(error, until)  # an election
            except _LOST as error:
                await _again(error, until)

    async def swap(
        self,
        subject: str,
        value: Any,
        expected: int,
        *,
        ttl_s: float | None = None,
        rollup: bool = False,
    ) -> int:
        """Compare and set: store a value if the last message of its subject has this number.

        Raises:
            WrongSequence: it has another one. CommitFailed: it could not be stored.
        """
        mark = new_id("u")
        headers = {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        if ttl_s is not None:
            headers["Nats-TTL"] = str(max(1, round(ttl_s)))
        if rollup:
            headers["Nats-Rollup"] = "sub"
        written = None if value is None else {**value, "u": mark}
        try:
            return await self.publish(subject, written, id=mark, headers=headers)
        except WrongSequence:
            last = await self.last(subject)
            if last is not None and last.data is not None and last.data.get("u") == mark:
                return last.seq  # it was ours, and its acknowledgement was lost
            raise

    # -- reading ---------------------------------------------------------------------------------

    async def last(self, subject: str) -> Stored | None:
        """The last message of a subject, markers of expired ones among them."""
        found = await self.lasts([subject])
        return found[0] if found else None

    async def lasts(self, subjects: Sequence[str]) -> list[Stored]:
        """The last message of each subject that matches one of these."""
        return await self._direct({"multi_last": list(subjects), "batch": 100_000}, subjects[0])

    async def all(self, subject: str, *, from_seq: int = 1) -> list[Stored]:
        """All messages of a subject, oldest first."""
        found: list[Stored] = []
        while True:
            some = await self._direct(
                {"seq": from_seq, "next_by_subj": subject, "batch": BATCH}, subject
            )
            found += some
            if len(some) < BATCH:
                return found
            from_seq = some[-1].seq + 1

    async def _direct(self, request: Mapping[str, Any], subject: str) -> list[Stored]:
        """A direct get of several messages, which any replica answers.

        Raises:
            CommitFailed: nobody answered.
        """
        until = time.monotonic() + TRY_FOR_S
        while True:
            try:
                return await self._direct_once(request, STREAM_OF[subject.split(".")[1]])
            except _LOST as error:
                await _again(error, until)

    async def _direct_once(self, request: Mapping[str, Any], stream: str) -> list[Stored]:
        inbox = self.client.new_inbox()
        answers = await self.client.subscribe(inbox)
        found: list[Stored] = []
        try:
            await self.client.publish(
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=inbox
            )
            while True:
                message = await answers.next_msg(timeout=5.0)
                status = (message.headers or {}).get("Status")
                if status in ("204", "404"):
                    return found
                if status is not None:
                    raise ServiceUnavailableError(description=str(message.headers))
                found.append(_stored(message))
        finally:
            await answers.unsubscribe()

    async def counts(self, stream: str, subjects: str) -> dict[str, int]:
        """How many messages each subject has."""
        try:
            info = await self.context.stream_info(stream, subjects_filter=subjects)
        except NotFoundError:
            return {}
        return dict(info.state.subjects or {})


def _stored(message: Msg) -> Stored:
    headers = dict(message.headers or {})
    data = json.loads(message.data) if message.data else None
    return Stored(headers["Nats-Subject"], int(headers["Nats-Sequence"]), data, headers)


async def _again(error: Exception, until: float) -> None:
    if time.monotonic() > until:
        raise CommitFailed(f"NATS does not answer: {error!r}") from error
    await asyncio.sleep(0.2)


STREAM_OF = {
    "in": "CB_IN",
    "ctl": "CB_CTL",
    "j": "CB_J",
    "lease": "CB_LEASE",
    "node": "CB_LEASE",
    "ans": "CB_ANS",
    "dead": "CB_DEAD",
    "topic": "CB_TOPIC",
    "actor": "CB_ACTOR",
    "timer": "CB_TIMER",
    "try": "CB_TRY",
    "meta": "CB_META",
}
HOUR, DAY = 3_600 * 10**9, 86_400 * 10**9
_LATEST = {"max_msgs_per_subject": 1}


def streams(bound: int, replicas: int) -> list[dict[str, Any]]:
    """The streams of an engine, as JetStream takes them."""
    queue = {"retention": "workqueue", "discard": "new", "duplicate_window": HOUR}
    special: dict[str, dict[str, Any]] = {
        "in": {**queue, "max_msgs_per_subject": bound, "discard_new_per_subject": True},
        "ctl": queue,
        "lease": {
            **_LATEST,
            "allow_msg_ttl": True,
            "subject_delete_marker_ttl": HOUR,
            "subjects": ["cb.lease.>", "cb.node.>"],
        },
        "ans": {**_LATEST, "max_age": DAY},
        "dead": {"duplicate_window": HOUR},
        "topic": _LATEST,
        "actor": _LATEST,
        "timer": _LATEST,
        "try": {**_LATEST, "max_age": 7 * DAY},
        "meta": _LATEST,
    }
    made: list[dict[str, Any]] = []
    for name, stream in STREAM_OF.items():
        if name == "node":
            continue
        base = {
            "name": stream,
            "subjects": [f"cb.{name}.>"],
            "storage": "file",
            "retention": "limits",
            "num_replicas": replicas,
            "allow_direct": True,
            "allow_rollup_hdrs": True,
        }
        made.append({**base, **special.get(name, {})})
    return made
