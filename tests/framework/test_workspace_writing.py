"""Writing below a workspace: whole or not at all, and never outside of it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.workspace import OutsideWorkspace, Workspace

Write = Callable[[Workspace, str], None]
WRITES: dict[str, Write] = {
    "write": lambda space, path: space.write(path, b"new"),
    "create": lambda space, path: space.create(path, b"new"),
    "append": lambda space, path: space.append(path, b"new"),
    "make_folder": lambda space, path: space.make_folder(path),
    "move": lambda space, path: space.move("note.txt", path),
}
every_write = pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file and a folder in it, and a secret beside it."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside" / "sub").mkdir(parents=True)
    (tmp_path / "inside" / "note.txt").write_text("note")
    return tmp_path / "inside"


def outside(root: Path) -> dict[str, str]:
    """What stands beside the root."""
    files = [path for path in root.parent.rglob("*") if path.is_file()]
    return {str(path): path.read_text() for path in files if root not in path.parents}


@every_write
@pytest.mark.parametrize("path", ["../new.txt", "sub/../../new.txt", "/tmp/new.txt", "up/new.txt"])
def test_nothing_is_written_outside(root: Path, write: Write, path: str) -> None:
    (root / "up").symlink_to("..")
    before = outside(root)
    with pytest.raises(OutsideWorkspace):
        write(Workspace(root), path)
    assert outside(root) == before


@pytest.mark.parametrize("name", ["write", "create", "append"])
@pytest.mark.parametrize("target", ["../secret.txt", "../not-yet.txt"])
def test_a_link_that_leads_out_is_not_written_through(root: Path, name: str, target: str) -> None:
    (root / "leak").symlink_to(target)
    before = outside(root)
    with pytest.raises(OutsideWorkspace):
        WRITES[name](Workspace(root), "leak")
    assert outside(root) == before


def test_a_link_inside_is_written_through_and_stays_a_link(root: Path) -> None:
    (root / "link").symlink_to("note.txt")
    Workspace(root).write("link", b"new")
    assert (root / "link").is_symlink()
    assert (root / "note.txt").read_text() == "new"


def test_a_second_name_outside_keeps_what_it_was(root: Path) -> None:
    os.link(root.parent / "secret.txt", root / "hard.txt")
    with pytest.raises(OSError, match="has a second name"):
        Workspace(root).append("hard.txt", b"new")
    Workspace(root).write("hard.txt", b"new")
    assert (root.parent / "secret.txt").read_text() == "secret"


@pytest.mark.parametrize("name", ["write", "create", "append"])
def test_missing_folders_are_made(root: Path, name: str) -> None:
    WRITES[name](Workspace(root), "sub/a/b/new.txt")
    assert (root / "sub/a/b/new.txt").read_text() == "new"


def test_a_write_replaces_and_leaves_nothing_beside(root: Path) -> None:
    Workspace(root).write("note.txt", b"new")
    assert (root / "note.txt").read_text() == "new"
    assert sorted(os.listdir(root)) == ["note.txt", "sub"]


def test_permissions_are_kept(root: Path) -> None:
    (root / "note.txt").chmod(0o640)
    Workspace(root).write("note.txt", b"new")
    assert stat.S_IMODE((root / "note.txt").stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(root: Path) -> None:
    old = os.umask(0o027)
    try:
        Workspace(root).write("new.txt", b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((root / "new.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["write", "append"])
def test_a_read_only_file_is_refused(root: Path, name: str) -> None:
    (root / "note.txt").chmod(0o444)
    with pytest.raises(PermissionError, match=r"is read-only: 'note\.txt'"):
        WRITES[name](Workspace(root), "note.txt")


@pytest.mark.parametrize("name", ["write", "append"])
def test_what_is_no_file_is_not_written(root: Path, name: str) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        WRITES[name](Workspace(root), "pipe")
    with pytest.raises(IsADirectoryError, match="is a folder: 'sub'"):
        WRITES[name](Workspace(root), "sub")


def test_a_file_that_changed_since_it_was_read_is_not_replaced(root: Path) -> None:
    workspace = Workspace(root)
    with workspace.open("note.txt") as file:
        read = os.fstat(file.fileno())
    workspace.write("note.txt", b"somebody else's")
    with pytest.raises(OSError, match="changed by somebody else"):
        workspace.write("note.txt", b"mine", instead_of=read)
    assert (root / "note.txt").read_text() == "somebody else's"
    assert sorted(os.listdir(root)) == ["note.txt", "sub"]


def test_create_refuses_what_is_there(root: Path) -> None:
    (root / "dangling").symlink_to("nowhere")
    with pytest.raises(FileExistsError, match=r"File exists: 'note\.txt'"):
        Workspace(root).create("note.txt", b"new")
    assert (root / "note.txt").read_text() == "note"


def test_append_adds_at_the_end(root: Path) -> None:
    Workspace(root).append("note.txt", b", more")
    assert (root / "note.txt").read_text() == "note, more"


def test_a_folder_is_made_once_and_may_be_there(root: Path) -> None:
    for _ in range(2):
        Workspace(root).make_folder("a/b")
    assert (root / "a/b").is_dir()


def test_delete_takes_files_empty_folders_and_links_but_not_their_targets(root: Path) -> None:
    (root / "link").symlink_to("../secret.txt")
    for path in ("link", "note.txt", "sub"):
        Workspace(root).delete(path)
    assert os.listdir(root) == []
    assert (root.parent / "secret.txt").exists()


def test_a_full_folder_is_not_deleted(root: Path) -> None:
    (root / "sub" / "deep.txt").write_text("deep")
    with pytest.raises(OSError, match="not empty: 'sub'"):
        Workspace(root).delete("sub")


def test_the_root_is_not_deleted(root: Path) -> None:
    (root / "note.txt").unlink()
    (root / "sub").rmdir()
    with pytest.raises(OSError, match="Invalid argument"):
        Workspace(root).delete(".")


def test_move_gives_another_place(root: Path) -> None:
    Workspace(root).move("note.txt", "sub/new/name.txt")
    assert (root / "sub/new/name.txt").read_text() == "note"
    assert not (root / "note.txt").exists()


def test_move_moves_a_link_itself(root: Path) -> None:
    (root / "link").symlink_to("../secret.txt")
    Workspace(root).move("link", "sub/link")
    assert (root / "sub/link").is_symlink()


def test_move_replaces_nothing(root: Path) -> None:
    (root / "other.txt").write_text("other")
    with pytest.raises(FileExistsError, match=r"is there already: 'other\.txt'"):
        Workspace(root).move("note.txt", "other.txt")


def test_an_error_of_a_move_names_the_path_it_is_about(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"'none\.txt'"):
        Workspace(root).move("none.txt", "new.txt")
    with pytest.raises(NotADirectoryError, match=r"'note\.txt/below'"):
        Workspace(root).move("sub", "note.txt/below")


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    for path, link in (("deep", "folder-link"), ("deep/file", "file-link")):
        try:
            os.rename(path, "away")
            os.rename(link, path)
            os.rename(path, link)
            os.rename("away", path)
        except OSError:
            pass
"""


