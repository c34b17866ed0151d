"""Cases of `check_engine`: who owns an address, and what happens when owners come and go."""

from __future__ import annotations

from random import Random

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, Engine, Standing
from callboard.errors import Fenced
from callboard.testing.engine_kit import (
    A,
    B,
    Case,
    Share,
    Store,
    fact,
    ids,
    letter,
    same,
    until,
    working,
)


async def _handed_out_once(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1"))
        same(ids(await share.letters(1)), ["1"], "what is handed out")
        same(await share.silent(0.2), True, "whether it is handed out once")


async def _only_its_kinds(store: Store) -> None:
    async with store.open() as engine, working(engine, "other") as share:
        await engine.send(letter("1"), letter("2", Address("other", "x")))
        same(ids(await share.letters(1)), ["2"], "the letters of the kinds that are served")
        same(share.worker.owns(A), False, "whether it owns what it does not serve")
        await share.worker.add("kind")
        same(share.worker.owns(A), True, "whether it owns a kind that was added")
        same(ids(await share.letters(1)), ["1"], "the letters of a kind that was added")


async def _workers_are_told(store: Store) -> None:
    async with store.open() as engine:
        same(await engine.workers(), [], "who takes part before there is a worker")
        await engine.send(letter("1"))
        async with working(engine):
            (worker,) = await engine.workers()
            shards = worker.shards["kind"]
            same(sorted(set(shards)), list(shards), "the shards that the only one owns")
            (actor,) = await engine.actors()
            same(actor.owner, worker.name, "who owns an address")
        same(await engine.workers(), [], "who takes part when all have left")


async def _release_hands_over(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("1"), letter("2"))
        async with working(engine) as share:
            await share.letters(1)
            await share.worker.commit(Commit(A, (fact(0),), 0, standing=Standing.RUNNING))
        async with working(engine) as share:
            found = await share.letters(3)
            goes_on = [one for one in found if one.body == {"go_on": True}]
            same(ids([one for one in found if one not in goes_on]), ["1", "2"], "what is handed on")
            same([one.to for one in goes_on], [A], "who is told to go on")
            same({one.attempts for one in found}, {0}, "the attempts after a release")
            same([one.id for one in found if one.suspect], [], "suspects after a release")


async def _only_running_goes_on(store: Store) -> None:
    async with store.open() as engine:
        for address, standing in ((A, Standing.WAITING), (B, Standing.IDLE)):
            await engine.commit(Commit(address, (fact(0),), 0, standing=standing))
        async with working(engine) as share:
            same(await share.silent(0.2), True, "whether those that wait are left alone")


async def _shared_out(store: Store) -> None:
    addresses = [Address("kind", f"{number}") for number in range(200)]
    async with store.open() as one, store.open() as other, working(one) as first:
        same(all([first.worker.owns(a) for a in addresses]), True, "whether one owns all")
        async with working(other) as second:
            await _until_shared(first, second, addresses, store.lease_s)
        await until(
            lambda: all([first.worker.owns(a) for a in addresses]), within_s=2 * store.lease_s
        )


async def _until_shared(
    first: Share, second: Share, addresses: list[Address], lease_s: float
) -> None:
    with anyio.fail_after(4 * lease_s):
        while True:
            owners = [(first.worker.owns(a), second.worker.owns(a)) for a in addresses]
            if (True, True) in owners:
                raise AssertionError("two workers own one address")
            taken = sum([second_owns for _, second_owns in owners])
            if (False, False) not in owners and 0 < taken < len(addresses):
                return
            await anyio.sleep(0.05)


async def _fenced_without_lease(store: Store) -> None:
    async with store.open() as engine, working(engine, "other") as share:
        try:
            await share.worker.commit(Commit(A, (fact(0),), 0))
        except Fenced:
            same(list(await engine.records(A)), [], "the journal after a fenced commit")
            return
        raise AssertionError("a worker wrote to an address that it does not own")


async def _dead_worker(store: Store) -> None:
    assert store.pause is not None  # the case is left out without it
    async with store.open() as one, store.open() as other, working(one) as zombie:
        await one.send(letter("1"), letter("2"), letter("3", B))
        await zombie.letters(3)
        await zombie.worker.commit(Commit(B, (fact(0),), 0, done=("3",), standing=Standing.RUNNING))
        store.pause(zombie.worker)
        async with working(other) as heir:
            with anyio.fail_after(4 * store.lease_s):
                found = await heir.letters(3)
            letters = {one.id: one for one in found if one.body != {"go_on": True}}
            same(sorted(letters), ["1", "2"], "what the heir is handed")
            same(letters["1"].suspect, True, "whether the first one is a suspect")
            same(letters["2"].suspect, False, "whether the next one is none")
            goes_on = [one.to for one in found if one.body == {"go_on": True}]
            same(goes_on, [B], "who goes on")
            same(zombie.worker.owns(A), False, "whether the late one still owns")
            await _fenced(zombie, one)
            await heir.worker.commit(Commit(A, (fact(1),), 0, done=("1",)))


async def _fenced(zombie: Share, engine: Engine) -> None:
    try:
        await zombie.worker.commit(Commit(A, (fact(7),), 0))
    except Fenced:
        return
    raise AssertionError("one whose lease ran out has written")


async def _counted(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("1"), letter("2"))
        async with working(engine) as share:
            first, _ = await share.letters(2)
            await share.worker.count(first, "it broke")
            same(await share.silent(0.1), True, "whether a counted letter stays in hand")
        async with working(engine) as share:
            found = await share.letters(2)
            same([one.attempts for one in found], [1, 0], "the attempts in the next life")


async def _coming_and_going(store: Store) -> None:
    """Workers come and go at random: nothing is lost, nothing done twice, order is kept."""
    chance, done = Random(7), dict[Address, list[int]]()
    addresses = [Address("kind", f"{number}") for number in range(20)]

    async def work(engine: Engine, letters: int) -> None:
        async with working(engine) as share:
            with anyio.move_on_after(store.lease_s):
                while letters > 0:
                    for one in await share.worker.next():
                        await share.worker.commit(Commit(one.to, done=(one.id,)))
                        done.setdefault(one.to, []).append(one.body["value"])
                        letters -= 1

    async with store.open() as engine:
        for number in range(300):
            to = addresses[number % 20]
            await engine.send(letter(f"{number}", to, body={"value": number}))
        with anyio.fail_after(50):
            while sum(map(len, done.values())) < 300:
                try:
                    await work(engine, chance.randrange(1, 80))
                except Fenced:
                    continue
        for address, values in done.items():
            same(values, sorted(set(values)), f"the order of {address}, and each once")


CASES: dict[str, Case] = {
    "a letter is handed out once": _handed_out_once,
    "a worker gets the letters of its kinds": _only_its_kinds,
    "who takes part is told": _workers_are_told,
    "a release hands over at once": _release_hands_over,
    "only what runs is gone on with": _only_running_goes_on,
    "two workers share the addresses out": _shared_out,
    "without the lease nothing is written": _fenced_without_lease,
    "a worker whose lease ran out is fenced, and its work is taken over": _dead_worker,
    "attempts outlive the worker": _counted,
    "workers come and go, and nothing is lost": _coming_and_going,
}
WITH_DEATH = frozenset({"a worker whose lease ran out is fenced, and its work is taken over"})
