"""Rules are data: what is wrong in them is refused by name, before anything is decided by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callboard.errors import ConfigurationError
from callboard_mixins import GuardAction, GuardMode, GuardPolicy, GuardRule
from callboard_mixins.tool_guard.rules import load_rules, read_rules

GOOD = """
mode: dont_ask
default: deny
rules:
  - id: look
    action: allow
    tools: [shell]
    programs: [ls, git status]
  - id: no-secrets
    action: deny
    patterns: ["(?i)password"]
    exclude: ["example"]
    reason: passwords stay here
"""


def test_a_file_and_python_make_the_same_rules(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(GOOD)
    found = load_rules(file)
    assert (found.mode, found.default) == (GuardMode.DONT_ASK, GuardAction.DENY)
    assert found.rules[0] == GuardRule(
        id="look", action=GuardAction.ALLOW, tools=("shell",), programs=("ls", "git status")
    )


def test_a_policy_takes_plain_data() -> None:
    policy = GuardPolicy(rules=({"id": "a", "action": "deny"},))  # type: ignore[arg-type]
    assert policy.rules == (GuardRule(id="a", action=GuardAction.DENY),)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"action": "deny"}, "rule 1: id: Field required"),
        ({"id": "a"}, r"rule 1 \('a'\): action: Field required"),
        ({"id": "a", "action": "forbid"}, "'allow', 'ask' or 'deny' .got 'forbid'"),
        ({"id": "a", "action": "deny", "tool": ["x"]}, "tool: unknown word; there are: id, action"),
        ({"id": "a", "action": "deny", "patterns": ["("]}, r"'\(' is no regular expression"),
        ({"id": "a", "action": "deny", "severity": "awful"}, "severity: Input should be 'info'"),
        ({"id": "a", "action": "deny", "effects": ["safe"]}, "effects.0: Input should be 'pure'"),
        ({"id": "a", "action": "deny", "exclude": ["x"]}, "exclude goes with patterns"),
        ({"id": "a", "action": "deny", "parameters": ["x"]}, "parameters go with patterns"),
        ({"id": "a", "action": "allow", "at_least": "high"}, "at_least goes with categories"),
        ({"id": "a", "action": "deny", "patterns": [""]}, "'' is found in every text"),
        (
            {"id": "a", "action": "deny", "patterns": ["x"], "exclude": ["y*"]},
            "'y.' is found in every text",
        ),
        ({"id": "", "action": "deny"}, "at least 1 character"),
        ("deny all", "Input should be a valid dictionary"),
    ],
)
def test_qp_50_a_broken_rule_is_refused_by_name(rule: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        read_rules([rule])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mode: smart", "mode: Input should be 'ask', 'dont_ask'"),
        ("defualt: ask", "defualt: unknown word; there are: rules, mode, default"),
        ("rules: ''", "rules must be a list"),
        ("- {id: a, action: deny, action: allow}", "the word 'action' stands twice"),
        ("rules: 3", "rules must be a list, and is 3"),
        ("- id: [", "is no YAML"),
        ("just words", "a rule file is a list of rules"),
        ("[{id: a, action: ask}, {id: a, action: deny}]", "two rules have the id 'a'"),
    ],
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=f"rules.yaml.*{told}"):
        load_rules(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="none.yaml cannot be read"):
        load_rules(tmp_path / "none.yaml")


def test_sec_03_yaml_makes_no_objects(tmp_path: Path) -> None:
    """Data never names code to run."""
    file = tmp_path / "rules.yaml"
    file.write_text("!!python/object/apply:os.system ['touch /tmp/owned']")
    with pytest.raises(ConfigurationError, match="is no YAML"):
        load_rules(file)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="GuardPolicy: mode: .*'smart'"):
        GuardPolicy(mode="smart")  # type: ignore[arg-type]


def test_a_detector_that_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="each must be a function"):
        GuardPolicy(detectors=("shell",))  # type: ignore[arg-type]


def test_a_bare_off_is_the_mode_of_that_name(tmp_path: Path) -> None:
    """YAML reads it as false."""
    file = tmp_path / "rules.yaml"
    file.write_text("mode: off")
    assert load_rules(file).mode is GuardMode.OFF


def test_blanks_in_a_pattern_stay() -> None:
    (rule,) = read_rules([{"id": " a ", "action": "allow", "patterns": ["^git "]}]).rules
    assert (rule.id, rule.patterns) == ("a", ("^git ",))
