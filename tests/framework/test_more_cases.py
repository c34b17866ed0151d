"""Handed situations that stand by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard import FileBlobs, InMemoryBlobs, ReActAgent, tool
from callboard.errors import BlobLost
from callboard.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio

SIZE = 1_041_431


def everything_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


@tool(effect="pure", max_result_bytes=50_000)
async def cat() -> str:
    """Print a large file."""
    return "x" * SIZE


async def test_ctx_03_a_large_result_is_bounded_before_it_enters_the_transcript() -> None:
    texts: list[str] = []
    for _ in range(2):
        model = ScriptedModel([call("cat", "a"), "done"])
        await ReActAgent(model=model, tools=[cat]).run("go")
        texts.append(model.requests[1].messages[-1].text)
    assert texts[0] == texts[1]
    assert len(texts[0]) <= 50_000
    assert f"{SIZE} bytes are too many" in texts[0]


async def test_ctx_03_the_rest_is_kept_where_there_is_a_store() -> None:
    blobs = InMemoryBlobs()
    model = ScriptedModel([call("cat", "a"), "done"])
    agent = ReActAgent(model=model, tools=[cat], blobs=blobs)
    await agent.run("go")
    digest = model.requests[1].messages[-1].text.rsplit(" ", 1)[1].rstrip("]")
    assert len(await blobs.get(digest)) == SIZE


@pytest.mark.parametrize(
    "id",
    ["../../etc/x", "a/b", "a\\b", "..", "", "%2e%2e%2fx", "C:\\x", "CON", "a\0b", "x" * 5_000],
)
async def test_sec_01_an_id_never_becomes_a_path(tmp_path: Path, id: str) -> None:
    """A store gives out its own names, and looks for no others."""
    inside = tmp_path / "blobs"
    blobs = FileBlobs(inside)
    await blobs.put(b"kept")
    before = everything_in(tmp_path)
    with pytest.raises((BlobLost, ValueError)):
        await blobs.get(id)
    assert everything_in(tmp_path) == before
