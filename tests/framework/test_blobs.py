"""The blob store: what is put comes back the same, and a damaged one is never taken for whole."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from callboard import Blobs, FileBlobs, InMemoryBlobs
from callboard.errors import BlobLost, CommitFailed, ConfigurationError
from callboard.journaling.blobs import digest_of

pytestmark = [pytest.mark.anyio, pytest.mark.real_clock]  # the files are read in threads
DATA = b"\x00\xff" * 1000
UNKNOWN = digest_of(b"never put")


@pytest.fixture(params=["files", "memory"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return FileBlobs(tmp_path / "kept" / "blobs") if request.param == "files" else InMemoryBlobs()


async def test_what_is_put_comes_back_by_its_digest(blobs: Blobs) -> None:
    digest = await blobs.put(DATA)
    assert digest == digest_of(DATA)
    assert await blobs.get(digest) == DATA


@pytest.mark.parametrize("data", [b"", b"a", bytes(300_000)])
async def test_any_size_is_kept(blobs: Blobs, data: bytes) -> None:
    assert await blobs.get(await blobs.put(data)) == data


async def test_what_was_never_put_is_lost_by_name(blobs: Blobs) -> None:
    with pytest.raises(BlobLost, match=UNKNOWN):
        await blobs.get(UNKNOWN)


@pytest.mark.parametrize(
    "name",
    ["", "x", "../../etc/passwd", "sha256:../x", UNKNOWN.upper(), UNKNOWN[7:], f"{UNKNOWN}\n"],
)
async def test_what_is_no_digest_is_refused(blobs: Blobs, name: str) -> None:
    with pytest.raises(ConfigurationError, match="no digest of a blob"):
        await blobs.get(name)


async def test_the_same_data_is_one_file(tmp_path: Path) -> None:
    digests = {await FileBlobs(tmp_path).put(DATA) for _ in range(3)}
    assert len(digests) == 1
    assert len(files_of(tmp_path)) == 1


async def test_many_that_put_the_same_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(FileBlobs(tmp_path).put, DATA)
    assert len(files_of(tmp_path)) == 1
    assert await FileBlobs(tmp_path).get(digest_of(DATA)) == DATA


async def test_files_stand_two_folders_deep_and_are_for_their_owner_only(tmp_path: Path) -> None:
    digest = await FileBlobs(tmp_path / "blobs").put(DATA)
    (path,) = files_of(tmp_path)
    name = digest.removeprefix("sha256:")
    assert path == tmp_path / "blobs" / name[:2] / name[2:4] / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:3]} == {0o700}


async def test_a_damaged_file_is_refused_and_not_returned(tmp_path: Path) -> None:
    digest = await FileBlobs(tmp_path).put(DATA)
    files_of(tmp_path)[0].write_bytes(DATA[:-1])
    with pytest.raises(BlobLost, match="damaged"):
        await FileBlobs(tmp_path).get(digest)


async def test_putting_it_again_mends_a_damaged_file(tmp_path: Path) -> None:
    digest = await FileBlobs(tmp_path).put(DATA)
    files_of(tmp_path)[0].write_bytes(b"")
    await FileBlobs(tmp_path).put(DATA)
    assert await FileBlobs(tmp_path).get(digest) == DATA


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigurationError, match="taken' is not"):
        FileBlobs(tmp_path / "taken")


async def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "taken")
    (tmp_path / "taken").write_text("")
    with pytest.raises(CommitFailed, match="could not be kept in FileBlobs"):
        await blobs.put(DATA)


async def test_a_write_that_fails_leaves_no_half_file(tmp_path: Path) -> None:
    name = digest_of(DATA).removeprefix("sha256:")
    taken = tmp_path / name[:2] / name[2:4] / name
    taken.mkdir(parents=True)  # the finished file cannot get its name
    (taken / "x").write_text("")
    with pytest.raises(CommitFailed):
        await FileBlobs(tmp_path).put(DATA)
    assert files_of(tmp_path) == [taken / "x"]


def files_of(folder: Path) -> list[Path]:
    is_file: Callable[[Path], bool] = Path.is_file
    return list(filter(is_file, folder.rglob("*")))
