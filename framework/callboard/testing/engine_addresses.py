"""Cases of `check_engine`: commits, journals, and what is known of addresses."""

from __future__ import annotations

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Engine, Standing, StoredAnswer
from callboard.errors import AskTimeout, JournalConflict, MailboxFull
from callboard.testing.engine_kit import A, B, Case, Store, fact, ids, letter, same, working


async def _journal(store: Store) -> None:
    async with store.open() as engine:
        await engine.commit(Commit(A, (fact(0), fact(1)), 0))
        await engine.commit(Commit(A, (fact(2),), 2))
        await engine.commit(Commit(B, (fact(9),), 0))
    async with store.open() as engine:
        same(list(await engine.records(A)), [fact(0), fact(1), fact(2)], "the journal")
        same(list(await engine.records(A, 2)), [fact(2)], "the journal from record 2 on")
        same(list(await engine.records(Address("kind", "nobody"))), [], "a journal of nobody")


async def _all_or_nothing(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("1"))
        await engine.commit(Commit(A, (fact(0),), 0))
        commit = Commit(
            A,
            (fact(1),),
            expected=0,
            done=("1",),
            sends=(letter("2", B),),
            answers=(StoredAnswer("1", {"value": 1}),),
            standing=Standing.RUNNING,
        )
        await _conflicts(engine, commit)
        same(list(await engine.records(A)), [fact(0)], "the journal after a conflict")
        entry = (await engine.actors("kind"))[0]
        same((entry.standing, entry.unread), (Standing.IDLE, 1), "the address after a conflict")
        try:
            await engine.answer("1", timeout_s=0.05)
        except AskTimeout:
            pass
        else:
            raise AssertionError("a commit that failed has answered")
        async with working(engine) as share:
            same(ids(await share.letters(1)), ["1"], "the letters after a conflict")
            same(await share.silent(0.1), True, "whether a commit that failed has sent")


async def _conflicts(engine: Engine, commit: Commit) -> None:
    try:
        await engine.commit(commit)
    except JournalConflict:
        return
    raise AssertionError(f"two commits wrote record {commit.expected}")


async def _full_mailbox_keeps_nothing(store: Store) -> None:
    async with store.open() as engine:
        number = 0
        try:
            while True:
                await engine.send(letter(f"{number}", B))
                number += 1
        except MailboxFull:
            pass
        try:
            await engine.commit(Commit(A, (fact(0),), 0, sends=(letter("one more", B),)))
        except MailboxFull:
            same(list(await engine.records(A)), [], "the journal after a full mailbox")
            return
        raise AssertionError("a commit sent into a full mailbox")


async def _one_of_two(store: Store) -> None:
    async with store.open() as one, store.open() as other:
        won: list[str] = []

        async def write(engine: Engine, name: str, number: int) -> None:
            try:
                await engine.commit(Commit(A, (fact(number),), number))
            except JournalConflict:
                return
            won.append(name)

        for number in range(10):
            won.clear()
            async with anyio.create_task_group() as group:
                group.start_soon(write, one, "one", number)
                group.start_soon(write, other, "other", number)
            same(len(won), 1, f"how many of two racing writers wrote record {number}")
        same(len(await one.records(A)), 10, "the records of two racing writers")


async def _sends_with_commit(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1"))
        await share.letters(1)
        await share.worker.commit(Commit(A, done=("1",), sends=(letter("2", B), letter("3"))))
        same(sorted(ids(await share.letters(2))), ["2", "3"], "what a commit sends")


async def _spawned_once(store: Store) -> None:
    async with store.open() as engine:
        same(await engine.arguments(A), None, "the arguments of one that was never spawned")
        same(await engine.spawn(A, {"style": "dry", "n": [1]}), True, "spawning")
        same(await engine.spawn(A, {"style": "wet"}), False, "spawning again")
    async with store.open() as engine:
        found = await engine.arguments(A)
        same(dict(found or {}), {"style": "dry", "n": [1]}, "the arguments after a restart")


async def _listed(store: Store) -> None:
    async with store.open() as engine:
        await engine.commit(Commit(A, (fact(0), fact(1)), 0, standing=Standing.WAITING))
        await engine.send(letter("1", B), letter("2", Address("other", "x")))
        found = await engine.actors("kind")
        told = [(one.address, one.standing, one.records, one.unread) for one in found]
        wanted = [(A, Standing.WAITING, 2, 0), (B, Standing.IDLE, 0, 1)]
        same(told, wanted, "the addresses of a kind")
        same(len(await engine.actors()), 3, "how many addresses there are")
        same([one.address for one in await engine.actors("kind", limit=1)], [A], "a first page")
        rest = await engine.actors("kind", after=A)
        same([one.address for one in rest], [B], "the page behind it")


async def _key_stays(store: Store) -> None:
    async with store.open() as engine:
        key = engine.digest_key
    async with store.open() as engine:
        same(engine.digest_key, key, "the digest key after a restart")


CASES: dict[str, Case] = {
    "journals are appended to and read back": _journal,
    "a commit that conflicts keeps nothing": _all_or_nothing,
    "a commit into a full mailbox keeps nothing": _full_mailbox_keeps_nothing,
    "of two racing writers exactly one writes": _one_of_two,
    "a commit sends letters": _sends_with_commit,
    "an address is spawned once": _spawned_once,
    "addresses are listed in pages": _listed,
    "the digest key stays": _key_stays,
}
