"""The commands that the parser sees in a text, and what it says that it cannot see."""

from __future__ import annotations

import pytest

from callboard_mixins.tool_guard.shell_parse import ShellCommand, parse_shell


def programs(text: str) -> list[str | None]:
    script = parse_shell(text)
    assert script.problem is None, script.problem
    return [command.program for command in script.commands]


def last(text: str) -> ShellCommand:
    script = parse_shell(text)
    assert script.problem is None, script.problem
    return script.commands[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# only words", []),
        ("ls | wc; cat a && rm b || echo & id", ["ls", "wc", "cat", "rm", "echo", "id"]),
        ("echo 'a; b' \"c | d\"", ["echo"]),
        ("/usr/bin/rm x", ["rm"]),
        ("r'm' x; \"rm\" x; r\\m x", ["rm", "rm", "rm"]),
        ("echo $(id) `pwd` <(ls)", ["id", "pwd", "ls", "echo"]),
        ("A=1 B=$(id) ls", ["id", "ls"]),
        ("f() { id; }", ["function", "id"]),
        ("$X y", [None]),
        ("a=b {rm,x}", [None]),
        ("X=rm; $X y", ["", "rm"]),
        ("> out", [""]),
        ("sudo -u me env A=1 nohup id", ["sudo", "env", "nohup", "id"]),
        ("bash -c 'id; ls'", ["bash", "id", "ls"]),
        ('bash -c "$X"', ["bash", None]),
        ("find . -exec id {} \\;", ["find", "id"]),
        ("echo 'id' | sh", ["echo", "sh", "id"]),
        ("cat <<E | sh\nid\nE", ["cat", "sh", "id"]),
        ("command -v id", ["command"]),
        ("sudo --unheard-of x id", ["sudo", None]),
    ],
)
def test_the_programs_of_a_text(text: str, expected: list[str | None]) -> None:
    assert programs(text) == expected


def test_words_have_their_values_where_they_are_certain() -> None:
    assert last("x 'a b' \"c\"d e\\ f $'g\\n' $Y ~/z").arguments == (
        "a b",
        "cd",
        "e f",
        "g\n",
        None,
        "~/z",
    )


def test_a_word_says_what_is_known_of_it() -> None:
    (word,) = last('x "/etc/$Y/z"').words
    assert (word.value, word.known, word.source) == (None, "/etc/", '"/etc/$Y/z"')


def test_an_unquoted_star_makes_a_pattern_and_a_quoted_one_does_not() -> None:
    assert [word.pattern for word in last("x *.py '*.py' \\*.py a[bc] {a,b}").words] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_a_command_says_how_it_is_reached() -> None:
    assert last("sudo bash -c 'ls | id'").via == ("sudo", "sh -c", "pipe")


def test_a_command_knows_what_stands_before_it_in_its_pipeline() -> None:
    assert [c.program for c in last("cat a | grep b | sh -s").upstream] == ["cat", "grep"]


def test_redirections_have_operator_and_target() -> None:
    command = last("x > a 2>> b < c &> d 2>&1")
    found = [(r.op, r.target and r.target.value, r.writes) for r in command.redirections]
    assert found == [
        (">", "a", True),
        (">>", "b", True),
        ("<", "c", False),
        ("&>", "d", True),
        (">&", "1", True),
    ]


def test_a_here_document_is_the_body_of_its_redirection() -> None:
    (redirection,) = last("x <<'E'\na $b\nE").redirections
    assert redirection.body is not None
    assert redirection.body.value == "a $b\n"


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("x", (".",)),
        ("cd a && x", ("a",)),
        ("cd a; x", ("a", ".")),
        ("cd a || exit 1; x", ("a",)),
        ("cd a && cd ../b && x", ("a/../b",)),
        ("(cd a); x", (".",)),
        ("cd a | cat; x", (".",)),
        ("cd /b; x", ("/b", ".")),
        ("cd; x", ("~", ".")),
        ("cd $Y; x", (None, ".")),
        ("if y; then cd a; fi; x", (".", "a")),
        ("bash -c 'cd a'; x", (".",)),
        ("eval 'cd a' && x", ("a",)),
    ],
)
def test_a_command_knows_where_it_may_run(text: str, folders: tuple[str | None, ...]) -> None:
    assert last(text).folders == folders


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("X=a; y $X", "a"),
        ("X=a; X=b; y $X", "b"),
        ("X='a b'; y \"$X\"", "a b"),
        ("X='a b'; y $X", None),
        ("X=a y $X", None),
        ("if z; then X=a; fi; y $X", None),
        ("X=a; while z; do y $X; X=/; done", None),
        ("X=a & y $X", None),
        ("(X=a); y $X", None),
        ("X=a; unset X; y $X", None),
        ("X=a; read X; y $X", None),
        ("IFS=,; X=a; y $X", None),
        ("X=$(z); y $X", None),
        ("y $HOME/a", "~/a"),
        ("y a$HOME", None),
        ("HOME=/b; y $HOME/a", "/b/a"),
    ],
)
def test_a_variable_has_a_value_only_if_it_is_certain(text: str, value: str | None) -> None:
    commands = [c for c in parse_shell(text).commands if c.program == "y"]
    assert [c.arguments for c in commands] == [(value,)]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("echo 'x", "not understood"),
        ("ls\x00", "U+0000"),
        ("l\u200bs", "U+200B"),
        ("r\\\nm x", "next line"),
        ("cat <<E\n`id`\nE", "backticks"),
        ("cat <<'E F'\nx\nE F", "plain end"),
        ("a[$(id)]=1", "array index"),
        ("ls; " * 600, "500 commands"),
        ("(" * 100 + "ls" + ")" * 100, "deep"),
        ("ls \udcff", "U+DCFF"),
    ],
)
def test_a_text_that_is_not_understood_says_why(text: str, part: str) -> None:
    assert part in (parse_shell(text).problem or "")


@pytest.mark.parametrize("text", ["!'dd'", '!"ls"', "a && !'ls'", "!$x"])
def test_a_mark_of_negation_without_a_blank_belongs_to_the_word(text: str) -> None:
    """bash runs a program `!dd` then, and no `dd`."""
    assert parse_shell(text).problem is not None
