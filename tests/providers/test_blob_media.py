"""Media from an agent's blob store are sent as data, and loaded once."""

from __future__ import annotations

import base64
import gc
from pathlib import Path
from typing import Any

import pytest

from callboard import FileBlobs, ImageBlock, InMemoryBlobs, ReActAgent, RunFailed, UserMessage
from callboard.errors import BlobLost
from callboard.journaling.keeping import BLOB_BYTES
from callboard.model import ModelRequest
from callboard_providers.models import OpenAIChatModel
from callboard_providers.models.blob_media import BlobMedia
from callboard_providers.models.recorded import Answer, ReplayServer, piece, sse

pytestmark = pytest.mark.anyio
LARGE = bytes(range(256)) * 1025
IMAGE = ImageBlock(media_type="image/png", data=base64.b64encode(LARGE).decode())


def answers() -> list[Answer]:
    return [sse(piece(content="seen"), piece("stop"))]


def image_url(request: dict[str, Any]) -> str:
    url: str = request["messages"][0]["content"][0]["image_url"]["url"]
    return url


async def test_an_image_in_the_store_is_sent_as_data_turn_after_turn(tmp_path: Path) -> None:
    assert len(LARGE) > BLOB_BYTES
    with ReplayServer(answers()) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        agent = ReActAgent(model=model, blobs=FileBlobs(tmp_path))
        await agent.run([IMAGE])
        await agent.run("and now?")
        assert {image_url(request) for request in server.requests} == {
            f"data:image/png;base64,{IMAGE.data}"
        }
    assert len(server.requests) == 2
    (block,) = agent.messages[0].content
    assert isinstance(block, ImageBlock)
    assert block.data is None


async def test_an_image_of_a_result_is_sent_as_data() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "shot", "arguments": "{}"}}

    async def shot() -> ImageBlock:
        """Take a picture."""
        return IMAGE

    script = [sse(piece(tool_calls=[call]), piece("tool_calls")), *answers()]
    with ReplayServer(script) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        reply = await ReActAgent(model=model, tools=[shot], blobs=InMemoryBlobs()).run("go")
    assert reply.text == "seen"
    assert str(IMAGE.data) in str(server.requests[1]["messages"][-1])


async def test_a_lost_blob_fails_the_run_by_name_and_nothing_is_sent(tmp_path: Path) -> None:
    """An answer about a picture that the model never saw would be worse."""
    with ReplayServer(answers()) as server:
        model = OpenAIChatModel("m", base_url=server.url)
        agent = ReActAgent(model=model, blobs=FileBlobs(tmp_path))
        await agent.run([IMAGE])
        other = OpenAIChatModel("m", base_url=server.url)  # the first one kept what it sent
        later = ReActAgent(model=other, blobs=InMemoryBlobs(), journal=agent.journal)
        before = len(server.requests)
        with pytest.raises(RunFailed, match="BlobLost: there is no blob sha256:") as failed:
            await later.run("again")
    assert isinstance(failed.value.__cause__, BlobLost)
    assert len(server.requests) == before


async def test_a_message_is_loaded_once_and_forgotten_with_it() -> None:
    blobs, media = InMemoryBlobs(), BlobMedia()
    digest = await blobs.put(LARGE)
    said = UserMessage(content=(ImageBlock(media_type="image/png", blob=digest),))
    request = ModelRequest(model=OpenAIChatModel("m"), messages=[said], blobs=blobs)
    first, second = await media.loaded(request), await media.loaded(request)
    assert first.messages[0] is second.messages[0]
    assert len(media) == 1
    del said, request, first, second
    gc.collect()
    assert len(media) == 0


async def test_without_a_store_the_request_is_left_alone() -> None:
    request = ModelRequest(model=OpenAIChatModel("m"), messages=[UserMessage.of("hi")])
    assert await BlobMedia().loaded(request) is request
