"""Journals on JetStream: each commit is one message of its address, appended by compare-and-set.

What a commit sends and answers is published after it, under fixed ids; it stands in the message,
so whoever takes the address over publishes it again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Letter, Standing
from callboard.errors import JournalConflict, JournalDamaged, MailboxFull
from callboard.journaling.record_codec import decode
from callboard.journaling.records import Record
from callboard_providers.engines.nats_line import JetStream, Stored, WrongSequence, token
from callboard_providers.engines.nats_subjects import (
    letter_subject,
    packed,
    packed_commit,
    place,
    unpacked,
)

DONE_KEPT = 32  # ids of each address


@dataclass(frozen=True, slots=True)
class Head:
    """The end of one journal: the number of its last message, and what that says.

    `done` are the letters that were done of late. They stand in each commit: acknowledgements are
    lost with a connection, and what a server knew of ids with the server.
    """

    seq: int = 0
    length: int = 0  # records
    standing: Standing = Standing.IDLE
    done: tuple[str, ...] = ()


class Overtaken(JournalConflict):
    """Another worker wrote to a journal: one that owned its address before, or owns it now."""


@dataclass(slots=True)
class _Turn:
    """Whose commit of an address is made now, and how many more there are."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    waiting: int = 0


class Journals:
    """All journals, as one process sees them."""

    def __init__(self, stream: JetStream, *, bound: int) -> None:
        self._stream = stream
        self._bound = bound
        self._heads: dict[Address, Head] = {}
        self._turns: dict[Address, _Turn] = {}

    def forget(self, address: Address) -> None:
        self._heads.pop(address, None)

    def learn(self, address: Address, last: Stored) -> Head:
        """Take note of a last message that was read, unless a later one is known."""
        known = self._heads.get(address)
        if known is not None and known.seq >= last.seq:
            return known
        document = last.document
        head = Head(
            last.seq,
            document.get("n", 0),
            Standing(document.get("standing", "idle")),
            tuple(document.get("done", ())),
        )
        self._heads[address] = head
        return head

    async def head(self, address: Address, *, fresh: bool) -> Head:
        known = self._heads.get(address)
        if known is not None and not fresh:
            return known
        last = await self._stream.last(f"cb.j.{place(address)}")
        return Head() if last is None else self.learn(address, last)

    async def keep(
        self,
        commit: Commit,
        *,
        writer: str | None,
        beside: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Append a commit, then do what it says to others. `writer` names the worker that owns
        the address; None is somebody who only writes to it. `beside` is what else follows, at the
        same time: what was appended does not hang on its order.

        Raises:
            Overtaken: another worker wrote. JournalConflict: it holds other records than expected.
            MailboxFull, CommitFailed: nothing was kept.
        """
        await self._check_room(commit.sends)
        async with self._turn(commit.address):
            document = await self._append(commit, writer)
        if beside is None:
            await self.follow(document)
        elif not (commit.sends or commit.answers):
            await beside()
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(self.follow, document)
                group.start_soon(beside)

    @asynccontextmanager
    async def _turn(self, address: Address) -> AsyncGenerator[None]:
        """Commits of one address that this process makes at the same time stand in a line."""
        turn = self._turns.setdefault(address, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[address]

    async def _append(self, commit: Commit, writer: str | None) -> dict[str, Any]:
        """Returns the message as it was stored."""
        head = await self.head(commit.address, fresh=writer is None)
        if commit.records and head.length != commit.expected and writer is not None:
            head = await self._later(commit, head, writer)  # somebody may have answered
        while True:
            if commit.records and head.length != commit.expected:
                raise self._conflict(commit, head)
            standing = commit.standing or head.standing
            length = head.length + len(commit.records)
            document = packed_commit(commit, length=length, standing=standing)
            done = (*head.done, *commit.done)[-DONE_KEPT:]
            document |= {"at": time.time(), "by": writer, "done": done}
            try:
                seq = await self._stream.swap(
                    f"cb.j.{place(commit.address)}",
                    document,
                    head.seq,
                    rollup=not length,  # where no record stands the last message is all there is
                )
            except WrongSequence:
                head = await self._later(commit, head, writer)
            else:
                self._heads[commit.address] = Head(seq, length, standing, done)
                return document

    async def _later(self, commit: Commit, since: Head, writer: str | None) -> Head:
        """The end of a journal now.

        Raises:
            Overtaken: another worker wrote to it meanwhile, and not only somebody who answered
                from outside.
        """
        head = await self.head(commit.address, fresh=True)
        if writer is not None:
            subject = f"cb.j.{place(commit.address)}"
            later = await self._stream.all(subject, from_seq=since.seq + 1)
            if any([one.document.get("by") not in (None, writer) for one in later]):
                raise Overtaken(f"another worker has written to {commit.address} meanwhile")
        return head

    def _conflict(self, commit: Commit, head: Head) -> JournalConflict:
        return JournalConflict(
            f"the journal of {commit.address} holds {head.length} records and not"
            f" {commit.expected}, or somebody else wrote to it: another process has taken this"
            " address over"
        )

    async def _check_room(self, sends: Sequence[Letter]) -> None:
        """As far as can be seen before; what fills up meanwhile is sent once there is room."""
        for subject in {letter_subject(one) for one in sends}:
            if not subject.startswith("cb.in."):
                continue
            beside = sum([letter_subject(one) == subject for one in sends])
            waiting = (await self._stream.counts("CB_IN", subject)).get(subject, 0)
            if waiting + beside > self._bound:
                raise MailboxFull(f"{subject} is full: {waiting} letters")

    async def follow(self, document: dict[str, Any]) -> None:
        """Publish what a commit sends and answers; doing it again changes nothing."""
        for letter in document["sends"]:
            await self._send_in_the_end(unpacked(letter))
        for letter_id, body, final in document["answers"]:
            await self._stream.publish(f"cb.ans.{token(letter_id)}", {"body": body, "final": final})

    async def _send_in_the_end(self, letter: Letter) -> None:
        """The commit stands, so the letter has to go."""
        while True:
            try:
                return await self.send(letter)
            except MailboxFull:
                await anyio.sleep(0.2)

    async def send(self, letter: Letter) -> None:
        """Put a letter into its mailbox.

        Raises:
            MailboxFull: it has no room.
        """
        await self._stream.publish(letter_subject(letter), packed(letter), id=letter.id)

    async def records(self, address: Address, start: int) -> list[Record]:
        """The records of an address.

        Raises:
            JournalDamaged: one of them is missing, or cannot be read.
        """
        found: list[Record] = []
        for stored in await self._stream.all(f"cb.j.{place(address)}"):
            document = stored.document
            for text in document.get("records", ()):
                found.append(_decoded(address, len(found), text))
            if document.get("n", len(found)) != len(found):
                raise JournalDamaged(f"record {len(found)} of {address} is missing")
        return found[start:]


def _decoded(address: Address, n: int, text: str) -> Record:
    try:
        return decode(text.encode("utf-8", "surrogatepass"))
    except JournalDamaged as error:
        raise JournalDamaged(f"record {n} of {address}: {error}") from error
