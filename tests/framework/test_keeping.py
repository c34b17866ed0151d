"""What is too large for a record: where it goes, and that nothing is lost on the way."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from callboard import (
    FileBlock,
    ImageBlock,
    InMemoryBlobs,
    InMemoryJournal,
    Observation,
    ReActAgent,
    SealedCall,
    TextBlock,
    UserMessage,
    tool,
)
from callboard.errors import CommitFailed
from callboard.events import Warned
from callboard.journaling.blobs import digest_of
from callboard.journaling.keeping import BLOB_BYTES, whole
from callboard.journaling.record_codec import decode, encode
from callboard.journaling.records import Record
from callboard.messages import Media
from callboard.testing import call
from tests.framework.kit import Script, agent_of, assert_replays, results, watched

pytestmark = pytest.mark.anyio
LARGE = b"\x89PNG\r\n\x1a\n" + bytes(BLOB_BYTES)
TEXT = "line é\n" * 5_000


def image(data: bytes) -> ImageBlock:
    return ImageBlock(media_type="image/png", data=base64.b64encode(data).decode())


@tool(effect="pure")
async def shot() -> bytes:
    """Take a picture."""
    return LARGE


@tool(effect="pure", max_result_bytes=1_000)
async def read() -> str:
    """Read a long text."""
    return TEXT


def written(agent: ReActAgent) -> Sequence[Record]:
    assert isinstance(agent.journal, InMemoryJournal)
    return agent.journal.records


def largest(agent: ReActAgent) -> int:
    return max([len(encode(record)) for record in written(agent)])


async def test_large_media_of_a_prompt_leave_every_record() -> None:
    blobs = InMemoryBlobs()
    agent, model = agent_of(["nice"], blobs=blobs)
    await agent.run(UserMessage(content=(TextBlock(text="look"), image(LARGE))))
    seen = model.requests[0].messages[0].content[1]
    assert isinstance(seen, ImageBlock)
    assert (seen.blob, seen.data) == (digest_of(LARGE), None)
    assert await blobs.get(digest_of(LARGE)) == LARGE
    assert largest(agent) < 2_000
    assert model.requests[0].blobs is blobs
    assert_replays(agent)


@pytest.mark.parametrize(("size", "kept"), [(BLOB_BYTES, 0), (BLOB_BYTES + 1, 1)])
async def test_only_what_is_above_the_limit_is_moved(size: int, kept: int) -> None:
    blobs = InMemoryBlobs()
    agent, _ = agent_of(["nice"], blobs=blobs)
    await agent.run([image(bytes(size)), image(b"small")])
    assert len(blobs) == kept


async def test_without_a_store_everything_stays_where_it_was() -> None:
    agent, _ = agent_of(["nice"])
    await agent.run([image(LARGE)])
    (block,) = agent.messages[0].content
    assert block == image(LARGE)


async def test_large_media_of_a_result_leave_every_record() -> None:
    blobs = InMemoryBlobs()
    agent, _ = agent_of([call("shot", "a"), "nice"], shot, blobs=blobs)
    await agent.run("go")
    (block,) = results(agent)["a"].content
    assert isinstance(block, ImageBlock)
    assert (block.blob, block.data) == (digest_of(LARGE), None)
    assert largest(agent) < 2_000
    assert_replays(agent)


async def test_queued_and_given_messages_are_kept_small_too() -> None:
    blobs, said = InMemoryBlobs(), UserMessage(content=(image(LARGE),))
    agent, _ = agent_of(["nice", "again"], messages=[said], blobs=blobs)
    await agent.steer([image(LARGE + b"!")])
    await agent.run("go")
    assert largest(agent) < 3_000
    assert len(blobs) == 2


async def test_a_cut_text_names_where_the_whole_is_kept() -> None:
    blobs = InMemoryBlobs()
    agent, _ = agent_of([call("read", "a"), "nice"], read, blobs=blobs)
    await agent.run("go")
    text, digest = results(agent)["a"].text, digest_of(TEXT.encode())
    assert text.endswith(f" are shown; the whole is kept as {digest}]")
    assert len(text.encode()) <= 1_000
    assert (await blobs.get(digest)).decode() == TEXT


@pytest.mark.parametrize(
    "value",
    [
        [TextBlock(text="a" * 600), image(b"x"), TextBlock(text="b" * 600)],
        {"text": "c" * 2_000},
        Observation.of("d" * 2_000),
    ],
)
async def test_the_whole_is_kept_whatever_a_tool_returns(value: Any) -> None:
    @tool(effect="pure", max_result_bytes=1_000)
    async def give() -> Any:
        """Give it."""
        return value

    blobs = InMemoryBlobs()
    agent, _ = agent_of([call("give", "a"), "nice"], give, blobs=blobs)
    await agent.run("go")
    digest = results(agent)["a"].text.rpartition("kept as ")[2].rstrip("]")
    assert len(await blobs.get(digest)) > 1_000


async def test_a_text_that_has_no_room_for_the_name_is_not_kept() -> None:
    blobs = InMemoryBlobs()
    agent, _ = agent_of([call("read", "a"), "ok"], replace(read, max_result_bytes=60), blobs=blobs)
    await agent.run("go")
    assert len(blobs) == 0
    assert len(results(agent)["a"].text.encode()) <= 60


async def test_what_a_layer_puts_into_a_result_is_kept_small_too() -> None:
    class Draw(ReActAgent):
        async def _acting(self, call: SealedCall) -> Observation:
            seen = await super()._acting(call)
            return replace(seen, content=(*seen.content, image(LARGE)))

    agent, _ = agent_of([call("read", "a"), "nice"], read, kind=Draw, blobs=InMemoryBlobs())
    await agent.run("go")
    assert largest(agent) < 3_000


class FullBlobs(InMemoryBlobs):
    """A disk without room."""

    async def put(self, data: bytes) -> str:
        raise CommitFailed("no room")


async def test_a_result_outlives_a_store_that_fails() -> None:
    """The tool has run; the text is cut and names nothing, media stay in the record."""
    calls: Script = [call("shot", "a"), call("read", "b"), "nice"]
    agent, _ = agent_of(calls, shot, read, blobs=FullBlobs())
    reply, events = await watched(agent)
    assert reply.text == "nice"
    assert results(agent)["a"].content == (image(LARGE),)
    assert results(agent)["b"].text.endswith("are shown]")
    warned = [event.text for event in events if isinstance(event, Warned)]
    assert [text.partition(":")[0] for text in warned] == [
        "large media stay in the journal",
        "the whole of a result is lost",
    ]


async def test_a_prompt_that_cannot_be_kept_is_refused_before_anything_happens() -> None:
    agent, model = agent_of(["nice"], blobs=FullBlobs())
    with pytest.raises(CommitFailed, match="no room"):
        await agent.run([image(LARGE)])
    assert (len(written(agent)), model.requests) == (0, [])


class SlowBlobs(InMemoryBlobs):
    """A store behind a wire."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()

    async def put(self, data: bytes) -> str:
        self.asked.set()
        await anyio.sleep(1)
        return await super().put(data)


