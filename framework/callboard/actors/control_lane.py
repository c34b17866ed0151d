"""Control letters that an engine keeps: done at once, beside the run, in order for each address."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio

from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.control import agent_of, perform
from callboard.actors.engine import Commit, Letter, StoredAnswer
from callboard.actors.payloads import error_body, from_body, to_body
from callboard.errors import CommitFailed, Fenced
from callboard.json_text import Json
from callboard.messages import new_id

T = TypeVar("T")
AGAIN_S = (0.05, 0.2, 1.0, 2.0, 5.0)  # the waits before what could not be kept is tried again


class Desk(Protocol):
    """What the lane needs of the post of its process."""

    async def keep(self, commit: Commit) -> None: ...
    async def actor(self, address: Address) -> Actor: ...
    def start(self, work: Any, *arguments: Any) -> None: ...
    def answered(self, letter_id: str, value: Any, error: BaseException | None) -> None: ...
    def moved(self, letter_id: str) -> None: ...
    def let_go(self, address: Address) -> None: ...


class ControlLane:
    """Does what control letters say, one after another for each address."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lanes: dict[Address, deque[Letter]] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._lanes)

    def put(self, letter: Letter) -> None:
        lane = self._lanes.get(letter.to)
        if lane is not None:
            lane.append(letter)
            return
        lane = self._lanes[letter.to] = deque((letter,))
        self._desk.start(self._work, letter.to, lane)

    def forget(self, is_lost: Callable[[Address], bool]) -> None:
        """Another process owns these addresses, and does what was said to them."""
        for address in [one for one in self._lanes if is_lost(one)]:
            for letter in self._lanes.pop(address):
                self._desk.moved(letter.id)

    async def _work(self, address: Address, lane: deque[Letter]) -> None:
        try:
            while lane and self._lanes.get(address) is lane:
                await self._do(lane[0])
                lane.popleft()
        except CommitFailed:  # it is done by whoever owns the address next
            if self._lanes.get(address) is lane:
                self.forget(address.__eq__)
        finally:
            if self._lanes.get(address) is lane:  # not a new one, of this process come back
                del self._lanes[address]

    async def _do(self, letter: Letter) -> None:
        value: Any = None
        problem: Exception | None = None
        goes_on = False
        try:
            value, goes_on = await _patiently(partial(self._performed, letter))
        except CommitFailed:
            raise
        except Exception as error:  # who asked is told
            problem = error
        body = to_body(value) if problem is None else error_body(problem)
        commit = Commit(
            letter.to,
            done=(letter.id,),
            sends=(go_on(letter.to),) if goes_on else (),
            answers=(StoredAnswer(letter.id, body),) if letter.asked else (),
        )
        await _patiently(partial(self._desk.keep, commit))
        self._desk.answered(letter.id, value, problem)

    async def _performed(self, letter: Letter) -> tuple[Any, bool]:
        agent = agent_of(await self._desk.actor(letter.to), letter.to)
        verb, words = spoken(letter.body)
        value, goes_on = await perform(agent, verb, words, item_id=letter.id)
        if agent.state.run_id is None:
            self._desk.let_go(letter.to)
        return value, goes_on


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Try again where something could not be kept: nobody else does while this owns the address.

    Raises:
        Fenced: another process owns it. CommitFailed: again and again.
    """
    for wait_s in AGAIN_S:
        try:
            return await work()
        except Fenced:
            raise
        except CommitFailed:
            await anyio.sleep(wait_s)
    return await work()


def go_on(address: Address) -> Letter:
    """The letter that has an agent go on with what there is to do."""
    return Letter(new_id("l"), address, {"go_on": True}, control=True)


def spoken(body: Json) -> tuple[str, Mapping[str, Any]]:
    """The verb and its words, as `words` wrote them."""
    words = {key: value for key, value in body.items() if key != "control"}
    if "message" in words:
        words["message"] = from_body(words["message"])
    if "told" in words:
        words["told"] = from_body(words["told"])
    return body["control"], words


def words(verb: str, said: Mapping[str, Any]) -> Json:
    """A word on the control lane as the body of a letter."""
    body = {"control": verb, **said}
    if "message" in said:
        body["message"] = to_body(said["message"])
    if "told" in said:
        body["told"] = to_body(said["told"])
    return body
