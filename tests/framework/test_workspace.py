"""A path never leads out of a workspace, whatever stands in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from callboard.errors import ConfigurationError
from callboard.workspace import OutsideWorkspace, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, a folder below it, and a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside" / "sub").mkdir(parents=True)
    (tmp_path / "inside" / "note.txt").write_text("note")
    (tmp_path / "inside" / "sub" / "deep.txt").write_text("deep")
    return tmp_path / "inside"


def read(workspace: Workspace, path: str) -> str:
    with workspace.open(path) as file:
        return file.read().decode()


def open_handles() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize(
    "path", ["note.txt", "./note.txt", "sub/../note.txt", "sub//./../note.txt", "/{root}/note.txt"]
)
def test_a_path_inside_is_opened(root: Path, path: str) -> None:
    absolute = path.replace("/{root}", str(root))
    assert read(Workspace(root), absolute) == "note"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "sub/../../secret.txt",
        "sub/../../inside/../secret.txt",
        "..",
        "/etc/passwd",
        "/{root}/../secret.txt",
        "/{root}-beside/note.txt",
        "note.txt\0/../../secret.txt",
    ],
)
def test_a_path_that_leads_out_is_refused(root: Path, path: str) -> None:
    with pytest.raises(OutsideWorkspace):
        read(Workspace(root), path.replace("/{root}", str(root)))


@pytest.mark.parametrize("target", ["../secret.txt", "../../secret.txt", "{outside}/secret.txt"])
def test_a_link_that_leads_out_is_refused(root: Path, target: str) -> None:
    (root / "link").symlink_to(target.replace("{outside}", str(root.parent)))
    with pytest.raises(OutsideWorkspace):
        read(Workspace(root), "link")


def test_a_folder_link_that_leads_out_is_refused(root: Path) -> None:
    (root / "sub" / "up").symlink_to("../..")
    with pytest.raises(OutsideWorkspace):
        read(Workspace(root), "sub/up/secret.txt")


@pytest.mark.parametrize("target", ["sub/deep.txt", "./sub/../sub/deep.txt", "{root}/sub/deep.txt"])
def test_a_link_that_stays_inside_is_followed(root: Path, target: str) -> None:
    (root / "link").symlink_to(target.replace("{root}", str(root)))
    assert read(Workspace(root), "link") == "deep"


def test_links_in_a_circle_are_an_error_and_not_a_hang(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        read(Workspace(root), "a")


def test_a_pipe_is_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read(Workspace(root), "pipe")


def test_a_missing_file_is_named_as_it_was_asked_for(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: 'sub/none\.txt'"):
        read(Workspace(root), "sub/none.txt")


def test_a_path_through_a_file_is_an_error(root: Path) -> None:
    with pytest.raises(NotADirectoryError):
        read(Workspace(root), "note.txt/below")


def test_a_folder_is_not_a_file(root: Path) -> None:
    with pytest.raises(IsADirectoryError):
        read(Workspace(root), "sub")


def test_locate_tells_where_a_path_leads_even_if_nothing_is_there_yet(root: Path) -> None:
    (root / "link").symlink_to("sub")
    assert Workspace(root).locate("link/new.txt") == root / "sub" / "new.txt"


def test_locate_of_the_root_is_the_root(root: Path) -> None:
    assert Workspace(root).locate("sub/..") == root


def test_entries_are_sorted_and_say_what_they_are(root: Path) -> None:
    (root / "link").symlink_to("note.txt")
    found = [(entry.name, entry.kind, entry.size_bytes) for entry in Workspace(root).entries()]
    assert found == [("link", "link", None), ("note.txt", "file", 4), ("sub", "folder", None)]


def test_walk_names_the_files_below_a_folder_and_enters_no_link(root: Path) -> None:
    (root / "sub" / "up").symlink_to("..")
    assert list(Workspace(root).walk()) == ["note.txt", "sub/deep.txt"]
    assert list(Workspace(root).walk("sub")) == ["sub/deep.txt"]


def test_walk_skips_the_folders_that_it_is_told_to(root: Path) -> None:
    assert list(Workspace(root).walk(skip=frozenset({"sub"}))) == ["note.txt"]


def test_no_handle_stays_open(root: Path) -> None:
    workspace, before = Workspace(root), open_handles()
    read(workspace, "sub/deep.txt")
    list(workspace.walk())
    workspace.entries("sub")
    with pytest.raises(OutsideWorkspace):
        read(workspace, "sub/../../x")
    assert open_handles() == before


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a folder"):
        Workspace(tmp_path / "none")
