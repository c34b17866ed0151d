"""The mailbox under every policy, with several senders that wait: nothing lost, twice, or early."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.actors.envelope import Envelope
from callboard.actors.mailbox import Mailbox, WhenFull
from callboard.errors import ActorStopped, MailboxFull
from callboard.testing.virtual_time import virtual_backend
from tests.framework.actors.kit import letter

ACTS = st.lists(
    st.sampled_from(["send", "send", "send", "offer", "control", "take", "get", "give up"]),
    max_size=40,
)


class Books:
    """One mailbox, what was done with it, and what became of each letter."""

    def __init__(self, tasks: TaskGroup, *, bound: int, when_full: WhenFull) -> None:
        self.mailbox = Mailbox(bound=bound, when_full=when_full)
        self.policy, self.bound = when_full, bound
        self.sent: list[int] = []  # in the order of sending, whatever became of them
        self.accepted: set[int] = set()
        self.refused: set[int] = set()
        self.given_up: set[int] = set()
        self.dropped: list[int] = []
        self.read: list[int] = []
        self.control: list[int] = []  # unread
        self.number = 0
        self._tasks = tasks
        self._senders: dict[int, anyio.CancelScope] = {}  # those that wait
        self._reader_waits = False
        self._handed = 0  # to the reader, who has not seen it yet

    async def do(self, act: str) -> None:
        match act:
            case "send":
                self._tasks.start_soon(self._send, self._next())
            case "offer":  # as the bus does, and whoever was handed it has not seen it yet
                self._offer(self._next())
                return
            case "control":
                self.control.append(self._next())
                self.mailbox.put_control(letter(self.control[-1]))
            case "take" if not self._reader_waits:
                self._note(self.mailbox.take())
            case "get" if not self._reader_waits:
                self._reader_waits = True
                self._tasks.start_soon(self._get)
            case "give up" if self._senders:
                number = min(self._senders)
                self._senders[number].cancel()
                self.given_up.add(number)
            case _:
                return
        await anyio.wait_all_tasks_blocked()

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _offer(self, number: int) -> None:
        self.sent.append(number)
        taken = self.mailbox.offer(letter(number))
        if self._reader_waits and not self._handed:
            self._handed = number
        (self.accepted if taken else self.refused).add(number)

    async def _send(self, number: int) -> None:
        self.sent.append(number)
        with anyio.CancelScope() as self._senders[number]:
            try:
                dropped = await self.mailbox.put(letter(number))
                self.accepted.add(number)
                if dropped is not None:
                    oldest = self.accepted - {*self.read, *self.dropped, self._handed}
                    assert dropped.payload == min(oldest), "the oldest one makes room"
                    self.dropped.append(dropped.payload)
            except (MailboxFull, ActorStopped):
                self.refused.add(number)
        del self._senders[number]

    async def _get(self) -> None:
        self._note(await self.mailbox.get())
        self._reader_waits = False

    def _note(self, got: Envelope | None) -> None:
        if got is None:
            return
        if got.payload == self._handed:
            self._handed = 0
            self.read.append(got.payload)
        elif self.control:
            assert got.payload == self.control.pop(0), "control letters go first, in their order"
        else:
            self.read.append(got.payload)

    def most(self) -> int:
        """How many letters may be unread: one more where a reader was handed one."""
        return self.bound + self._reader_waits + len(self.control) + len(self._senders)

    def close(self) -> list[Any]:
        return [one.payload for one in self.mailbox.close() if one.payload not in self.control]

    def check(self, unread: list[Any]) -> None:
        """After the end: each letter had one fate, and the order is that of sending."""
        fates = [*self.read, *unread, *self.dropped, *self.refused, *self.given_up]
        assert sorted(fates) == sorted(self.sent)
        assert self.accepted == {*self.read, *unread, *self.dropped}
        in_order = [number for number in self.sent if number in {*self.read, *unread}]
        assert [*self.read, *unread] == in_order
        if self.policy is not WhenFull.DROP_OLDEST:
            assert self.dropped == []


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("policy", WhenFull)
@settings(max_examples=80, deadline=None)
@given(bound=st.integers(1, 3), acts=ACTS)
def test_each_letter_has_one_fate_and_the_order_is_that_of_sending(
    backend: str, policy: WhenFull, bound: int, acts: list[str]
) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            books = Books(tasks, bound=bound, when_full=policy)
            for act in acts:
                await books.do(act)
                assert books.mailbox.depth <= books.most()
            unread = books.close()
            await anyio.wait_all_tasks_blocked()
            books.check(unread)

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)


@pytest.mark.parametrize("policy", WhenFull)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_sender_waits_only_where_the_policy_is_to_wait(backend: str, policy: WhenFull) -> None:
    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            books = Books(tasks, bound=1, when_full=policy)
            for _ in range(4):
                await books.do("send")
            assert len(books._senders) == (3 if policy is WhenFull.WAIT else 0)
            books.close()

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)