async def test_a_cancel_while_it_is_kept_loses_no_result() -> None:
    blobs, charged = SlowBlobs(), list[int]()

    async def charge() -> bytes:
        """An effect with a large receipt."""
        charged.append(1)
        return LARGE

    agent, _ = agent_of([call("charge", "a"), "nice"], charge, blobs=blobs)
    async with anyio.create_task_group() as group:
        group.start_soon(agent.run, "go")
        await blobs.asked.wait()
        group.cancel_scope.cancel()
    block = results(agent)["a"].content[0]
    assert isinstance(block, Media)
    assert (results(agent)["a"].status, block.blob) == ("ok", digest_of(LARGE))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_native_cancel_while_it_is_kept_loses_no_result() -> None:
    """It pierces the shield: then the media stay in the record."""
    blobs = SlowBlobs()
    agent, _ = agent_of([call("give", "a"), "nice"], _giving(LARGE), blobs=blobs)
    task = asyncio.ensure_future(agent.run("go"))
    await blobs.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (results(agent)["a"].status, results(agent)["a"].content) == ("ok", (image(LARGE),))


def _giving(value: bytes) -> Any:
    async def give() -> bytes:
        """Give it, with an effect."""
        return value

    return give


async def test_a_message_with_blobs_survives_bytes_and_gets_its_data_back() -> None:
    blobs = InMemoryBlobs()
    file = FileBlock(media_type="application/pdf", data=image(LARGE).data, name="a.pdf")
    agent, _ = agent_of(["nice"], blobs=blobs)
    await agent.run([file])
    later, _ = agent_of([], journal=InMemoryJournal([decode(encode(r)) for r in written(agent)]))
    assert (await whole(later.messages[0], blobs)).content == (file,)


async def test_data_that_is_no_base64_is_left_for_the_provider_to_refuse() -> None:
    broken = ImageBlock(data="*" * 400_000)
    agent, _ = agent_of(["nice"], blobs=InMemoryBlobs())
    await agent.run([broken])
    assert agent.messages[0].content == (broken,)
