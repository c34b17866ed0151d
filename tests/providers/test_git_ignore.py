"""Searches pass by what git ignores, and git itself says what that is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.workspace import Workspace
from callboard_providers.tools.files import paths_below

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="asks git, which is not here")

PATHS = (
    "a",
    "b.txt",
    "ab/a",
    "ab/b.txt",
    "ab/deep/a",
    "build/out.txt",
    "deep/ab/b.txt",
    "#x",
    "!y",
)


def planted(folder: Path, ignored: Mapping[str, Iterable[str]]) -> Path:
    """A repository with the paths above, and these lines in its `.gitignore` files."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for path in PATHS:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    for place, lines in ignored.items():
        (folder / place / ".gitignore").write_text("\n".join(lines))
    return folder


def told_by_git(folder: Path) -> list[str]:
    command = ["git", "-C", str(folder), "ls-files", "-z", "-co", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(filter(None, done.stdout.split("\0")))


def found(folder: Path, path: str = ".") -> list[str]:
    return sorted(paths_below(Workspace(folder), path))


@pytest.mark.parametrize(
    "lines",
    [
        ["a"],
        ["*.txt"],
        ["/a"],
        ["build/"],
        ["b.txt/"],
        ["ab/*", "!ab/a"],
        ["ab", "!ab/a"],
        ["ab/**", "!ab/a"],
        ["**/a"],
        ["**/deep/a", "# comment", "", "\\#x", "\\!y"],
        ["ab/**/a"],
        ["[a-b]*"],
        ["[^a]*"],
        ["?"],
        ["a   ", "b.txt\r"],
        ["*", "!*/", "!*.txt"],
        ["\\*"],
        ["/"],
        ["deep/ab/"],
    ],
    ids=" ".join,
)
def test_a_pattern_means_what_it_means_to_git(tmp_path: Path, lines: list[str]) -> None:
    folder = planted(tmp_path, {".": lines})
    assert found(folder) == told_by_git(folder)


def test_the_nearest_file_has_the_last_word(tmp_path: Path) -> None:
    folder = planted(tmp_path, {".": ["*.txt"], "ab": ["!b.txt", "/a"], "ab/deep": ["!a"]})
    assert found(folder) == told_by_git(folder)


def test_a_search_that_begins_inside_an_ignored_folder_looks_there(tmp_path: Path) -> None:
    folder = planted(tmp_path, {".": ["build/"]})
    assert found(folder, "build") == ["build/out.txt"]


def is_defined(line: str) -> bool:
    """gitignore(5) leaves open what two asterisks mean beside something else than a slash, and
    git's own shortcut for fixed beginnings gives them another meaning than its matcher.
    """
    return all([part == "**" or "**" not in part for part in line.lstrip("!").split("/")])


PARTS = (
    st.lists(
        st.sampled_from(
            ["a", "b", "*", "**", "?", "deep", "ab", ".txt", "[ab]", "/", "!", "build"]
        ),
        min_size=1,
        max_size=5,
    )
    .map("".join)
    .filter(is_defined)
)


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(PARTS, max_size=4), below=st.lists(PARTS, max_size=2))
def test_any_patterns_mean_what_they_mean_to_git(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], below: list[str]
) -> None:
    folder = planted(tmp_path_factory.mktemp("git"), {".": lines, "ab": below})
    assert found(folder) == told_by_git(folder)
