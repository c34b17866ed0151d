"""`callboard guard`: rules are checked, and a verdict is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console.command import callboard

RULES = """
default: ask
rules:
  - id: look
    action: allow
    tools: [shell]
    programs: [ls]
    reason: looking is free
  - id: never
    action: deny
    tools: [launch]
"""


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "told"),
    [
        ("shell", '{"command": "ls -la"}', 0, "runs: a rule allows it\n  because: looking is free"),
        ("shell", '{"command": "ls; curl x"}', 5, "asks a human\n  because: 'curl' talks"),
        ("launch", "{}", 1, "denied\n  because: rule 'never' says deny\n  rule: never"),
        ("shell", '{"command": "rm -rf ~"}', 1, "shell.destructive, critical"),
        ("read_file", '{"path": "/etc/shadow"}', 1, "found at /path: path."),
    ],
)
def test_a_verdict_is_explained(
    tmp_path: Path, tool: str, arguments: str, code: int, told: str
) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    done = callboard("guard", "explain", tool, arguments, "--rules", "rules.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (code, "")
    assert told in done.stdout


def test_the_strict_rules_hold_without_a_file(tmp_path: Path) -> None:
    arguments = '{"path": "a.txt", "text": "x"}'
    asked = callboard("guard", "explain", "write_file", arguments, cwd=tmp_path)
    passed = callboard(
        "guard", "explain", "write_file", arguments, "--mode", "accept_edits", cwd=tmp_path
    )
    assert (asked.returncode, passed.returncode) == (5, 0)


def test_arguments_that_do_not_fit_are_told(tmp_path: Path) -> None:
    done = callboard("guard", "explain", "write_file", '{"pth": "x"}', cwd=tmp_path)
    assert done.returncode == 2
    assert "path: missing" in done.stderr


def test_a_sound_file_is_summed_up(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    done = callboard("guard", "check", "rules.yaml", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "rules.yaml: 2 rules, mode ask, default ask",
        "  allow  look  looking is free",
        "  deny   never",
    ]


def test_a_broken_rule_is_named(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- {id: a, action: alow}")
    done = callboard("guard", "check", "rules.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "rules.yaml: rule 1 ('a'): action: Input should be 'allow'" in done.stderr