@contextmanager
def adversary(trap: Path) -> Generator[None]:
    """A process that swaps a folder and a file for links that lead out, and back, without end."""
    (trap / "deep").mkdir(parents=True)
    (trap / "folder-link").symlink_to(trap.parents[1])
    (trap / "file-link").symlink_to(trap.parents[1] / "secret.txt")
    command = [sys.executable, "-c", SWAPPER, str(trap)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            swapper.kill()


ACTS: dict[str, Callable[[Workspace], None]] = {
    "write": lambda space: space.write("trap/deep/file", b"evil"),
    "create": lambda space: space.create("trap/deep/new", b"evil"),
    "append": lambda space: space.append("trap/deep/file", b"evil"),
    "make": lambda space: space.make_folder("trap/deep/a/b"),
    "delete": lambda space: space.delete("trap/deep/secret.txt"),
    "move": lambda space: space.move("trap/deep/file", "trap/deep/moved"),
    "back": lambda space: space.move("trap/deep/moved", "trap/deep/file"),
}


def test_who_swaps_names_for_links_meanwhile_gets_nothing_out(root: Path) -> None:
    """Whatever the order: an act works inside, or fails."""
    before, workspace = outside(root), Workspace(root)
    done = 0
    with adversary(root / "trap"):
        for _ in range(300):
            for act in ACTS.values():
                with suppress(OSError, OutsideWorkspace):
                    act(workspace)
                    done += 1
    assert done > 0
    assert outside(root) == before
    assert sorted(os.listdir(root.parent)) == ["inside", "secret.txt"]


NAMES = st.sampled_from(["note.txt", "sub", "up", "out", "new", "..", ".", "secret.txt"])


@given(st.lists(NAMES, min_size=1, max_size=5), st.sampled_from(sorted(WRITES)))
def test_no_path_of_any_names_is_written_outside(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], name: str
) -> None:
    root = tmp_path_factory.mktemp("space") / "inside"
    (root / "sub").mkdir(parents=True)
    (root.parent / "secret.txt").write_text("secret")
    (root / "note.txt").write_text("note")
    (root / "up").symlink_to("..")
    (root / "sub" / "out").symlink_to(root.parent)
    with suppress(OSError, OutsideWorkspace):
        WRITES[name](Workspace(root), "/".join(names))
    assert outside(root) == {str(root.parent / "secret.txt"): "secret"}
    assert sorted(os.listdir(root.parent)) == ["inside", "secret.txt"]


def test_no_handle_stays_open(root: Path) -> None:
    workspace = Workspace(root)
    before = len(os.listdir("/dev/fd"))
    for write in WRITES.values():
        for path in ("sub/new", "../new", "sub"):
            with suppress(OSError, OutsideWorkspace):
                write(workspace, path)
    assert len(os.listdir("/dev/fd")) == before
