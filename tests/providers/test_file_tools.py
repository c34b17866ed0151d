"""Reading and changing files: exact, whole, in the form that a file has, with errors that help."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.tooling.tools import Effect, Tool
from callboard.workspace import OutsideWorkspace
from callboard_providers.tools import editing_tools, file_tools
from callboard_providers.tools.replacements import replaced


class Tools:
    """The tools below one folder, to be called by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_name = {tool.name: tool for tool in (*file_tools(folder), *editing_tools(folder))}

    def __getattr__(self, name: str) -> Callable[..., str]:
        return self.by_name[name].function


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


def refusal(act: Callable[..., str], **arguments: Any) -> str:
    with pytest.raises((ValueError, OSError)) as caught:
        act(**arguments)
    return str(caught.value)


def test_what_the_tools_do_is_declared(tools: Tools) -> None:
    effects = {name: tool.effect for name, tool in tools.by_name.items()}
    assert effects == {
        "read_file": Effect.PURE,
        "list_files": Effect.PURE,
        "search_files": Effect.PURE,
        "write_file": Effect.IDEMPOTENT,
        "edit_file": Effect.EFFECT,
        "move_file": Effect.EFFECT,
        "delete_file": Effect.EFFECT,
    }


def test_tools_that_write_never_overlap(tmp_path: Path) -> None:
    resources = {tool.resource for tool in editing_tools(tmp_path)}
    assert len(resources) == 1
    assert None not in resources


def test_a_part_of_a_file_is_read(tools: Tools) -> None:
    (tools.folder / "f").write_text("1\n2\n3\n4\n")
    text = tools.read_file(path="f", first_line=2, lines=2)
    assert text == "2\n3\n(there is more: go on with first_line=4)"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_text(tools: Tools, encoding: str) -> None:
    (tools.folder / "f").write_bytes("größer\r\n".encode(encoding))
    assert tools.read_file(path="f") == "größer"


def test_bytes_that_are_no_text_are_shown_as_such(tools: Tools) -> None:
    (tools.folder / "f").write_bytes("größer".encode("latin-1"))
    assert tools.read_file(path="f") == "gr\ufffd\ufffder\n(what is not UTF-8 is shown as \ufffd)"


def test_a_long_line_is_cut_and_counts_as_one(tools: Tools) -> None:
    (tools.folder / "f").write_text("é" * 10_000 + "\nsecond\n")
    first, second = tools.read_file(path="f").splitlines()
    assert first == "é" * 2_000 + " (... 8000 more characters)"
    assert second == "second"
    assert tools.read_file(path="f", first_line=2) == "second"


def test_a_file_is_written_with_its_folders(tools: Tools) -> None:
    said = tools.write_file(path="a/b.txt", text="ä\nb\n")
    assert said == "a/b.txt has 5 bytes in 2 lines now"
    assert (tools.folder / "a/b.txt").read_bytes() == "ä\nb\n".encode()


def test_a_piece_is_replaced(tools: Tools) -> None:
    (tools.folder / "f").write_text("one\ntwo\nthree\n")
    said = tools.edit_file(path="f", old_text="two", new_text="2")
    assert said == "replaced 1 piece in f"
    assert (tools.folder / "f").read_text() == "one\n2\nthree\n"


def test_a_piece_that_is_not_the_only_one_is_refused_with_its_lines(tools: Tools) -> None:
    (tools.folder / "f").write_text("x\ny\nx\nx\n")
    text = refusal(tools.edit_file, path="f", old_text="x", new_text="z")
    assert "stands in the file 3 times (lines 1, 3, 4)" in text
    tools.edit_file(path="f", old_text="x", new_text="z", every=True)
    assert (tools.folder / "f").read_text() == "z\ny\nz\nz\n"


def test_a_piece_with_other_spaces_is_shown_as_it_stands_there(tools: Tools) -> None:
    (tools.folder / "f").write_text("def f():\n\tif x:\n\t\treturn 1\n")
    text = refusal(tools.edit_file, path="f", old_text="    if x:\n        return 1", new_text="")
    assert text.endswith("with other spaces it begins at line 2:\n\tif x:\n\t\treturn 1")


def test_a_piece_that_is_not_there_is_refused_with_a_line_like_it(tools: Tools) -> None:
    (tools.folder / "f").write_text("first\nreturn value + 1\n")
    text = refusal(tools.edit_file, path="f", old_text="return value+1", new_text="")
    assert "old_text is not in the file; line 2 is like its first line: 'return value + 1'" in text
    assert "read it again" in refusal(tools.edit_file, path="f", old_text="%%%%", new_text="")


