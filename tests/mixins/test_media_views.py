"""Whatever a conversation holds: what is not taken goes, and everything else stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.messages import (
    AssistantMessage,
    AudioBlock,
    ConversationMessage,
    FileBlock,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.model import Capabilities
from callboard_mixins import MediaPolicy
from callboard_mixins.media.placeholders import media_in, not_taken
from callboard_mixins.media.views import MediaPlaces, MediaViews
from tests.mixins.kit import png

WAV = AudioBlock(media_type="audio/wav", data="UklGRgAAAABXQVZF")
CSV = FileBlock(media_type="text/csv", data="YSxi")
CALL = ToolCall(id="c", name="see")
TEXTS = st.text("ab", min_size=1).map(lambda text: TextBlock(text=text))
MEDIA: list[Any] = [png(), WAV, CSV]
SAID: list[Any] = [png(), WAV, CALL]
BLOCKS = st.lists(st.one_of(TEXTS, st.sampled_from(MEDIA)), max_size=5).map(tuple[Any, ...])
MESSAGES = st.one_of(
    BLOCKS.map(lambda blocks: UserMessage(content=blocks)),
    BLOCKS.map(lambda blocks: ToolResultMessage(call_id="c", tool_name="see", content=blocks)),
    st.lists(st.one_of(TEXTS, st.sampled_from(SAID)), max_size=4).map(
        lambda blocks: AssistantMessage(content=tuple(blocks))
    ),
)
CAPABILITIES = st.builds(Capabilities, images=st.booleans(), audio=st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(MESSAGES, max_size=5), CAPABILITIES)
def test_what_is_not_taken_goes_and_all_else_stays(
    history: list[ConversationMessage], capabilities: Capabilities
) -> None:
    before = copy.deepcopy(history)
    missing = not_taken(capabilities)
    seen = anyio.run(_seen, history, missing)
    assert history == before
    for message, view in zip(history, seen, strict=True):
        assert not media_in(view) & missing
        assert bool(view.content) == bool(message.content)
        assert _kept(view.content, missing) == _kept(message.content, missing)
        assert (view is message) == (not media_in(message) & missing)


async def _seen(
    history: Sequence[ConversationMessage], missing: frozenset[str]
) -> Sequence[ConversationMessage]:
    views = MediaViews(MediaPolicy(), lambda _: None)
    seen, sent = await views.without(history, MediaPlaces().find(history), missing, None)
    assert sent == frozenset[str]().union(*map(media_in, seen))
    return seen


def _kept(blocks: Sequence[Any], missing: frozenset[str]) -> list[Any]:
    """Everything but media of these kinds, and the lines that stand for them."""
    return [
        block
        for block in blocks
        if block.type not in missing and not getattr(block, "text", "").startswith("[")
    ]
