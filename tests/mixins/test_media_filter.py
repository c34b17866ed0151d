"""What a model does not take never reaches it; the conversation keeps what was said."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import (
    AssistantMessage,
    AudioBlock,
    FileBlock,
    ImageBlock,
    InMemoryBlobs,
    ModelRequest,
    Observation,
    ReActAgent,
    RunFailed,
    TextBlock,
    ToolResultMessage,
    UserMessage,
)
from callboard.journaling.blobs import digest_of
from callboard.journaling.message_view import MessageView
from callboard.model import Capabilities
from callboard.testing import ScriptedModel, call, check_layer, error
from callboard.testing.script import ScriptItem
from callboard.testing.scripted_model import TAKES_ALL
from callboard_mixins import MediaFilterMixin
from callboard_mixins.media.views import MediaPlaces
from tests.mixins.kit import png, png_bytes, warnings, watched

pytestmark = pytest.mark.anyio

PNG = png()
WAV = AudioBlock(media_type="audio/wav", data="UklGRgAAAABXQVZF")
PDF = FileBlock(media_type="application/pdf", data="JVBERi0xLjc=")
TEXT_ONLY = Capabilities()
NO_IMAGES = "[image omitted: this model takes no images]"


class Filtering(MediaFilterMixin, ReActAgent):
    """An agent with the layer under test."""


def agent_of(
    *script: ScriptItem, capabilities: Capabilities = TEXT_ONLY, **options: Any
) -> tuple[Filtering, ScriptedModel]:
    model = ScriptedModel(script, capabilities=capabilities, then="done")
    return Filtering(model=model, **options), model


def said(*blocks: Any) -> UserMessage:
    return UserMessage(content=blocks)


def texts(request: ModelRequest) -> list[str]:
    """The text of each message; what is no text shows as its type."""
    return [
        " ".join([b.text if isinstance(b, TextBlock) else b.type for b in message.content])
        for message in request.messages
    ]


def test_the_layer_keeps_the_laws() -> None:
    check_layer(MediaFilterMixin, orders=60)


async def test_pi_68_a_run_of_images_is_one_placeholder() -> None:
    agent, model = agent_of()
    prompt = said(TextBlock(text="see"), PNG, PNG, TextBlock(text="and"), PNG)
    await agent.run(prompt)
    two = "[2 images omitted: this model takes no images]"
    assert texts(model.requests[0]) == [f"see {two} and {NO_IMAGES}"]


async def test_pi_68_nothing_that_was_given_is_changed() -> None:
    agent, _ = agent_of()
    prompt = said(PNG)
    await agent.run(prompt)
    assert prompt.content == (PNG,)
    assert agent.messages[0].content == (PNG,)


async def test_qp_52_memory_a_mixed_message_and_a_tool_result_lose_their_images() -> None:
    async def screenshot() -> ImageBlock:
        """Take a picture."""
        return PNG

    agent, model = agent_of(
        call("screenshot"), messages=[said(PNG), AssistantMessage.of("nice")], tools=[screenshot]
    )
    await agent.run(said(TextBlock(text="and now?"), PNG))
    assert texts(model.requests[-1]) == [
        NO_IMAGES,
        "nice",
        f"and now? {NO_IMAGES}",
        "tool_call",
        NO_IMAGES,
    ]
    assert [m.content for m in agent.messages if isinstance(m, ToolResultMessage)] == [(PNG,)]


async def test_med_01_a_text_only_model_goes_on_and_another_one_sees_the_image_again() -> None:
    agent, model = agent_of()
    await agent.run(said(TextBlock(text="see"), PNG))
    await agent.run("and?")
    assert texts(model.requests[1])[0] == f"see {NO_IMAGES}"
    sighted = ScriptedModel(["a cat"])
    await Filtering(model=sighted, messages=agent.messages).run("now?")
    assert texts(sighted.requests[0])[0] == "see image"


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ({"images": True}, "image [audio omitted: this model takes no audio]"),
        ({"audio": True, "files": True}, f"{NO_IMAGES} audio file"),
    ],
)
async def test_each_medium_is_judged_for_itself(taken: dict[str, bool], left: str) -> None:
    agent, model = agent_of(capabilities=Capabilities(**taken))
    await agent.run(said(PNG, WAV, PDF))
    assert texts(model.requests[0])[0].startswith(left)


async def test_media_that_the_model_takes_pass_as_the_same_object() -> None:
    agent, model = agent_of(capabilities=TAKES_ALL)
    prompt = said(PNG, WAV, PDF)
    await agent.run(prompt)
    assert model.requests[0].messages[0] is agent.messages[0]


async def test_a_conversation_without_media_is_passed_on_as_it_is() -> None:
    agent, model = agent_of()
    await agent.run("go")
    assert model.requests[0].messages == agent.messages[:1]


async def test_the_users_watcher_is_told_once() -> None:
    agent, _ = agent_of()
    _, events = await watched(agent, said(PNG, PNG))
    assert warnings(events) == ["image left out: scripted, this model takes no images"]
    _, events = await watched(agent, said(PNG))
    assert warnings(events) == []


REFUSED = error("this model does not support image input", category="unsupported_media")


async def test_an_error_that_names_the_medium_teaches_once() -> None:
    agent, model = agent_of(REFUSED, capabilities=TAKES_ALL)
    assert (await agent.run(said(PNG, WAV))).text == "done"
    assert [texts(request)[0] for request in model.requests] == [
        "image audio",
        f"{NO_IMAGES} audio",
    ]
    await agent.run("again")
    assert texts(model.requests[2])[0] == f"{NO_IMAGES} audio"


@pytest.mark.parametrize(
    "failure",
    [
        error("model not loaded", category="bad_request", status=400),
        error("image is sensitive, messages[3]", category="overloaded", status=500),
        error("image too large", category="bad_request", status=400),
        error("slow down, no images now", category="rate_limited", status=429),
        error("images are against the rules", category="content_filter", status=400),
        error("unsupported content", category="unsupported_media", status=400),
        error("this model takes no audio", category="unsupported_media", status=400),
    ],
)
async def test_med_02_no_other_error_teaches_anything(failure: ScriptItem) -> None:
    """Neither one of another kind, nor one that names no medium, or one that was not sent."""
    agent, model = agent_of(failure, capabilities=TAKES_ALL)
    with pytest.raises(RunFailed):
        await agent.run(said(PNG))
    await agent.run("again")
    assert [texts(request)[0] for request in model.requests] == ["image", "image"]


async def test_what_is_not_taken_after_all_fails_in_the_end() -> None:
    agent, model = agent_of(REFUSED, REFUSED, capabilities=TAKES_ALL)
    with pytest.raises(RunFailed):
        await agent.run(said(PNG))
    assert len(model.requests) == 2


async def test_what_was_learned_is_of_that_model_only() -> None:
    agent, _ = agent_of(REFUSED, capabilities=TAKES_ALL)
    await agent.run(said(PNG))
    other, model = agent_of(capabilities=TAKES_ALL)
    await other.run(said(PNG))
    assert texts(model.requests[0]) == ["image"]


async def test_the_summary_is_filtered_too() -> None:
    async def note() -> str:
        """Write a note."""
        return "noted"

    agent, model = agent_of(call("note"), "short", tools=[note], max_iters=1)
    await agent.run(said(PNG))
    assert texts(model.requests[1])[0] == NO_IMAGES


async def test_a_copy_is_made_once() -> None:
    agent, model = agent_of()
    await agent.run(said(PNG))
    await agent.run("and?")
    assert model.requests[0].messages[0] is model.requests[1].messages[0]


def test_media_are_found_in_another_conversation_too() -> None:
    """Only a history that grew is not read again."""
    places = MediaPlaces()
    history: list[Any] = [said(PNG), AssistantMessage.of("nice")]
    assert places.find(MessageView(history)) == [0]
    history += [said(TextBlock(text="and?")), said(WAV)]
    assert places.find(MessageView(history)) == [0, 3]
    assert places.find(MessageView([AssistantMessage.of("hi"), said(PNG)])) == [1]
    assert places.find((said(PDF),)) == [0]


async def test_media_of_a_blob_store_are_looked_at_and_stay_there() -> None:
    blobs = InMemoryBlobs()
    kept = ImageBlock(media_type="image/png", blob=await blobs.put(png_bytes()))
    agent, model = agent_of(capabilities=TAKES_ALL, blobs=blobs)
    await agent.run(said(kept))
    assert model.requests[0].messages[0].content == (kept,)
    html = ImageBlock(media_type="image/png", blob=await blobs.put(b"<html>"))
    await agent.run(said(html))
    assert texts(model.requests[1])[-1] == "[image omitted: its content is no image]"
    assert digest_of(b"<html>") in repr(agent.messages)


async def test_data_are_in_no_text_for_people() -> None:
    prompt = said(PNG, ImageBlock(url="data:image/png;base64,iVBORw0KGgo="))
    agent, model = agent_of(capabilities=TAKES_ALL)
    _, events = await watched(agent, prompt)
    shown = f"{prompt!r} {model.requests!r} {events!r} {Observation(content=prompt.content)!r}"
    assert "iVBORw0KGgo" not in shown
