"""Files are found by their names, lines by regular expressions, and neither runs for ever."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.workspace import OutsideWorkspace
from callboard_providers.tools import searching_tools
from callboard_providers.tools.globs import matches

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project."""
    for name in ("main.py", "src/a.py", "src/deep/b.py", "src/notes.md", ".git/config.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"import os\n# {name}\nprint('Hello')\nend\n")
    return tmp_path


def glob(folder: Path, pattern: str, path: str = ".") -> list[str]:
    return str(searching_tools(folder)[0].function(pattern, path)).splitlines()


async def grep(folder: Path, pattern: str, **options: object) -> list[str]:
    found: str = await searching_tools(folder)[1].function(pattern, **options)
    return found.splitlines()


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["main.py", "src/a.py", "src/deep/b.py"]),
        ("./*.py", ["main.py"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/b.py"]),
        ("**/b.py", ["src/deep/b.py"]),
        ("src/**", ["src/a.py", "src/notes.md", "src/deep/b.py"]),
        ("[mn]*", ["main.py", "src/notes.md"]),
        ("*.txt", ["(no file is named '*.txt')"]),
    ],
)
def test_files_are_found_by_their_names(folder: Path, pattern: str, names: list[str]) -> None:
    assert glob(folder, pattern) == names


def test_a_pattern_counts_from_the_folder_that_is_searched(folder: Path) -> None:
    assert glob(folder, "./*.py", "src") == ["src/a.py"]


def test_many_names_are_bounded(tmp_path: Path) -> None:
    for number in range(510):
        (tmp_path / f"{number}.txt").touch()
    names = glob(tmp_path, "*.txt")
    assert len(names) == 501
    assert names[-1].startswith("(stopped after 500 files")


NAMES = st.text(st.sampled_from("ab*?"), min_size=1, max_size=3)


@given(st.lists(st.one_of(NAMES, st.just("**")), min_size=1, max_size=6))
def test_a_pattern_of_many_stars_is_soon_decided(parts: list[str]) -> None:
    begun = time.monotonic()
    matches("/".join(["aaa"] * 40), "/".join(parts * 6))
    assert time.monotonic() - begun < 5


async def test_lines_are_found_with_their_numbers(folder: Path) -> None:
    found = await grep(folder, r"^# .*\.py$", file_names="*.py")
    assert found == [
        "main.py:2: # main.py",
        "src/a.py:2: # src/a.py",
        "src/deep/b.py:2: # src/deep/b.py",
    ]


async def test_one_file_can_be_searched_with_the_lines_around(folder: Path) -> None:
    found = await grep(folder, "(?i)hello", path="src/a.py", context=1)
    assert found == ["src/a.py-2- # src/a.py", "src/a.py:3: print('Hello')", "src/a.py-4- end"]


async def test_a_wrong_expression_is_told(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"'\(' is no regular expression: missing \)"):
        await grep(folder, "(")


async def test_nothing_found_is_told(folder: Path) -> None:
    assert await grep(folder, "goodbye") == ["(no line matches 'goodbye')"]


async def test_many_lines_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_text("hit\n" * 1000)
    found = await grep(tmp_path, "hit")
    assert (len(found), found[-1]) == (101, "(stopped after 100 lines: be more exact)")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.slow
async def test_an_expression_that_runs_wild_is_ended(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 60 + "b")
    with pytest.raises(ValueError, match="took too long"):
        await grep(tmp_path, r"(a+)+$")


@pytest.mark.parametrize("path", ["..", "/etc", "up"])
async def test_no_search_leaves_the_folder(folder: Path, path: str) -> None:
    (folder / "up").symlink_to("..")
    with pytest.raises(OutsideWorkspace):
        glob(folder, "*", path)
    with pytest.raises(OutsideWorkspace):
        await grep(folder, "x", path=path)
