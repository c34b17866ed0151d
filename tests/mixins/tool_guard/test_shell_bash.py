"""Held against bash itself: every program that bash tries to run was seen, or the text is asked
about. Nothing runs: no program is to be found, and bash only tells what it looked for."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_parse import ShellCommand, parse_shell
from tests.mixins.tool_guard.guard_kit import judge, plain_workspace

BASH = shutil.which("bash") or ""
TELL = """command_not_found_handle() {
    printf '%s\\x1f' "$@" $'\\x1e' >> "$HOME/tried"
    return "${#2}"
}
"""
pytestmark = [
    pytest.mark.real_clock,
    pytest.mark.skipif(not BASH, reason="bash is not installed, and this compares with it"),
]
WORDS = [
    "~/y",
    "$HOME/z",
    "a\\ b",
    '"a\\$b\\\\c\\d"',
    "$'t\\tn\\n'",
    "../v",
    '"a  b"',
    "$HOME",
    "~",
    "a~",
    '"~"',
    "a:~/x",
    "aa",
    "bb",
    "cc",
    "'dd'",
    '"ee"',
    "f''f",
    'g"g"',
    "\\hh",
    "$X",
    "${X}",
    "$(ii)",
    "`jj`",
    '"$(kk)"',
    "{ll,mm}",
    "-x",
    "a=b",
    "Y=nn",
    "\\\n",
    "#oo",
    "$'pp'",
    '$"qq"',
    "x#y",
    "'r s'",
    "${Z:-tt}",
    "$((1+1))",
    "<(uu)",
    "*",
    "!",
]
GLUE = [
    " ",
    " ",
    " ",
    "",
    ";",
    "\n",
    " && ",
    " || ",
    " | ",
    " & ",
    " ; ",
    "\t",
    "  # ",
    " > out ",
    " 2>&1 ",
    " < in ",
    " <<< ",
    "\\\n",
]
FRAMES = [
    "{}",
    "( {} )",
    "{{ {}; }}",
    "if {}; then aa; fi",
    "for i in 1; do {}; done",
    "X=bb; {}",
    "f() {{ {}; }}; f",
    "eval '{}'",
    "bb <<E\n{}\nE",
    "bb <<'E'\n{}\nE",
    "case a in a) {};; esac",
    "! {}",
    "time {}",
    "{} | bb",
    "aa && {}",
    "X=cc {}",
    'bb "$( {} )"',
    "bb `{}`",
    "[[ a == $( {} ) ]]",
    "[[ a && ( b || -n `{}` ) ]]",
    "bb $(( 1 + $( {} ) ))",
    "(( 1 + $( {} ) ))",
    "for ((i=0;i<1;i++)); do {}; done",
    "bb ${{Q:-$( {} )}}",
    "bb ${{X/a/`{}`}}",
    'bb "${{X:$( {} ):1}}"',
    "Y[$( {} )]=1",
    "Y=(aa $( {} ))",
    "case $( {} ) in a) bb;; esac",
    "case a in $( {} )) bb;; a) cc;; esac",
    "bb < <( {} )",
    "bb > $( {} )",
    "bb <<< $( {} )",
    "cat <<E && [[ a == $( {} ) ]]\n$( {} )\nE",
    "until {}; do break; done",
    "export Y=$( {} )",
    "local Y=`{}`; declare Y=$( {} )",
    "while read -r l; do {}; done <<< x",
    "f() if {}; then bb; fi; f",
    "{} &\nwait",
    "trap '{}' EXIT",
    "echo '{}' | eval \"$(cat)\"",
    "[[ a =~ $( {} ) ]] || bb",
    'test a = "$( {} )"',
    "echo $[ $( {} ) ]",
    ". <(echo '{}')",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 6))):
        parts += [draw(st.sampled_from(WORDS)), draw(st.sampled_from(GLUE))]
    frame, inner = draw(st.sampled_from(FRAMES)), "".join(parts).rstrip(" ")
    return frame.format(*[inner] * frame.count("{}"))


def tried_by_bash(text: str, folder: Path) -> list[list[str]]:
    """What bash would run, program and arguments, with nothing to be found."""
    subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", f"{TELL}PATH=/nowhere\n{text}", "bash"],
        cwd=folder,
        env={"X": "aa", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=10,
        check=False,
    )
    tried = folder / "tried"
    told = tried.read_text(errors="replace") if tried.exists() else ""
    return [words.split("\x1f")[:-1] for words in told.split("\x1e\x1f")[:-1]]


def is_like(command: ShellCommand, words: list[str], home: str) -> bool:
    """Whether the parser saw a command so: the same words, as far as it is certain of them."""
    if command.program != words[0].rsplit("/", 1)[-1]:
        return False
    seen = [word.one for word in command.words]
    if None in seen or len(seen) != len(words) - 1:
        return None in seen
    pairs = zip(seen, words[1:], strict=True)  # a quoted `~` counts as a home, to be careful
    return all(said in (word, re.sub(r"^~(?=/|$)", home, word or "")) for word, said in pairs)


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(text=texts())
def test_what_bash_runs_was_seen(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("bash")
    script = parse_shell(text)
    if script.problem is not None or any(c.program is None for c in script.commands):
        assert judge(text, Places(plain_workspace(folder))) != "allow"
        return
    for words in tried_by_bash(text, folder):
        assert any(is_like(command, words, str(folder)) for command in script.commands), words


def test_bash_tells_what_it_would_run(tmp_path: Path) -> None:
    """Without this the comparison could hold because bash says nothing."""
    assert tried_by_bash("aa; bb 'c d' $(ee)", tmp_path) == [["aa"], ["ee"], ["bb", "c d"]]
