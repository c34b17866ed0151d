"""Cases of `check_engine`: letters, answers and dead letters."""

from __future__ import annotations

import anyio

from callboard.actors.address import Address
from callboard.actors.engine import Commit, StoredAnswer
from callboard.errors import AskTimeout, ConfigurationError, MailboxFull
from callboard.testing.engine_kit import A, B, Case, Store, ids, letter, same, working


async def _in_order(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1"), letter("2", B), letter("3"))
        await engine.send(letter("4"))
        found = await share.letters(4)
        same([one.id for one in found if one.to == A], ["1", "3", "4"], "the order of one address")


async def _whole(store: Store) -> None:
    sent = letter(
        "1",
        body={
            "value": {"text": "ünï \ud83d", "numbers": [1, 2.5, None, True], "big": "x" * 300_000}
        },
        sender=Address("other kind", "with/slash"),
        asked=True,
        chain=(B, A),
        deadline=4e9,
        topic="news",
    )
    async with store.open() as engine, working(engine) as share:
        await engine.send(sent)
        (found,) = await share.letters(1)
        same(found, sent, "the letter that comes out")


async def _refuses_what_is_no_json(store: Store) -> None:
    async with store.open() as engine:
        for body in ({"value": object()}, {"value": float("nan")}):
            try:
                await engine.send(letter("1", body=body))
            except ConfigurationError:
                continue
            raise AssertionError(f"{body} was taken in")


async def _same_id_once(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1"), letter("1", body={"value": "again"}))
        await engine.send(letter("1"))
        (found,) = await share.letters(1)
        await share.worker.commit(Commit(A, done=("1",)))
        await engine.send(letter("1"))
        await engine.send(letter("2"))
        same(ids(await share.letters(1)), ["2"], "what comes after a letter that was done")
        same(found.body, {"value": "1"}, "which of two with one id comes")


async def _survives_reopening(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("1"))
    async with store.open() as engine, working(engine) as share:
        same(ids(await share.letters(1)), ["1"], "what was sent before the engine was closed")


async def _control_beside(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        for number in range(200):
            await engine.send(letter(f"{number}"))
        await share.worker.next()
        await engine.send(letter("now", control=True))
        with anyio.fail_after(10):
            while "now" not in ids(await share.worker.next()):
                pass


async def _not_before_due(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        due = engine.now() + 0.5
        await engine.send(letter("late", due=due), letter("soon"))
        same(ids(await share.letters(1)), ["soon"], "what is handed out at once")
        same(ids(await share.letters(1)), ["late"], "what is handed out when it is due")
        if engine.now() < due - 0.01:
            raise AssertionError(f"a letter came {due - engine.now():.3f} s before it was due")


async def _due_survives(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("late", due=engine.now() + 0.3))
    async with store.open() as engine, working(engine) as share:
        same(ids(await share.letters(1)), ["late"], "a timer after the engine was opened again")


async def _bounded(store: Store) -> None:
    async with store.open() as engine:
        sent = 0
        try:
            for number in range(100_000):
                await engine.send(letter(f"{number}"))
                sent += 1
        except MailboxFull:
            pass
        else:
            raise AssertionError("100,000 letters found room")
        await engine.send(letter("control", control=True), letter("other", B))
        async with working(engine) as share:
            found = ids([one for one in await share.letters(2) if not one.control])
            if not found:
                raise AssertionError("nothing is handed out of a full mailbox")
            await share.worker.commit(Commit(A, done=("0",)))
            await engine.send(letter("again there is room"))


async def _withdrawn(store: Store) -> None:
    async with store.open() as engine:
        await engine.send(letter("1"), letter("2"))
        same(await engine.withdraw("1"), True, "withdrawing a letter that nobody has")
        same(await engine.withdraw("1"), False, "withdrawing it again")
        async with working(engine) as share:
            same(ids(await share.letters(1)), ["2"], "what is left")
            same(await engine.withdraw("2"), False, "withdrawing a letter that is in hand")


async def _answered(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1", asked=True))
        await share.letters(1)
        found: list[StoredAnswer] = []
        async with anyio.create_task_group() as group:

            async def ask() -> None:
                found.append(await engine.answer("1", timeout_s=10))

            group.start_soon(ask)
            await anyio.sleep(0.05)
            answer = StoredAnswer("1", {"value": 42})
            await share.worker.commit(Commit(A, done=("1",), answers=(answer,)))
        same(found[0].body, {"value": 42}, "the answer to one who waits")
        same((await engine.answer("1", timeout_s=1)).body, {"value": 42}, "to one who comes late")
    async with store.open() as engine:
        same((await engine.answer("1", timeout_s=1)).body, {"value": 42}, "after a restart")


async def _interim_answers(store: Store) -> None:
    async with store.open() as engine:
        await engine.commit(Commit(A, answers=(StoredAnswer("1", {"value": "wait"}, final=False),)))
        same((await engine.answer("1", timeout_s=1)).final, False, "what an interim answer says")
        try:
            await engine.answer("1", timeout_s=0.05, final=True)
        except AskTimeout:
            pass
        else:
            raise AssertionError("an interim answer was given as the final one")
        await engine.commit(Commit(A, answers=(StoredAnswer("1", {"value": "end"}),)))
        same((await engine.answer("1", timeout_s=1, final=True)).body, {"value": "end"}, "the end")


async def _answers_cross_processes(store: Store) -> None:
    async with store.open() as worker, store.open() as client, working(worker) as share:
        await client.send(letter("1", asked=True))
        await share.letters(1)
        found: list[StoredAnswer] = []
        async with anyio.create_task_group() as group:

            async def work() -> None:
                await anyio.sleep(0.1)
                answer = StoredAnswer("1", {"value": "there"})
                await share.worker.commit(Commit(A, done=("1",), answers=(answer,)))

            group.start_soon(work)
            found.append(await client.answer("1", timeout_s=10))
        same(found[0].body, {"value": "there"}, "the answer in another process")


async def _dead(store: Store) -> None:
    async with store.open() as engine, working(engine) as share:
        await engine.send(letter("1"), letter("2"), letter("3"))
        first, second, _ = await share.letters(3)
        await engine.bury(first, "failed", "it broke")
        await engine.bury(first, "failed", "twice is once")
        await engine.bury(second, "failed")
        found = await engine.dead()
        same(
            [(one.letter.id, one.error) for one in found], [("1", "it broke"), ("2", None)], "dead"
        )
        same(await engine.drop(found[1].number), True, "dropping a dead letter")
        same(await engine.drop(found[1].number), False, "dropping it again")
        same(await engine.revive(found[0].number), True, "reviving a dead letter")
        (again,) = await share.letters(1)
        same((again.body, again.attempts), (first.body, 0), "the revived letter")
        same(list(await engine.dead()), [], "the dead letters that are left")
        same(await engine.revive(found[0].number), False, "reviving one that is not there")


async def _topics(store: Store) -> None:
    async with store.open() as engine:
        for address in (B, A, B):
            await engine.subscribe("news", address)
        same(list(await engine.subscribers("news")), [B, A], "the subscribers, in order")
        await engine.unsubscribe("news", B)
        await engine.unsubscribe("news", B)
    async with store.open() as engine:
        same(list(await engine.subscribers("news")), [A], "the subscribers after a restart")


CASES: dict[str, Case] = {
    "letters of one address come in order": _in_order,
    "a letter comes out as it was sent": _whole,
    "a body that is no JSON is refused": _refuses_what_is_no_json,
    "the same id is taken in once, also after it was done": _same_id_once,
    "letters survive the closing of the engine": _survives_reopening,
    "control letters do not wait behind others": _control_beside,
    "a letter is not handed out before it is due": _not_before_due,
    "a timer survives the closing of the engine": _due_survives,
    "mailboxes are bounded, and control letters find room": _bounded,
    "a letter that nobody has in hand can be withdrawn": _withdrawn,
    "an answer reaches who waits, who comes late, and who comes after a restart": _answered,
    "interim answers are told from final ones": _interim_answers,
    "an answer reaches another process": _answers_cross_processes,
    "dead letters are listed, dropped and revived": _dead,
    "topics know their subscribers in order": _topics,
}
