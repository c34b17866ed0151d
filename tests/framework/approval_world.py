"""A world for the law of approvals: an agent that asks, people who answer, cuts and restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, cast

import anyio

from callboard.agent import ReActAgent
from callboard.approvals import Approval, Deny, GrantScope, Proceed, SealedCall, Verdict
from callboard.approving import Answer, Answered, ApprovalPolicy, Approve, Refuse
from callboard.decide import ToolExecution
from callboard.journaling.journal import InMemoryJournal
from callboard.journaling.records import Record
from callboard.json_text import canonical
from callboard.messages import Observation, Status, ToolCall
from callboard.questions import ask_user
from callboard.queues import SteeringPolicy
from callboard.replies import RunFailed
from callboard.testing import ScriptedModel, call, say
from callboard.tooling.tools import ToolContext, tool
from tests.framework.histories.journals import from_disk

KEY = b"k" * 32
SCOPES = (GrantScope.ONCE, GrantScope.ONCE, *GrantScope)


def judged(amount: int) -> str:
    """What the guard makes of a call that would run with this amount."""
    return ("deny", "ask", "ask", "ask", "let")[amount % 5]


class GuardMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if not isinstance(verdict, Proceed):
            return verdict
        kind = judged(verdict.call.arguments.get("amount", 4))
        return Deny("no") if kind == "deny" else verdict.ask("sure?") if kind == "ask" else verdict


class RewritingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        amount = call.arguments.get("amount")
        return await super()._deciding(
            call.with_arguments({"amount": amount + 1}) if amount in (3, 9) else call
        )


class DriftingMixin(ReActAgent):
    """Breaks the law for rewriters: it makes something else of the same call, now and then."""

    def __init__(self, *, chance: Random, **rest: Any) -> None:
        super().__init__(**rest)
        self._drifting_chance = chance

    async def _deciding(self, call: ToolCall) -> Verdict:
        drifted = self._drifting_chance.random() < 0.2 and "amount" in call.arguments
        amount = self._drifting_chance.randrange(12)
        return await super()._deciding(call.with_arguments({"amount": amount}) if drifted else call)


class CrashingMixin(ReActAgent):
    async def _deciding(self, call: ToolCall) -> Verdict:
        verdict = await super()._deciding(call)
        if isinstance(verdict, Proceed) and verdict.call.arguments.get("amount") == 7:
            raise OSError("the guard is broken")
        return verdict


class RetryingMixin(ReActAgent):
    async def _acting(self, call: SealedCall) -> Observation:
        seen = await super()._acting(call)
        return await super()._acting(call.again()) if seen.status is Status.FAILED else seen


LAYERS = (GuardMixin, RewritingMixin, DriftingMixin, CrashingMixin, RetryingMixin)


@dataclass(frozen=True)
class Ran:
    """What reached a tool."""

    call_id: str
    name: str
    arguments: str


Journals = Mapping[str, Sequence[Record]]


class World:
    """What outlives every restart: what ran, and the chance that moves everything.

    In a family the agent that asks is a tool of another one, at which everything is answered.
    """

    def __init__(self, chance: Random, *, is_family: bool = False) -> None:
        self.chance = chance
        self.is_family = is_family
        self.ran: list[Ran] = []
        self.made = 0
        self.life = 0  # what a killed process still does counts for nothing
        layers = chance.sample(LAYERS, chance.randint(0, 4))
        self.layers = [*{GuardMixin, *layers}]
        chance.shuffle(self.layers)
        self.options: dict[str, Any] = {
            "tool_execution": chance.choice(list(ToolExecution)),
            "steering_policy": chance.choice(list(SteeringPolicy)),
            "max_iters": 20,
            "digest_key": KEY,
        }
        self.root_options: dict[str, Any] = {
            "approvals": ApprovalPolicy(on_prompt=chance.choice(["queue", "withdraw"])),
            "approver": self.approver if chance.random() < 0.5 else None,
        }
        self.journals: dict[str, InMemoryJournal] = {}

    def agent(self, left: Journals) -> ReActAgent:
        """The agent as a process finds it: with nothing but its journals."""
        self.life += 1
        self.journals = {
            name: InMemoryJournal(from_disk(left.get(name, ()))) for name in ("asks", "root")
        }
        if not self.is_family:
            return self._asking(**self.root_options)
        below = self._asking().as_tool(name="below", description="Does things.")
        return ReActAgent(
            name="root",
            model=ScriptedModel(self._script(self._errand), then="done"),
            tools=[below],
            journal=self.journals["root"],
            **self.options,
            **self.root_options,
        )

    def kept(self) -> Journals:
        """What the journals hold now."""
        return {name: tuple(journal.records) for name, journal in self.journals.items()}

    def _asking(self, **options: Any) -> ReActAgent:
        if DriftingMixin in self.layers:
            options["chance"] = self.chance
        kind = cast("type[ReActAgent]", type("Stack", tuple(self.layers), {}))
        return kind(
            name="asks",
            model=ScriptedModel(self._script(self._deed), then="done"),
            tools=[
                tool(name="pay")(partial(self._run, "pay", self.life)),
                tool(name="put", effect="idempotent")(partial(self._run, "put", self.life)),
                ask_user,
            ],
            journal=self.journals["asks"],
            **self.options,
            **options,
        )

    def _script(self, made: Any) -> list[Any]:
        answers = range(self.chance.randint(0, 4))
        return [say(*[made() for _ in range(self.chance.randint(1, 3))]) for _ in answers]

    def _errand(self) -> Any:
        self.made += 1
        return call("below", f"c{self.made}", task=f"task {self.made}")

    def _deed(self) -> Any:
        self.made += 1
        if self.chance.random() < 0.1:
            return call("ask_user", f"c{self.made}", question="how much?")
        name, amount = self.chance.choice(["pay", "put"]), self.chance.randrange(12)
        return call(name, f"c{self.made}", amount=amount)

    async def _run(self, name: str, life: int, amount: int, context: ToolContext) -> str:
        if life == self.life:
            self.ran.append(Ran(context.call_id, name, canonical({"amount": amount})))
        await anyio.sleep(self.chance.choice([0, 0, 1]))
        if self.chance.random() < 0.2:
            raise ValueError("failed")
        return "done"

    async def approver(self, asked: Approval) -> Answered:
        await anyio.sleep(self.chance.choice([0, 1, 2]))
        match self.chance.randrange(5):
            case 0 | 1:
                yes = Approve("amy", self.chance.choice(SCOPES))
                return Answer("a lot") if asked.is_question else yes
            case 2:
                return Refuse("no")
            case 3:
                raise OSError("nobody there")
            case _:
                return None


async def answer_something(agent: ReActAgent, chance: Random) -> None:
    """What people do between two stretches of a run."""
    if agent.grants and chance.random() < 0.3:
        await agent.revoke(agent.grants[0].id, by="amy")
    for asked in chance.sample(agent.pending, chance.randint(0, len(agent.pending))):
        match chance.randrange(5):
            case 0 | 1 | 2 if asked.is_question:
                await agent.answer(asked.id, "a lot", by="amy")
            case 0 | 1 | 2:
                await agent.approve(asked.id, by="amy", scope=chance.choice(SCOPES))
            case 3:
                await agent.deny(asked.id, by="amy")
            case _:
                await agent.withdraw(asked.id)


async def stretch(world: World, agent: ReActAgent) -> Journals:
    """Run or resume, and maybe be cut off, or answered meanwhile. What the journals hold after
    it, or when the process was killed.
    """
    chance = world.chance
    left: Journals | None = None
    async with anyio.create_task_group() as group:

        async def work() -> None:
            with suppress(RunFailed):
                anew = chance.random() < 0.5 or not agent.messages
                await (agent.run("go") if anew else agent.resume())
            group.cancel_scope.cancel()

        group.start_soon(work)
        await anyio.sleep(chance.choice([0, 0.5, 1.5, 100, 100]))
        match chance.randrange(3):
            case 0:
                left = world.kept()
                world.life += 1
            case 1:
                await answer_something(agent, chance)
                await anyio.sleep(1)
            case _:
                pass
        group.cancel_scope.cancel()
    return world.kept() if left is None else left


async def live(world: World) -> ReActAgent:
    """A history of runs, answers, cuts and restarts, and what is left of it brought to its end."""
    chance, agent = world.chance, world.agent({})
    for _ in range(chance.randint(1, 6)):
        life = world.life
        left = await stretch(world, agent)
        if chance.random() < 0.4 or life != world.life:
            agent = world.agent(left)
        await answer_something(agent, chance)
        if chance.random() < 0.2:
            await agent.interrupt()
        if chance.random() < 0.2:
            await agent.steer("hm")
    if agent.messages:
        await bring_to_an_end(agent, chance)
    return agent


async def bring_to_an_end(agent: ReActAgent, chance: Random) -> None:
    """Answer and resume until nothing waits."""
    for _ in range(200):
        with suppress(RunFailed):
            await agent.resume()
        if not agent.pending and agent.state.run_id is None:
            return
        await answer_something(agent, chance)
    raise AssertionError(f"it does not come to an end: {agent.pending}")
