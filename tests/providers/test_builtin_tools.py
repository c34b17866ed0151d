"""The tools that come with the command line: what they answer, and what they refuse."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.tooling.tools import Tool
from callboard.workspace import OutsideWorkspace
from callboard_providers.tools import calculate, current_time, file_tools
from callboard_providers.tools.calculator import evaluate
from callboard_providers.tools.clock import describe, find_zone


def run(tool: Tool, **arguments: Any) -> str:
    text = tool.function(**arguments)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(12 + 30) * 2", "84"),
        ("0.1 + 0.2", "0.3"),
        ("7 / 2", "3.5"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        ("84 / 2", "42"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("2 ** -1", "0.5"),
        ("6 × 7", "42"),
        ("sqrt(2) ** 2", "2"),
        ("round(10 / 3, 2)", "3.33"),
        ("max(1, 2, 3) + gcd(12, 18)", "9"),
        (" pi ", "3.14159265358979"),
        ("1_000 + 1e3", "2000"),
    ],
)
def test_the_calculator_computes(expression: str, text: str) -> None:
    assert run(calculate, expression=expression) == text


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", "is not an expression"),
        ("2 +", "is not an expression"),
        ("1 / 0", "divides by zero"),
        ("2 ^ 3", r"written with \*\*"),
        ("1,000 + 1", "without commas"),
        ("sqrtt(4)", "did you mean sqrt"),
        ("price * 2", "give numbers, not names"),
        ("__import__('os').system('true')", "is not arithmetic"),
        ("(1).__class__", "is not arithmetic"),
        ("[1 for _ in (1,)]", "is not arithmetic"),
        ("'a' * 3", "is not arithmetic"),
        ("True + 1", "is not arithmetic"),
        ("sqrt(-1)", "cannot be computed|expected a nonnegative|math domain"),
        ("(-8) ** 0.5", "not a real number"),
        ("sqrt(1, 2)", "cannot be computed"),
        ("1e308 * 10", "not a finite number"),
    ],
)
def test_the_calculator_says_what_is_wrong(expression: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "10 ** 1001",
        "(-10) ** 100000000",
        "factorial(100000)",
        "round(1, -1000000000)",
        "1" * 1001,
        "(" * 400 + "1" + ")" * 400,
        "-" * 990 + "1",
        "10 ** 999 * 10 ** 999",
        "2.0 ** 100000",
        "exp(100000)",
    ],
)
def test_the_calculator_refuses_what_would_take_long(expression: str) -> None:
    with pytest.raises(ValueError, match=r"digits|characters|deep|large|up to|not an expression"):
        evaluate(expression)


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9))
def test_the_calculator_agrees_with_python(left: int, right: int) -> None:
    assert evaluate(f"{left} + {right}") == left + right
    assert evaluate(f"({left}) // {right}") == left // right
    assert evaluate(f"sqrt({right})") == math.sqrt(right)


@pytest.mark.parametrize("name", ["Asia/Tokyo", "asia/tokyo", "Tokyo", " tokyo "])
def test_a_zone_is_found_by_its_name_or_its_city(name: str) -> None:
    assert find_zone(name).key == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("name", "why"),
    [("Europe/Pariss", "did you mean Europe/Paris"), ("Tokio", "Asia/Tokyo"), ("%!", "such as")],
)
def test_a_wrong_zone_is_told_with_zones_like_it(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        find_zone(name)


def test_a_time_is_described_with_weekday_zone_and_offset() -> None:
    moment = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
    zone = find_zone("Asia/Kolkata")
    expected = "Monday 2026-11-30 17:30:00 in Asia/Kolkata (UTC+05:30)"
    assert describe(moment.astimezone(zone), zone) == expected


def test_the_clock_tells_utc_when_no_zone_is_given() -> None:
    assert datetime.now(UTC).strftime("%Y-%m-%d") in run(current_time)


def tools_below(folder: Path) -> tuple[Tool, Tool, Tool]:
    (folder / "docs").mkdir()
    (folder / "docs" / "poem.txt").write_text("one\nTwo words\nthree\n")
    (folder / "picture.bin").write_bytes(b"\x00\x01two")
    return file_tools(folder)


def test_a_file_is_read(tmp_path: Path) -> None:
    read_file, _, _ = tools_below(tmp_path)
    assert run(read_file, path="docs/poem.txt") == "one\nTwo words\nthree"
    assert run(read_file, path="docs/poem.txt", first_line=3) == "three"


def test_a_long_file_is_read_in_parts(tmp_path: Path) -> None:
    read_file, _, _ = file_tools(tmp_path)
    (tmp_path / "long.txt").write_text("\n".join(f"line {n}" for n in range(1, 451)))
    assert run(read_file, path="long.txt").endswith("(there is more: go on with first_line=201)")
    last = run(read_file, path="long.txt", first_line=401).splitlines()
    assert (last[0], last[-1]) == ("line 401", "line 450")


def test_one_endless_line_is_bounded(tmp_path: Path) -> None:
    read_file, _, _ = file_tools(tmp_path)
    (tmp_path / "line.txt").write_text("x" * 1_000_000)
    assert len(run(read_file, path="line.txt")) < 25_000


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    read_file, _, _ = tools_below(tmp_path)
    with pytest.raises(ValueError, match="not text"):
        run(read_file, path="picture.bin")


def test_a_folder_is_listed(tmp_path: Path) -> None:
    _, list_files, _ = tools_below(tmp_path)
    assert run(list_files) == "docs/\npicture.bin  5 bytes"


def test_files_are_searched_in_any_case(tmp_path: Path) -> None:
    _, _, search_files = tools_below(tmp_path)
    assert run(search_files, text="two") == "docs/poem.txt:2: Two words"
    assert run(search_files, text="two", file_names="*.md") == "(no file holds 'two')"


def test_a_search_is_bounded(tmp_path: Path) -> None:
    _, _, search_files = file_tools(tmp_path)
    (tmp_path / "many.txt").write_text("hit\n" * 1000)
    lines = run(search_files, text="hit").splitlines()
    assert len(lines) == 51
    assert "stopped after 50 lines" in lines[-1]


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "docs/../../secret", "leak"])
def test_no_tool_leaves_the_folder(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "in").mkdir()
    read_file, list_files, search_files = tools_below(tmp_path / "in")
    os.symlink("../secret", tmp_path / "in" / "leak")
    for tool in (read_file, list_files):
        with pytest.raises(OutsideWorkspace):
            run(tool, path=path)
    assert "hidden" not in run(search_files, text="hid")
