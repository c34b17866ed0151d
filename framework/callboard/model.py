"""What a language model is to the framework: a request goes in, a stream of deltas comes out.

Providers implement `Model`; nothing here knows a vendor. The one assembler that turns deltas
into a message is in `assembler.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from callboard.journaling.blobs import Blobs
from callboard.json_text import Json
from callboard.messages import AssistantContent, ConversationMessage, StopReason, Usage
from callboard.plain import plain
from callboard.tooling.tools import Tool


class Purpose(StrEnum):
    """What a model call is for. The loop asks for answers and summaries; layers may ask for the
    others, which watchers are not shown.
    """

    ANSWER = "answer"
    SUMMARY = "summary"
    COMPACTION = "compaction"
    JUDGEMENT = "judgement"
    PLAN = "plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of a request. None leaves a setting to the provider.

    `extra` goes into the request body as it is, for what only one provider knows.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None  # of the answer
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    idle_timeout_s: float = 120.0  # longest silence inside a stream; then a network error
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@plain(kw_only=True)
class ToolOffer:
    """The tools of a request together with their options: no tools, no options.

    `choice` is "auto", "required", or the name of the one tool that must be called.
    """

    tools: Sequence[Tool]
    choice: str = "auto"
    parallel: bool | None = None


@plain(kw_only=True)
class ModelRequest:
    """One model call. Layers change it with `dataclasses.replace` and pass the copy on.

    `messages` is a view of the history that costs nothing to make; it never changes. `system` is
    the agent's prompt, which adapters put first. `output_schema` wants an answer that is JSON of
    this schema. A layer may wrap `model` (retry, fallback, rate limit). Adapters send the data of
    media that are in `blobs`.
    """

    model: Model
    messages: Sequence[ConversationMessage]
    system: str = ""
    offer: ToolOffer | None = None
    settings: ModelSettings = ModelSettings()
    purpose: Purpose = Purpose.ANSWER
    output_schema: Mapping[str, Json] | None = None
    blobs: Blobs | None = None

    def asking(self, model: Model) -> ModelRequest:
        """The same request of another model: 0.6 us, where `replace` takes 1.9 for each layer."""
        return ModelRequest(
            model=model,
            messages=self.messages,
            system=self.system,
            offer=self.offer,
            settings=self.settings,
            purpose=self.purpose,
            output_schema=self.output_schema,
            blobs=self.blobs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes and does, as far as its description says."""

    images: bool = False
    audio: bool = False
    files: bool = False
    tools: bool = True
    context_tokens: int | None = None
    acts: bool = False  # its provider may act while it answers: what broke off is not sent again
    output_schema: bool = True  # it answers in the form of a request's output_schema


@plain
class TextDelta:
    """A piece of the answer's text."""

    text: str


@plain
class ThinkingDelta:
    """A piece of thinking; a signature may come in pieces too. `redacted` stands alone."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


@plain
class ToolCallDelta:
    """A piece of a tool call.

    An id that is new (under this index) opens a call; a piece without an id continues the last
    opened one, or the last one of its index where the index is given.
    """

    arguments: str = ""
    id: str | None = None
    name: str | None = None
    index: int | None = None


@plain
class UsageDelta:
    """Tokens used so far in this call; the last one counts."""

    usage: Usage


@plain
class StopDelta:
    """The model stopped. A message without one is incomplete and nothing of it is used.

    An adapter for a provider that is known never to say why it stopped sends OTHER at the clean
    end of its stream.
    """

    reason: StopReason
    detail: str | None = None


@plain
class WholeDelta:
    """Finished blocks, from a provider (or a script) that does not stream them."""

    content: Sequence[AssistantContent]


@plain
class AttemptDiscarded:
    """What was shown of this message is void: the model is asked again.

    In a model's stream it ends one attempt, which is counted, and another one follows.
    """

    reason: str


Delta = (
    TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | UsageDelta
    | StopDelta
    | WholeDelta
    | AttemptDiscarded
)


class Ready:
    """An answer that is there already, as a stream: for models that do not stream.

    `return Ready(WholeDelta(content), StopDelta(StopReason.END))` in a plain `def stream` does
    what an async generator would; that costs 4 us more on asyncio, which keeps a list of them.
    """

    __slots__ = ("_deltas",)

    def __init__(self, *deltas: Delta) -> None:
        self._deltas = iter(deltas)

    def __aiter__(self) -> Ready:
        return self

    async def __anext__(self) -> Delta:
        for delta in self._deltas:
            return delta
        raise StopAsyncIteration


class Model(Protocol):
    """A language model. Two requests may run at once.

    A model that also has `__aenter__` and `__aexit__` (re-entrant) is entered for the time of a
    run, so that it can keep connections: open them there and not at construction, one per event
    loop.
    """

    @property
    def name(self) -> str:
        """As `resolve_model` would take it, "openai:gpt-5" for instance."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Ask the model. Usually an async generator.

        It is closed when the run is cancelled or the message is complete. A failure before or in
        the stream is a ModelError; a stream that ends without a StopDelta is incomplete.
        """
        ...