@pytest.mark.parametrize(
    ("old", "new", "why"), [("", "a", "old_text is empty"), ("a", "a", "nothing would change")]
)
def test_a_replacement_of_nothing_is_refused(tools: Tools, old: str, new: str, why: str) -> None:
    (tools.folder / "f").write_text("a")
    assert why in refusal(tools.edit_file, path="f", old_text=old, new_text=new)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_are_kept(tools: Tools, mark: str) -> None:
    (tools.folder / "f").write_bytes(f"{mark}one\r\ntwo\r\nthree\r\n".encode())
    tools.edit_file(path="f", old_text="one\ntwo", new_text="1\n2\n2b")
    assert (tools.folder / "f").read_bytes() == f"{mark}1\r\n2\r\n2b\r\nthree\r\n".encode()


def test_utf_16_stays_utf_16(tools: Tools) -> None:
    (tools.folder / "f").write_bytes("ä one".encode("utf-16"))
    tools.edit_file(path="f", old_text="one", new_text="ö")
    assert (tools.folder / "f").read_bytes() == "ä ö".encode("utf-16")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"caf\xe9", r"is not text in UTF-8 \(byte 3\)"),
        (b"a\0b", "is not text"),
        (b"a" * 2_000_001, "too many to edit"),
    ],
)
def test_what_could_not_be_written_back_is_not_edited(
    tools: Tools, content: bytes, why: str
) -> None:
    (tools.folder / "f").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        tools.edit_file(path="f", old_text="a", new_text="b")
    assert (tools.folder / "f").read_bytes() == content


def test_a_read_only_file_is_not_changed(tools: Tools) -> None:
    (tools.folder / "f").write_text("a")
    (tools.folder / "f").chmod(0o400)
    assert "is read-only: 'f'" in refusal(tools.edit_file, path="f", old_text="a", new_text="b")
    assert "is read-only: 'f'" in refusal(tools.write_file, path="f", text="b")


def test_a_file_is_moved_and_deleted(tools: Tools) -> None:
    tools.write_file(path="a", text="x")
    assert tools.move_file(path="a", new_path="sub/b") == "a is sub/b now"
    assert tools.delete_file(path="sub/b") == "sub/b is deleted"
    assert os.listdir(tools.folder / "sub") == []
    assert "No such file or directory: 'sub/b'" in refusal(tools.delete_file, path="sub/b")


WRITES: list[tuple[str, dict[str, str]]] = [
    ("write_file", {"path": "{}", "text": "evil"}),
    ("edit_file", {"path": "{}", "old_text": "hidden", "new_text": "evil"}),
    ("move_file", {"path": "{}", "new_path": "here"}),
    ("move_file", {"path": "mine", "new_path": "{}"}),
    ("delete_file", {"path": "{}"}),
]


@pytest.mark.parametrize(("name", "arguments"), WRITES)
@pytest.mark.parametrize("path", ["../secret", "{root}/../secret", "up/secret", "/etc/passwd"])
def test_no_tool_leaves_the_folder(
    tmp_path: Path, name: str, arguments: dict[str, str], path: str
) -> None:
    (tmp_path / "secret").write_text("hidden")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "mine").write_text("mine")
    (tmp_path / "in" / "up").symlink_to("..")
    path = path.replace("{root}", str(tmp_path / "in"))
    tool: Tool = Tools(tmp_path / "in").by_name[name]
    with pytest.raises(OutsideWorkspace):
        tool.function(**{key: value.replace("{}", path) for key, value in arguments.items()})
    assert (tmp_path / "secret").read_text() == "hidden"


texts = st.text(st.sampled_from("ab \n"), max_size=30)


@given(texts, st.text(st.sampled_from("ab \n"), min_size=1, max_size=4), texts)
def test_a_replacement_is_exact_or_refused(text: str, old: str, new: str) -> None:
    try:
        changed, count = replaced(text, old, new)
    except ValueError:
        assert old == new or text.count(old) != 1
    else:
        before, _, after = text.partition(old)
        assert (changed, count) == (before + new + after, 1)


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=8), texts, texts)
def test_a_replacement_keeps_the_line_ends_of_a_text(
    lines: list[str], before: str, new: str
) -> None:
    text = "\r\n".join([before.replace("\n", " "), "the piece", *lines])
    changed, _ = replaced(text, "the piece", new + "!")
    assert changed.count("\n") == changed.count("\r\n")
