"""The mailbox: bounded, in order, and nobody who waits is forgotten."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.actors.mailbox import Mailbox, WhenFull
from callboard.errors import ActorStopped, ConfigurationError, MailboxFull
from callboard.testing.virtual_time import virtual_backend
from tests.framework.actors.kit import letter

pytestmark = pytest.mark.anyio


async def read(mailbox: Mailbox, count: int) -> list[object]:
    letters = [await mailbox.get() for _ in range(count)]
    return [one.payload for one in letters if one is not None]


async def test_letters_are_read_in_order() -> None:
    mailbox = Mailbox()
    for number in range(3):
        await mailbox.put(letter(number))
    assert await read(mailbox, 3) == [0, 1, 2]


async def test_control_goes_before_what_waits() -> None:
    mailbox = Mailbox(bound=1)
    await mailbox.put(letter("data"))
    mailbox.put_control(letter("stop"))
    assert await read(mailbox, 2) == ["stop", "data"]


async def test_act_06_a_full_mailbox_that_rejects_says_so() -> None:
    mailbox = Mailbox(bound=1, when_full=WhenFull.REJECT)
    await mailbox.put(letter(1))
    with pytest.raises(MailboxFull, match="the mailbox of echo/a is full: 1 letters"):
        await mailbox.put(letter(2))
    assert mailbox.depth == 1


async def test_act_06_a_full_mailbox_may_drop_the_oldest_and_hands_it_back() -> None:
    mailbox = Mailbox(bound=2, when_full=WhenFull.DROP_OLDEST)
    dropped = [await mailbox.put(letter(number)) for number in range(3)]
    assert [one.payload for one in dropped if one is not None] == [0]
    assert await read(mailbox, 2) == [1, 2]


async def test_act_06_senders_that_wait_for_room_are_served_in_order() -> None:
    mailbox = Mailbox(bound=1)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(mailbox.put, letter(number))
            await anyio.wait_all_tasks_blocked()
        assert mailbox.depth == 5
        assert await read(mailbox, 5) == [0, 1, 2, 3, 4]


async def test_a_sender_that_is_cancelled_while_it_waits_has_sent_nothing() -> None:
    mailbox = Mailbox(bound=1)
    await mailbox.put(letter("first"))
    with anyio.move_on_after(1):
        await mailbox.put(letter("given up"))
    await read(mailbox, 1)
    assert mailbox.depth == 0


async def test_closing_hands_back_the_unread_and_tells_the_senders_who_wait() -> None:
    mailbox = Mailbox(bound=1)
    await mailbox.put(letter("unread"))
    async with anyio.create_task_group() as tasks:

        async def send() -> None:
            with pytest.raises(ActorStopped, match="echo/a has stopped"):
                await mailbox.put(letter("waiting"))

        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert [one.payload for one in mailbox.close()] == ["unread"]
    with pytest.raises(ActorStopped):
        await mailbox.put(letter("late"))
    assert await mailbox.get() is None


async def test_closing_wakes_the_reader() -> None:
    mailbox = Mailbox()
    async with anyio.create_task_group() as tasks:

        async def close_later() -> None:
            await anyio.sleep(1)
            mailbox.close()

        tasks.start_soon(close_later)
        assert await mailbox.get() is None


def test_a_mailbox_without_room_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="bound=0"):
        Mailbox(bound=0)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=60, deadline=None)
@given(
    bound=st.integers(1, 4),
    sent=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    pauses=st.lists(st.booleans(), max_size=24),
)
def test_no_letter_is_lost_or_out_of_order_with_several_blocked_senders(
    backend: str, bound: int, sent: list[int], pauses: list[bool]
) -> None:
    """Each sender's letters arrive once and in its order, whatever the reader's pace."""
    seen: list[tuple[int, int]] = []

    async def main() -> None:
        mailbox = Mailbox(bound=bound)

        async def send(sender: int, count: int) -> None:
            for number in range(count):
                await mailbox.put(letter((sender, number)))

        async with anyio.create_task_group() as tasks:
            for sender, count in enumerate(sent):
                tasks.start_soon(send, sender, count)
            for at in range(sum(sent)):
                if at < len(pauses) and pauses[at]:
                    await anyio.sleep(0.1)
                got = await mailbox.get()
                assert got is not None
                seen.append(got.payload)

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)
    for sender, count in enumerate(sent):
        assert [number for who, number in seen if who == sender] == list(range(count))
