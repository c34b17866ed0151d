"""Who plays: two plain actors, and two agents with tools of each effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import anyio

from callboard import Proceed, ReActAgent, ToolCall, Verdict, tool
from callboard.actors.actor import Actor
from callboard.actors.address import Address
from callboard.actors.envelope import Envelope
from callboard.actors.rules import ActorRules
from callboard.actors.supervision import OnFailure, Supervision
from callboard.actors.system import ActorSystem, Seat
from callboard.model import ModelRequest
from callboard.testing import ScriptedModel, call, say
from callboard.testing.script import ScriptItem
from callboard.tooling.tools import ToolContext
from tests.simulation.world import Entry, World

ATTEMPTS = 3
IDLE_S = 4.0
THOUGHT_S = 0.2
TASKS = ("pay look", "sign; put")  # what a chief has a clerk do


class Stage(Protocol):
    """The process, as those who play in it see it."""

    @property
    def name(self) -> str: ...
    @property
    def world(self) -> World: ...
    @property
    def system(self) -> ActorSystem: ...
    @property
    def is_dead(self) -> bool: ...
    @property
    def is_stopped(self) -> bool: ...
    async def alive(self) -> None: ...
    def owns(self, address: Address) -> bool: ...


class Book(Actor):
    """Answers with the number that it is sent."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def receive(self, letter: Envelope) -> Any:
        await anyio.sleep(0.1)
        await self._stage.alive()
        return {"got": letter.payload["number"]}


class Desk(Actor):
    """Tells books and asks books, as its letter says, then answers with what it got."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def receive(self, letter: Envelope) -> Any:
        number, got = letter.payload["number"], list[Any]()
        for at, (how,) in enumerate(letter.payload["turns"]):
            await self._stage.alive()
            book = self._stage.system.ref(f"book/{'ab'[at % 2]}")
            payload = {"number": number, "at": at, "from": str(letter.to)}
            if how == "tell":
                await book.tell(payload)
            else:
                answer = await book.ask(payload, timeout_s=120)
                got.append(answer["got"])
        return {"got": number, "asked": got}


class Clerk(ReActAgent):
    """Asks a human before it signs."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and call.name == "sign":
            return verdict.ask("a human looks first")
        return verdict


class Hands:
    """The tools of one agent in one process."""

    def __init__(self, stage: Stage, address: Address) -> None:
        self._stage = stage
        self._address = address

    async def _work(self, context: ToolContext) -> str:
        stage, id = self._stage, context.call_id
        was_stopped = stage.is_stopped
        await stage.alive()
        if not stage.is_dead:
            is_pure = context.tool_name == "look"  # whose start may be kept with its result
            if not (was_stopped or is_pure or stage.owns(self._address)):
                stage.world.breaks("who lost the lease begins nothing", stage.name, id)
            key, at = context.idempotency_key, str(self._address)
            stage.world.tell(f"{stage.name}      {at} does {context.tool_name} {id}")
            stage.world.ledger.append(Entry(at, id, context.tool_name, key, stage.name))
        await anyio.sleep(0.3)
        await stage.alive()
        return f"done {id}"

    @tool(effect="pure")
    async def look(self, context: ToolContext) -> str:
        """Look."""
        return await self._work(context)

    @tool(effect="idempotent")
    async def put(self, context: ToolContext) -> str:
        """Put."""
        return await self._work(context)

    @tool(effect="effect")
    async def pay(self, context: ToolContext) -> str:
        """Pay."""
        return await self._work(context)

    @tool(effect="effect")
    async def sign(self, context: ToolContext) -> str:
        """Sign, once a human has agreed."""
        return await self._work(context)

    @tool(effect="idempotent")
    async def mail(self, context: ToolContext) -> str:
        """Tell a book, once."""
        done = await self._work(context)
        book = self._stage.system.ref("book/mail")
        await book.tell({"number": context.call_id}, id=context.idempotency_key)
        return done


def register(stage: Stage) -> None:
    """Have all kinds served by the system of a process."""
    failing = OnFailure.ESCALATE if stage.world.case.escalates else OnFailure.RESUME
    rules = ActorRules(
        attempts=ATTEMPTS, idle_s=IDLE_S, supervision=Supervision(on_failure=failing)
    )

    def agent(seat: Seat) -> ReActAgent:
        hands = Hands(stage, seat.address)
        tools: list[Any] = [hands.look, hands.put, hands.pay, hands.sign, hands.mail]
        if seat.address.type == "chief":
            below = seat.system.ref(f"clerk/{seat.key}")
            tools.append(below.as_tool(name="clerk", description="Has a clerk do something."))
        model = ScriptedModel(then=thinking(stage))
        return Clerk(address=seat.address, model=model, journal=seat.journal, tools=tools)

    stage.system.register("book", lambda seat: Book(stage), rules)
    stage.system.register("desk", lambda seat: Desk(stage), rules)
    stage.system.register("clerk", agent, rules)
    stage.system.register("chief", agent, rules)


def thinking(stage: Stage) -> Callable[[ModelRequest], Awaitable[ScriptItem]]:
    async def think(request: ModelRequest) -> ScriptItem:
        await anyio.sleep(THOUGHT_S)
        await stage.alive()
        return said(request)

    return think


def said(request: ModelRequest) -> ScriptItem:
    """What the last job in the conversation says comes next."""
    messages = request.messages
    start = max([at for at, one in enumerate(messages) if one.text.startswith("job ")])
    name, _, plan = messages[start].text.partition(": ")
    number = name.removeprefix("job ")
    turns = [turn.split() for turn in plan.split("; ") if turn]
    turn = sum([one.role == "assistant" for one in messages[start:]])
    if turn >= len(turns):
        return f"done {number}"
    ids = [f"{number}.{turn}.{at}" for at in range(len(turns[turn]))]
    calls = [
        call(tool, id, task=f"job {id}: {TASKS[turn % 2]}") if tool == "clerk" else call(tool, id)
        for tool, id in zip(turns[turn], ids, strict=True)
    ]
    return say(*calls)
