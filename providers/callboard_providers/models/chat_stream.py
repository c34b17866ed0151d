"""From the chunks of an OpenAI chat stream to deltas. Used by `openai_chat`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from callboard.json_text import Json
from callboard.messages import StopReason, Usage
from callboard.model import Delta, StopDelta, TextDelta, ThinkingDelta, ToolCallDelta, UsageDelta
from callboard_providers.models.json_shape import array_in, is_array, is_object, object_in

STOP_REASONS: Mapping[str, StopReason] = {
    "stop": StopReason.END,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
    "length": StopReason.LENGTH,
    "content_filter": StopReason.FILTER,
    "refusal": StopReason.REFUSAL,
}


class ChatStream:
    """Reads the chunks of one answer. `names` maps wire names to the tools' own.

    Servers leave out what they like, or send null for it: every field may be missing.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._named: set[str] = set()  # ids of calls whose name was given already
        self._refusal: list[str] = []
        self._finish: str | None = None

    @property
    def finished(self) -> bool:
        """Whether the model said why it stopped: what follows is usage at most."""
        return self._finish is not None

    def read(self, chunk: Mapping[str, Json]) -> Iterator[Delta]:
        """The deltas of one chunk; a chunk without choices is fine."""
        for choice in array_in(chunk, "choices"):
            if not choice.get("index"):  # one answer only
                yield from self._read_choice(choice)
        if usage := object_in(chunk, "usage"):
            yield UsageDelta(usage_of(usage))

    def _read_choice(self, choice: Mapping[str, Json]) -> Iterator[Delta]:
        delta = object_in(choice, "delta")
        # thinking has two names among the servers that speak this format
        if thinking := _text(delta.get("reasoning_content") or delta.get("reasoning")):
            yield ThinkingDelta(thinking)
        if text := _text(delta.get("content")):
            yield TextDelta(text)
        if refusal := _text(delta.get("refusal")):
            self._refusal.append(refusal)
        for piece in array_in(delta, "tool_calls"):
            yield self._call(piece)
        if finish := choice.get("finish_reason"):
            self._finish = finish

    def _call(self, piece: Mapping[str, Json]) -> ToolCallDelta:
        function = object_in(piece, "function")
        name = self._once(piece.get("id"), function.get("name"))
        return ToolCallDelta(
            arguments=function.get("arguments") or "",
            id=piece.get("id") or None,
            name=self._names.get(name, name) if name else None,
            index=piece.get("index"),
        )

    def _once(self, id: str | None, name: str | None) -> str | None:
        """A name that comes again with every piece of its call counts once."""
        if not id or not name:
            return name
        if id in self._named:
            return None
        self._named.add(id)
        return name

    def stop(self) -> StopDelta | None:
        """The last delta of the stream, or None where the model never said why it stopped."""
        if self._finish is None:
            return None
        if self._refusal:
            return StopDelta(StopReason.REFUSAL, "".join(self._refusal))
        reason = STOP_REASONS.get(self._finish, StopReason.OTHER)
        said = reason in (StopReason.OTHER, StopReason.FILTER, StopReason.REFUSAL)
        return StopDelta(reason, self._finish if said else None)


def _text(value: Json) -> str:
    """Text, or the text of a list of parts, which some servers send instead."""
    if isinstance(value, str):
        return value
    parts = filter(is_object, value) if is_array(value) else ()
    return "".join([str(part.get("text") or "") for part in parts])


def usage_of(usage: Mapping[str, Json]) -> Usage:
    """Tokens as far as they were told: what is missing stays unknown."""
    prompt = object_in(usage, "prompt_tokens_details")
    completion = object_in(usage, "completion_tokens_details")
    return Usage(
        input_tokens=usage.get("prompt_tokens"),
        output_tokens=usage.get("completion_tokens"),
        cached_tokens=prompt.get("cached_tokens"),
        reasoning_tokens=completion.get("reasoning_tokens"),
    )
