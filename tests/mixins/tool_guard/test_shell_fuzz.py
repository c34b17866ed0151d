"""Nothing thrown at the shell detector makes it raise, hang, or pass what it cannot read."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard_mixins.tool_guard.places import Places
from callboard_mixins.tool_guard.shell_parse import parse_shell
from callboard_mixins.tool_guard.shell_tree import MOST_BYTES
from tests.mixins.tool_guard.guard_kit import corpus, judge, trapped_workspace

DENIED = [text for _, text in corpus("deny")]
PIECES = st.sampled_from(
    "; & && | || ( ) { } $( ` ' \" \\ \n < > << <<< # $ $x ${x} rm -rf / ~ * ? [ ] ! if then fi "
    "for in do done case esac EOF bash -c eval = += {a,b} $'\\x41' <( >( 2>&1 \\\n \t".split(" ")
)
relaxed = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(trapped_workspace(tmp_path_factory.mktemp("fuzz")))


@relaxed
@given(text=st.text(max_size=200))
def test_any_text_gets_a_verdict(places: Places, text: str) -> None:
    verdict = judge(text, places)
    assert verdict != "allow" or parse_shell(text).problem is None


@relaxed
@given(pieces=st.lists(PIECES, max_size=25), gap=st.sampled_from(["", " "]))
def test_any_heap_of_shell_signs_gets_a_verdict(
    places: Places, pieces: list[str], gap: str
) -> None:
    text = gap.join(pieces)
    verdict = judge(text, places)
    assert verdict != "allow" or parse_shell(text).problem is None


UNQUOTED = [text for text in DENIED if not set(text) & set("'\"\\`$#\n")]


@st.composite
def respelled(draw: st.DrawFn) -> str:
    """A refused command in another spelling that a shell reads alike, or not at all."""
    text = draw(st.sampled_from(UNQUOTED))
    for _ in range(draw(st.integers(1, 3))):
        places = [at for at in range(1, len(text)) if text[at - 1 : at + 1].isalpha()]
        at = draw(st.sampled_from(places or [len(text)]))
        text = text[:at] + draw(st.sampled_from(["''", '""', "\\", "\\\n"])) + text[at:]
    blank = draw(st.sampled_from(["", " ", "\t", "\n", ";", " \\\n"]))
    return (blank + text.replace(" ", draw(st.sampled_from([" ", "  ", "\t", " \\\n"])))).lstrip(
        ";"
    )


@relaxed
@given(text=respelled())
def test_a_refused_command_does_not_pass_in_another_spelling(places: Places, text: str) -> None:
    """Empty quotes, escapes, continued lines and blanks hide nothing."""
    assert judge(text, places) != "allow"


@relaxed
@given(text=st.sampled_from(DENIED), at=st.integers(0, 60), extra=PIECES)
def test_a_sign_anywhere_in_a_refused_command_is_no_failure(
    places: Places, text: str, at: int, extra: str
) -> None:
    assert judge(text[:at] + extra + text[at:], places) in ("allow", "ask", "deny")


@pytest.mark.parametrize("text", [t for t in DENIED if t.startswith(("rm ", "curl ", "cat "))])
def test_empty_quotes_in_each_word_change_nothing(text: str, places: Places) -> None:
    program, rest = text.split(" ", 1)
    for spelled in (f"{program[0]}''{program[1:]}", f'{program}""', f"\\{program}"):
        assert judge(f"{spelled} {rest}", places) == "deny"


NESTED = ("$(", "`", "(", "{ ", '"$(', "<(", "${x:-", "$((", "if ", "bash -c '", "[[ ", "a=(")


@pytest.mark.parametrize("opening", NESTED)
@pytest.mark.parametrize("count", [50, 1_000, 500_000])
def test_deep_or_huge_text_is_asked_about_soon(opening: str, count: int, places: Places) -> None:
    begun = time.perf_counter()
    assert judge(opening * count, places) == "ask"
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    "text",
    [
        "a|" * 30_000,
        "a <<E\n" * 10_000,
        "{a,b}" * 2_000,
        "$(" * 200 + ")" * 200,
        "x" * 1_000_000,
        "ls " + "../" * 10_000,
        "cat " + "{a,b,c}" * 8,
        "ls; " * 2_000,
        "bash -c " * 2_000,
        "x[" * 500_000,
        "x[" * 30_000,
        "cat " + "* " * 9_000,
        "cat " + "../x " * 9_000,
        "cat " + "a/b/c/d " * 6_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_costly_text_is_asked_about_soon(text: str, places: Places) -> None:
    begun = time.perf_counter()
    assert judge(text, places) != "allow"
    assert time.perf_counter() - begun < 5


def test_a_text_beyond_the_bound_is_not_read() -> None:
    script = parse_shell("ls " + "a" * MOST_BYTES)
    assert script.commands == ()
    assert str(MOST_BYTES) in (script.problem or "")
