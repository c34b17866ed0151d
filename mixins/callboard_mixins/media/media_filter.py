"""A layer that keeps from a model the media that it does not take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from callboard.agent import ReActAgent
from callboard.errors import ErrorCategory, ModelError
from callboard.events import Warned
from callboard.messages import AssistantMessage
from callboard.model import ModelRequest
from callboard_mixins.checked import check_given
from callboard_mixins.media.placeholders import (
    Medium,
    media_in,
    named_in,
    not_taken,
    not_taken_reason,
)
from callboard_mixins.media.policy import MediaPolicy
from callboard_mixins.media.views import MediaPlaces, MediaViews

Ask = Callable[[ModelRequest], Awaitable[AssistantMessage]]
_NOTHING: frozenset[Medium] = frozenset()
_USUAL = MediaPolicy()


class MediaFilterMixin(ReActAgent):
    """Puts a line of text where a message holds media that the model does not take.

    What a model takes is in its `capabilities`. Where they promise too much, that is learned from
    an error of the category `unsupported_media` which names a medium that was in fact sent; the
    model is then asked once more without it. Nothing is learned from any other error.

    What is sent is sound: files are read only below the policy's roots, no URL is fetched, types
    are those of the content, and images that are too large are scaled down. All of it happens on
    copies, once for each message; the conversation keeps what was said. What is left out is told
    to the model in its place, and to watchers as a warning.
    """

    def __init__(self, *, media_policy: MediaPolicy = _USUAL, **rest: Any) -> None:
        super().__init__(**rest)
        check_given("media_policy", media_policy, MediaPolicy)
        self._media_filter_places = MediaPlaces()
        self._media_filter_views = MediaViews(media_policy, self._media_filter_tell)
        self._media_filter_learned: dict[str, frozenset[Medium]] = {}  # by the model's name
        self._media_filter_told: set[tuple[str, Medium]] = set()

    async def _reasoning(self, request: ModelRequest) -> AssistantMessage:
        places = self._media_filter_places.find(request.messages)
        if not places:
            return await super()._reasoning(request)
        return await self._media_filter_answer(request, places, super()._reasoning)

    async def _summarizing(self, request: ModelRequest) -> AssistantMessage:
        places = self._media_filter_places.find(request.messages)
        if not places:
            return await super()._summarizing(request)
        return await self._media_filter_answer(request, places, super()._summarizing)

    async def _media_filter_answer(
        self, request: ModelRequest, places: Sequence[int], ask: Ask
    ) -> AssistantMessage:
        while True:  # once more for each medium at most
            missing = self._media_filter_missing(request, places)
            messages, sent = await self._media_filter_views.without(
                request.messages, places, missing, request.blobs
            )
            try:
                return await ask(replace(request, messages=messages))
            except ModelError as failure:
                if not self._media_filter_learn(request.model.name, failure, sent):
                    raise

    def _media_filter_missing(
        self, request: ModelRequest, places: Sequence[int]
    ) -> frozenset[Medium]:
        """What this model does not take; told once, where it is among the messages."""
        name = request.model.name
        learned = self._media_filter_learned.get(name, _NOTHING)
        missing = not_taken(request.model.capabilities) | learned
        if not missing:
            return missing
        present = _NOTHING.union(*[media_in(request.messages[at]) for at in places])
        for medium in sorted(missing & present):
            if (name, medium) not in self._media_filter_told:
                self._media_filter_told.add((name, medium))
                self._media_filter_tell(f"{medium} left out: {name}, {not_taken_reason(medium)}")
        return missing

    def _media_filter_learn(self, name: str, failure: ModelError, sent: frozenset[Medium]) -> bool:
        """Whether the failure taught what this model does not take."""
        if failure.category is not ErrorCategory.UNSUPPORTED_MEDIA:
            return False
        learned = named_in(str(failure)) & sent
        known = self._media_filter_learned.get(name, _NOTHING)
        self._media_filter_learned[name] = known | learned
        return bool(learned)

    def _media_filter_tell(self, text: str) -> None:
        self._watchers.tell(Warned, text)
