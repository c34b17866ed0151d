"""Models that are context managers are entered for as long as they are asked."""

from __future__ import annotations

import pytest

from callboard.agent import ReActAgent
from callboard.hooks import Hooks, NextTurn
from callboard.replies import Prompt, Reply, RunFailed
from callboard.testing import ScriptedModel, call
from tests.framework.kit import Script, agent_of, echo

pytestmark = pytest.mark.anyio


class Logged(ScriptedModel):
    """A model that tells when it is entered and left."""

    log: list[str]

    async def __aenter__(self) -> Logged:
        self.log.append(f"open {self.name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.log.append(f"closed {self.name}")


def logged(script: Script, log: list[str], name: str) -> Logged:
    model = Logged(script, name=name)
    model.log = log
    return model


async def test_a_model_that_can_be_entered_is_open_for_the_time_of_a_run() -> None:
    log: list[str] = []
    agent = ReActAgent(model=logged(["done"], log, "a"))
    await agent.run("go")
    assert log == ["open a", "closed a"]


async def test_a_model_that_the_next_turn_switches_to_is_entered_as_the_first_one_was() -> None:
    log: list[str] = []
    other = logged(["done", "more"], log, "b")
    agent = ReActAgent(
        model=logged([call("echo", "a", x="1")], log, "a"),
        tools=[echo],
        hooks=Hooks(prepare_next_turn=lambda _: NextTurn(model=other)),
    )
    await agent.run("go")
    assert log == ["open a", "open b", "closed b", "closed a"]
    await agent.run("go")
    assert log[4:] == ["open b", "closed b"]


async def test_a_model_that_cannot_be_entered_in_the_middle_of_a_run_fails_it() -> None:
    class Shut(ScriptedModel):
        async def __aenter__(self) -> None:
            raise OSError("no route")

        async def __aexit__(self, *_: object) -> None: ...

    hooks = Hooks(prepare_next_turn=lambda _: NextTurn(model=Shut(["done"])))
    agent, _ = agent_of([call("echo", "a", x="1")], echo, hooks=hooks)
    with pytest.raises(RunFailed, match="no route"):
        await agent.run("go")


async def test_a_model_that_an_earlier_attempt_switched_to_is_entered_for_the_next_one() -> None:
    class Twice(ReActAgent):
        async def reply(self, prompt: Prompt) -> Reply:
            await super().reply(prompt)
            return await super().reply(Prompt.of("again", id=f"{prompt.id}/again"))

    log: list[str] = []
    other = logged(["done", "more"], log, "b")
    change: list[NextTurn | None] = [NextTurn(model=other), None]
    agent = Twice(
        model=logged([call("echo", "a", x="1")], log, "a"),
        tools=[echo],
        hooks=Hooks(prepare_next_turn=lambda _: change.pop(0)),
    )
    assert (await agent.run("go")).text == "more"
    assert log == ["open a", *["open b", "closed b"] * 2, "closed a"]
