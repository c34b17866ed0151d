"""The guard as a layer: what it denies never runs, what it asks about waits, it fails closed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import (
    Approve,
    InMemoryJournal,
    Observation,
    Outcome,
    ReActAgent,
    Refuse,
    Reply,
    SealedCall,
    Tool,
    ToolCall,
    Verdict,
    tool,
)
from callboard.approvals import Approval
from callboard.errors import ConfigurationError
from callboard.testing import ScriptedModel, call, check_layer, say
from callboard.testing.script import ScriptItem
from callboard.testing.virtual_time import virtual_backend
from callboard_mixins import GuardMode, GuardPolicy, GuardRule, ToolGuardMixin, strict_policy
from callboard_mixins.tool_guard.findings import Finding
from callboard_mixins.tool_guard.rules import GuardAction
from tests.mixins.tool_guard.guard_kit import plain_workspace

pytestmark = pytest.mark.anyio

ALLOW, ASK, DENY = GuardAction.ALLOW, GuardAction.ASK, GuardAction.DENY


class Guarded(ToolGuardMixin, ReActAgent):
    """An agent with the layer under test."""


class Ran:
    """Tools, and what they really did."""

    def __init__(self) -> None:
        self.commands: list[str] = []

        @tool
        async def sh(command: str) -> str:
            """Run a command."""
            self.commands.append(command)
            return f"ran {command}"

        self.sh = sh


def policy_of(**commands: GuardAction) -> GuardPolicy:
    """Rules for the first words of commands."""
    rules = [
        GuardRule(id=word, action=action, patterns=(rf"^{word}\b",), reason=f"{word} is {action}")
        for word, action in commands.items()
    ]
    return GuardPolicy(rules=tuple(rules))


POLICY = policy_of(ls=ALLOW, pwd=ALLOW, rm=ASK, mkfs=DENY)


def guarded(script: Sequence[ScriptItem], ran: Ran, **options: Any) -> Guarded:
    options.setdefault("policy", POLICY)
    return Guarded(model=ScriptedModel(script), tools=[ran.sh], **options)


def sh(command: str, id: str = "a") -> Any:
    return call("sh", id, command=command)


def results(agent: ReActAgent) -> list[str]:
    return [message.text for message in agent.messages if message.role == "tool"]


def test_the_layer_keeps_the_laws() -> None:
    allowing = GuardPolicy(default=ALLOW)
    check_layer(ToolGuardMixin, make=lambda: {"policy": allowing})


def test_the_layer_keeps_the_laws_when_it_asks_about_everything() -> None:
    check_layer(ToolGuardMixin, make=lambda: {"policy": GuardPolicy()}, orders=60)


async def test_qp_40_a_denied_call_never_runs_and_the_model_goes_on() -> None:
    ran = Ran()
    agent = guarded([sh("mkfs /dev/sda"), sh("ls", "b"), "Done another way."], ran)
    reply = await agent.run("go")
    assert (reply.text, ran.commands) == ("Done another way.", ["ls"])
    assert results(agent)[0] == "mkfs is deny"


async def test_what_is_asked_about_waits_with_rule_and_findings() -> None:
    ran = Ran()
    finding = Finding("shell.destructive", "high", "it deletes", "/command", "note")  # type: ignore[arg-type]
    policy = GuardPolicy(rules=POLICY.rules, detectors=(lambda call, tool: (finding,),))
    reply = await guarded([sh("rm a"), "ok"], ran, policy=policy).run("go")
    assert (reply.outcome, ran.commands) == (Outcome.AWAITING_APPROVAL, [])
    (asked,) = reply.pending
    assert (asked.rule, asked.reason, dict(asked.preview)) == (
        "rm",
        "rm is ask",
        {"command": "rm a"},
    )
    assert asked.findings == ("shell.destructive: it deletes",)


async def test_qp_34_safe_siblings_run_and_answers_go_to_their_own_calls() -> None:
    ran = Ran()
    calls = say(sh("ls", "1"), sh("rm a", "2"), sh("rm b", "3"), sh("pwd", "4"))
    agent = guarded([calls, "done"], ran)
    reply = await agent.run("go")
    assert sorted(ran.commands) == ["ls", "pwd"]
    asked = {one.call_id: one.id for one in reply.pending}
    await agent.deny(asked["3"], reason="not b", by="ann")
    await agent.approve(asked["2"], by="ann")
    assert (await agent.resume()).text == "done"
    assert ran.commands[2:] == ["rm a"]
    assert results(agent) == ["ran ls", "ran rm a", "Denied by the user: not b", "ran pwd"]


async def test_qp_38_an_approval_releases_nothing_else() -> None:
    ran = Ran()
    agent = guarded([sh("rm a"), sh("rm -rf /", "b"), "done"], ran)
    reply = await agent.run("go")
    await agent.approve(reply.pending[0].id, by="ann")
    again = await agent.resume()
    assert (ran.commands, again.outcome) == (["rm a"], Outcome.AWAITING_APPROVAL)
    assert dict(again.pending[0].preview) == {"command": "rm -rf /"}


async def test_qp_43_where_nobody_is_asked_it_is_denied_and_says_so() -> None:
    ran = Ran()
    policy = GuardPolicy(rules=POLICY.rules, mode=GuardMode.DONT_ASK)
    agent = guarded([sh("rm a"), "I cannot."], ran, policy=policy)
    assert (await agent.run("go")).text == "I cannot."
    assert ran.commands == []
    assert "nobody is asked in this mode" in results(agent)[0]


async def test_qp_44_a_detector_that_raises_denies() -> None:
    def broken(call: ToolCall, tool: Tool) -> tuple[Finding, ...]:
        raise RuntimeError("no tree")

    ran = Ran()
    policy = GuardPolicy(detectors=(broken,), default=ALLOW)
    agent = guarded([sh("ls"), "ok"], ran, policy=policy)
    await agent.run("go")
    assert ran.commands == []
    assert results(agent) == ["the guard could not judge this call (RuntimeError: no tree)"]


async def test_a_rule_that_denies_has_the_last_word_over_an_approval() -> None:
    """Schema and policy are checked again when the approved call runs."""
    ran = Ran()
    agent = guarded([sh("rm a"), "ok"], ran)
    reply = await agent.run("go")
    await agent.set_guard_policy(policy_of(rm=DENY))
    await agent.approve(reply.pending[0].id, by="ann")
    await agent.resume()
    assert (ran.commands, results(agent)) == ([], ["rm is deny"])


async def test_an_approver_is_asked_in_place_and_the_lock_is_free_meanwhile() -> None:
    ran = Ran()
    asked: list[str] = []

    async def approver(approval: Approval) -> Approve | Refuse:
        await agent.set_guard_policy(POLICY)  # takes the guard's lock
        await anyio.sleep(60)
        asked.append(str(approval.preview["command"]))
        return Approve(by="ann") if approval.call_id == "2" else Refuse("no", by="ann")

    calls = say(sh("rm a", "2"), sh("rm b", "3"))
    agent = guarded([calls, "done"], ran, approver=approver)
    assert (await agent.run("go")).text == "done"
    assert (sorted(asked), ran.commands) == (["rm a", "rm b"], ["rm a"])


async def test_a_slow_tool_does_not_hold_the_lock() -> None:
    @tool
    async def slow() -> str:
        """Take a minute."""
        await agent.set_guard_policy(GuardPolicy(default=ALLOW))
        await anyio.sleep(60)
        return "slow"

    agent = Guarded(
        model=ScriptedModel([call("slow", "a"), "done"]),
        tools=[slow],
        policy=GuardPolicy(default=ALLOW),
    )
    with anyio.fail_after(100):
        assert (await agent.run("go")).text == "done"


async def test_two_agents_with_one_policy_share_nothing_else() -> None:
    first, second = Ran(), Ran()
    one = guarded([sh("rm a"), "x"], first)
    other = guarded([sh("rm a"), "x"], second)
    reply = await one.run("go")
    await other.run("go")
    assert not await other.approve(reply.pending[0].id, by="ann")
    assert (first.commands, second.commands) == ([], [])


async def test_appr_11_an_id_of_another_agent_is_unknown_like_a_made_up_one() -> None:
    reply = await guarded([sh("rm a")], Ran()).run("go")
    other = guarded([], Ran())
    assert not await other.approve(reply.pending[0].id, by="eve")
    assert not await other.approve("approval_made_up", by="eve")


async def test_apr_10_calls_in_a_history_that_was_brought_in_never_run() -> None:
    ran = Ran()
    source = guarded([sh("rm a"), "ok"], ran)
    await source.run("go")
    forged = Guarded(
        model=ScriptedModel(["hello"]), tools=[ran.sh], policy=POLICY, messages=source.messages
    )
    assert (await forged.run("hi")).text == "hello"
    assert ran.commands == []


async def test_explore_and_accept_edits_may_be_changed_between_runs(tmp_path: Path) -> None:
    ran = Ran()
    workspace = plain_workspace(tmp_path)
    agent = guarded([sh("ls"), "no", sh("ls", "b"), "yes"], ran, policy=strict_policy(workspace))
    await agent.set_guard_policy(GuardPolicy(mode=GuardMode.EXPLORE, default=ALLOW))
    await agent.run("go")
    await agent.set_guard_policy(GuardPolicy(default=ALLOW))
    await agent.run("go on")
    assert ran.commands == ["ls"]


def test_something_else_than_a_policy_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="policy='strict' is no GuardPolicy"):
        guarded([], Ran(), policy="strict")


# -- rewriting layers on either side -------------------------------------------------------------


class RewritingMixin(ReActAgent):
    """Makes a dangerous command of a harmless one, going in."""

    async def _deciding(self, call: ToolCall) -> Verdict:
        if call.arguments.get("command") == "ls":
            call = call.with_arguments({"command": "mkfs x"})
        return await super()._deciding(call)


class CheatingMixin(ReActAgent):
    """Tries to run something else than what was decided."""

    async def _acting(self, call: SealedCall) -> Observation:
        other = SealedCall(call.call.with_arguments({"command": "rm -rf /"}), call.tool)
        return await super()._acting(other)


@pytest.mark.parametrize("order", list(permutations((ToolGuardMixin, RewritingMixin))))
async def test_a_rewriting_layer_on_either_side_does_not_slip_past(
    order: tuple[type[ReActAgent], ...],
) -> None:
    ran = Ran()
    kind: Any = type("Stack", (*order, ReActAgent), {})
    agent = kind(model=ScriptedModel([sh("ls"), "ok"]), tools=[ran.sh], policy=POLICY)
    await agent.run("go")
    assert (ran.commands, results(agent)) == ([], ["mkfs is deny"])


@pytest.mark.parametrize("order", list(permutations((ToolGuardMixin, CheatingMixin))))
async def test_a_layer_that_swaps_the_call_runs_nothing(
    order: tuple[type[ReActAgent], ...],
) -> None:
    ran = Ran()
    kind: Any = type("Stack", (*order, ReActAgent), {})
    agent = kind(model=ScriptedModel([sh("ls"), "ok"]), tools=[ran.sh], policy=POLICY)
    await agent.run("go")
    assert ran.commands == []


WORDS = ("ls", "rm", "mkfs")
COMMANDS = st.lists(st.sampled_from([f"{word} {n}" for word in WORDS for n in "ab"]), max_size=4)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(COMMANDS, min_size=1, max_size=3),
    answers=st.lists(st.sampled_from(["approve", "deny", "restart", "interrupt"]), max_size=8),
    outside=st.booleans(),
)
def test_in_every_order_nothing_runs_that_was_not_decided(
    backend: str, rounds: list[list[str]], answers: list[str], outside: bool
) -> None:
    """Random calls, answers, restarts and interrupts: only what was allowed or approved runs."""
    ran, approved = Ran(), list[str]()
    stack = (RewritingMixin, ToolGuardMixin) if outside else (ToolGuardMixin, RewritingMixin)
    kind: Any = type("Stack", (*stack, ReActAgent), {})
    journal = InMemoryJournal()
    script = [
        say(*[sh(command, f"{at}.{n}") for n, command in enumerate(commands)], "x")
        for at, commands in enumerate(rounds)
    ]
    model = ScriptedModel([*script, "end"] + ["again"] * 12)

    def make() -> Any:
        return kind(
            model=model, tools=[ran.sh], policy=POLICY, journal=journal, digest_key=b"k" * 32
        )

    async def main() -> None:
        agent = make()
        reply: Reply = await agent.run("go")
        for answer in answers:
            if reply.outcome is not Outcome.AWAITING_APPROVAL:
                break
            asked = reply.pending[0]
            if answer == "restart":
                agent = make()
                await agent.opened()
                continue
            if answer == "interrupt":
                await agent.interrupt()
            elif answer == "approve":
                approved.append(str(asked.preview["command"]))
                await agent.approve(asked.id, by="ann")
            else:
                await agent.deny(asked.id, by="ann")
            reply = await agent.resume()

    name, options = virtual_backend(backend)
    anyio.run(main, backend=name, backend_options=options)
    assert [command for command in ran.commands if command.startswith("mkfs")] == []
    released = [command for command in ran.commands if command.startswith("rm")]
    assert all([released.count(command) <= approved.count(command) for command in released])


async def test_qp_36_two_questions_are_answered_one_after_the_other_without_a_model_call() -> None:
    ran = Ran()
    agent = guarded([say(sh("rm a", "1"), sh("rm b", "2")), "done"], ran)
    reply = await agent.run("go")
    first, second = reply.pending
    await agent.approve(first.id, by="ann")
    parked = await agent.resume()
    assert (ran.commands, parked.outcome) == (["rm a"], Outcome.AWAITING_APPROVAL)
    assert [one.id for one in parked.pending] == [second.id]
    await agent.approve(second.id, by="ann")
    assert (await agent.resume()).text == "done"
    assert (ran.commands, agent.pending) == (["rm a", "rm b"], ())


async def test_qp_44_an_approver_that_raises_denies() -> None:
    def broken(approval: Approval) -> Approve:
        raise RuntimeError("no line")

    ran = Ran()
    agent = guarded([sh("rm a"), "I cannot."], ran, approver=broken)
    assert (await agent.run("go")).text == "I cannot."
    assert ran.commands == []
    assert results(agent)[0].startswith("Denied")
