"""What a shell evaluates is code: held against bash, and not asked about where it is a number."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from callboard_mixins.tool_guard.shell_parse import parse_shell

BASH = shutil.which("bash") or ""
RISKY = [  # x holds what runs a command if it is evaluated
    "echo $((x))",
    "echo $((1 + x * 2))",
    "((x)); true",
    "for ((i=x;i<0;i++)); do :; done",
    "[[ x -eq 0 ]]; true",
    "[[ $x -gt 0 ]]; true",
    "let y=x; true",
    "declare -i y=x",
    "echo ${!x}",
    "s=hello; echo ${s:x:1}",
    "a=(1 2); echo ${a[x]}",
    'a=(1); unset "$x"',
    'printf -v "$x" y',
    'read "$x" <<< 1',
    'test -v "$x"; true',
    "[[ -v $x ]]; true",
]
PLAIN = [
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
    "for i in 1 2 3; do echo $((i*2)); done",
    "for i in {1..5}; do echo $((i*2)); done",
    "for ((i=0;i<3;i++)); do echo $i; done",
    "n=$(wc -l < README.md); echo $((n + 1))",
    "n=$(grep -c x README.md); [[ $n -gt 3 ]] && echo many",
    "start=$(date +%s); ls; echo $(( $(date +%s) - start ))",
    "[[ $? -eq 0 ]] && echo ok",
    "s=hello; echo ${s:0:2} ${#s} ${s@Q}",
    "a=(a b c); echo ${a[0]} ${a[@]:1} ${#a[@]}",
    "echo ${name:-default} ${!prefix@}",
]


@pytest.mark.parametrize("text", RISKY)
def test_what_evaluates_a_variable_is_not_understood(text: str) -> None:
    assert parse_shell(f"read -r x < list; {text}").problem is not None


@pytest.mark.real_clock
@pytest.mark.skipif(not BASH, reason="bash is not installed, and this compares with it")
@pytest.mark.parametrize("text", RISKY)
def test_bash_does_run_what_is_evaluated_so(text: str, tmp_path: Path) -> None:
    """Without this a form might be asked about for nothing."""
    (tmp_path / "list").write_text("a[$(: > ran)]\n")
    subprocess.run(
        [BASH, "-c", f"read -r x < list; {text}"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("text", PLAIN)
def test_numbers_are_no_code(text: str) -> None:
    assert parse_shell(text).problem is None


def test_a_prompt_expansion_is_not_understood() -> None:
    assert "prompt" in (parse_shell("x=$(cat f); echo ${x@P}").problem or "")


def test_a_value_put_together_in_the_text_is_found_out() -> None:
    text = """x='a[$'; y='(id)]'; z="$x$y"; echo $((z))"""
    assert parse_shell(text).problem is not None
