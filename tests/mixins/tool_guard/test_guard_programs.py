"""Rules about programs: no spelling of a command, and no place for it, gets round a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callboard import ToolCall, tool
from callboard_mixins.tool_guard.policy import GuardPolicy, Kind
from callboard_mixins.tool_guard.rules import read_rules

NO_PUSH = {"id": "no-push", "action": "deny", "programs": ["git push", "docker push", "rm"]}


@tool
def run_command(command: str = "") -> str:
    """Runs a command."""
    return command


def verdict(rule: dict[str, Any], arguments: dict[str, Any]) -> Kind:
    policy = GuardPolicy.of(read_rules({"rules": [rule], "default": "allow"}))
    call = ToolCall(id="c", name="run_command", raw=json.dumps(arguments))
    return policy.judge(call, run_command).kind


@pytest.mark.parametrize(
    "command",
    [
        "git -C . push",
        "git -C. push origin",
        "git --no-pager push",
        "git -c a=b push",
        "git -p push",
        "git --git-dir .git push",
        "git --git-dir=.git --work-tree . push",
        "env git -c x=y push",
        "docker --context x push y",
        "GIT push",
    ],
)
def test_options_in_front_of_a_subcommand_lift_no_refusal(command: str) -> None:
    assert verdict(NO_PUSH, {"command": command}) is Kind.AUTO_DENIED


@pytest.mark.parametrize(
    "command",
    ["git $X", 'git "$X" origin', "git p{us,ush}", "git ?ush", "git -c alias.p=push p", "$X push"],
)
def test_a_subcommand_that_only_the_run_can_tell_is_asked_about(command: str) -> None:
    assert verdict(NO_PUSH, {"command": command}) is Kind.NEEDS_APPROVAL


@pytest.mark.parametrize("command", ["git status", "git -C src log", "git commit -m push", "ls"])
def test_another_command_is_left_alone(command: str) -> None:
    assert verdict(NO_PUSH, {"command": command}) is Kind.UNGUARDED


@pytest.mark.parametrize(
    "arguments",
    [
        {"Command": "rm x"},
        {"shellCommand": "rm x"},
        {"command-line": "rm x"},
        {"cmds": ["ls", "rm x"]},
        {"command": ["rm x"]},
        {"command": [["ls"], ["rm", "x"]]},
        {"command": {"value": "rm x"}},
        {"args": '{"command": "rm x"}'},
        {"steps": [{"cmd": ["rm", "x"]}]},
    ],
)
def test_a_command_is_found_wherever_it_stands(arguments: dict[str, Any]) -> None:
    assert verdict(NO_PUSH, arguments) is Kind.AUTO_DENIED


@pytest.mark.parametrize(
    "arguments",
    [
        {"Query": "customer_id"},
        {"q": '{"query": "customer_id"}'},
        {"query": "customer\u200b_id"},
        {"query": "ｃustomer_id"},
    ],
)
def test_a_pattern_sees_a_text_as_its_reader_does(arguments: dict[str, Any]) -> None:
    rule = {"id": "r", "action": "deny", "patterns": ["customer_id"], "parameters": ["query"]}
    assert verdict(rule, arguments) is Kind.AUTO_DENIED


def test_an_allowance_is_for_the_text_as_it_stands() -> None:
    rule = {"id": "r", "action": "allow", "patterns": ["^ok$"]}
    policy = GuardPolicy.of(read_rules([rule]))
    call = ToolCall(id="c", name="run_command", raw=json.dumps({"command": "o\u200bk"}))
    assert policy.judge(call, run_command).kind is Kind.NEEDS_APPROVAL


def test_an_allowed_program_is_not_allowed_with_options_before_its_subcommand() -> None:
    rule = {"id": "r", "action": "allow", "programs": ["git status"]}
    policy = GuardPolicy.of(read_rules([rule]))
    call = ToolCall(id="c", name="run_command", raw='{"command": "git -c a=b status"}')
    assert policy.judge(call, run_command).kind is Kind.NEEDS_APPROVAL


def test_a_long_row_of_options_is_read_in_bounded_time() -> None:
    command = "git " + "-a " * 3_000 + "log"
    assert verdict(NO_PUSH, {"command": command}) is Kind.UNGUARDED


def test_arguments_too_deep_to_look_at_are_refused() -> None:
    deep: Any = {"command": "rm x"}
    for _ in range(80):
        deep = {"x": deep}
    policy = GuardPolicy.of(read_rules({"rules": [NO_PUSH], "default": "allow"}))
    call = ToolCall(id="c", name="run_command", raw=json.dumps(deep))
    with pytest.raises(ValueError, match="deep"):  # which the guard's layer takes as a denial
        policy.judge(call, run_command)
