"""The corpus: what must be refused or asked about, and what must not get in a developer's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard_mixins.tool_guard.detectors import path_detector
from callboard_mixins.tool_guard.places import Places
from tests.mixins.tool_guard.guard_kit import (
    LEVELS,
    corpus,
    judge,
    look,
    plain_workspace,
    trapped_workspace,
    worst,
)

NEEDLESS = {  # asked about although harmless: it cannot be told from its likes
    "git push origin feature/x",
    "curl -s http://localhost:8000/health",
    "python3 -c 'import sys; print(sys.version)'",
    "grep -rl foo src | xargs sed -i 's/foo/bar/g'",
    'PATH="$PWD/node_modules/.bin:$PATH" tsc',
    "cat files.txt | xargs ls",
    'total=0; for f in *.txt; do total=$((total + $(wc -l < "$f"))); done; echo $total',
    "env | grep PATH",
}
WRAPPERS = (
    "bash -c {quoted}",
    "sh -c {quoted} x",
    "eval {quoted}",
    "env {text}",
    "env A=1 bash -c {quoted}",
    "sudo {text}",
    "nohup {text}",
    "time {text}",
    "timeout 5 {text}",
    "ls; {text}",
    "ls && {text}",
    "ls || {text}",
    "ls & {text}",
    "ls | {text}",
    "ls\n{text}",
    "( {text}\n)",
    "{{ {text}\n}}",
    "echo $( {text}\n)",
    "cat <( {text}\n)",
    "f() {{ {text}\n}}; f",
    "if true; then {text}\nfi",
    "for i in 1 2; do {text}\ndone",
    "while true; do {text}\ndone",
    "case x in x) {text}\nesac",
    "bash <<'END_OF_TEXT'\n{text}\nEND_OF_TEXT",
    "cat <<'END_OF_TEXT' | sh\n{text}\nEND_OF_TEXT",
    "bash <<< {quoted}",
    "echo {quoted} | sh",
    "trap {quoted} EXIT",
    "xargs -I X sh -c {quoted}",
    "find . -exec sh -c {quoted} \\;",
    "ssh host {quoted}",
    'X={quoted}; eval "$X"',
    "X={quoted} && $X",
    "watch {quoted}",
    "script -c {quoted}",
    "git -c alias.x={aliased} x",
    "\\\n {text}",
    "  \t{text}  ",
    "{text} # harmless",
    "{text} > /dev/null 2>&1",
)


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(trapped_workspace(tmp_path_factory.mktemp("trapped")))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(plain_workspace(tmp_path_factory.mktemp("plain")))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


@pytest.mark.parametrize("text", [text for _, text in corpus("deny")])
def test_a_ruinous_command_is_refused(text: str, trapped: Places) -> None:
    assert judge(text, trapped) == "deny"


@pytest.mark.parametrize("text", [text for _, text in corpus("ask")])
def test_a_command_that_may_do_harm_does_not_pass(text: str, trapped: Places) -> None:
    assert judge(text, trapped) != "allow"


@pytest.mark.parametrize(("verdict", "path"), corpus("paths"))
def test_a_path_gets_its_verdict(verdict: str, path: str, trapped: Places) -> None:
    found = worst(look(path_detector(workspace=trapped.workspace), {"path": path}))
    assert found == verdict


@pytest.mark.parametrize("text", [text for _, text in corpus("ordinary")])
def test_an_ordinary_command_passes_or_at_most_asks(text: str, plain: Places) -> None:
    assert judge(text, plain) == ("ask" if text in NEEDLESS else "allow")


def test_at_most_three_in_a_hundred_ordinary_commands_ask(plain: Places) -> None:
    texts = [text for _, text in corpus("ordinary")]
    asked = [text for text in texts if judge(text, plain) != "allow"]
    assert len(asked) <= 0.03 * len(texts), asked


def test_the_corpus_is_large_and_holds_nothing_twice() -> None:
    commands = [text for name in ("deny", "ask") for _, text in corpus(name)]
    ordinary = [text for _, text in corpus("ordinary")]
    assert len(set(commands)) == len(commands) >= 200
    assert len(set(ordinary)) == len(ordinary) >= 200
    assert len(set(corpus("paths"))) == len(corpus("paths"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_wrapper_lets_a_refused_command_pass(wrapper: str, trapped: Places) -> None:
    """Wrapped in anything, a command that is refused alone is at least asked about."""
    passed: list[str] = []
    for _, text in corpus("deny"):
        aliased = quoted(f"!{text}")
        wrapped = wrapper.format(text=text, quoted=quoted(text), aliased=aliased)
        if LEVELS.index(judge(wrapped, trapped)) < LEVELS.index("ask"):
            passed.append(wrapped)
    assert passed == []


def test_every_file_of_the_corpus_is_read() -> None:
    files = {path.stem for path in (Path(__file__).parent / "corpus").iterdir()}
    assert files == {"deny", "ask", "ordinary", "paths"}
