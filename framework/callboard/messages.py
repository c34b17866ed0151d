"""What a conversation is made of: content blocks, messages and tool calls.

Messages are conversation only: a failure, an abort or a limit is an outcome in the journal and
never a message. Everything here is frozen and can be shared between agents.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from callboard.json_text import EMPTY, FrozenDict, NotJson, canonical, parse, sendable
from callboard.plain import plain

_ids = itertools.count()
_process = secrets.token_hex(6)


def _reseed() -> None:
    global _process
    _process = secrets.token_hex(6)


os.register_at_fork(after_in_child=_reseed)


def new_id(prefix: str) -> str:
    """A fresh id, unique over processes: 0.2 us where str(uuid4()) takes 3 us."""
    return f"{prefix}_{_process}{next(_ids):x}"


class Frozen(BaseModel):
    """The base of all values in a message."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


SendableText = Annotated[str, AfterValidator(sendable)]  # halves of characters are mended


class StopReason(StrEnum):
    """Why the model stopped. What the run does next depends on the content, not on this."""

    END = "end"
    TOOL_USE = "tool_use"
    LENGTH = "length"  # the output limit cut the message: none of its calls runs
    REFUSAL = "refusal"
    FILTER = "filter"
    OTHER = "other"


REFUSALS = frozenset({StopReason.REFUSAL, StopReason.FILTER})


class Status(StrEnum):
    """How one tool call ended (or that it waits: `pending`)."""

    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    INVALID = "invalid"  # the arguments do not fit the schema
    UNKNOWN_TOOL = "unknown_tool"
    SKIPPED = "skipped"
    UNKNOWN_OUTCOME = "unknown_outcome"  # it was started, and nobody knows how it ended
    PENDING = "pending"  # it waits for a human


class TextBlock(Frozen):
    """Text."""

    type: Literal["text"] = "text"
    text: SendableText


class ThinkingBlock(Frozen):
    """What the model thought, sent back byte for byte with its signature where it has one."""

    type: Literal["thinking"] = "thinking"
    text: SendableText = ""
    signature: str | None = None
    redacted: str | None = None  # encrypted thinking, opaque


class Media(Frozen):
    """Media by base64 data, by URL, or by the digest of a blob; exactly one of them is set."""

    media_type: str = "application/octet-stream"
    data: str | None = Field(default=None, repr=False)  # base64
    url: str | None = None
    blob: str | None = None


class ImageBlock(Media):
    """An image."""

    type: Literal["image"] = "image"


class AudioBlock(Media):
    """Sound."""

    type: Literal["audio"] = "audio"


class FileBlock(Media):
    """Any other file, a PDF for instance."""

    type: Literal["file"] = "file"
    name: SendableText | None = None


class ToolCall(Frozen):
    """A call that the model asks for.

    `raw` is the argument text as the model wrote it and is kept in the transcript. `arguments`
    is that text parsed once: a deeply frozen mapping, empty when `problem` says what is wrong
    with the text. A layer that rewrites a call passes `call.with_arguments(...)` on.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    raw: str = "{}"

    @cached_property
    def parsed(self) -> tuple[FrozenDict, str | None]:
        """`arguments` and `problem` together."""
        if not self.raw or self.raw.isspace():
            return EMPTY, None
        try:
            value = parse(self.raw)
            if isinstance(value, str):  # an object sent as JSON text: one level is unwrapped
                value = parse(value, control_characters=True)
        except NotJson as error:
            return EMPTY, f"the arguments are not one JSON object: {error}"
        if value is None:
            return EMPTY, None
        if not isinstance(value, FrozenDict):
            return EMPTY, f"the arguments must be an object, not {type(value).__name__}"
        return value, None

    @property
    def arguments(self) -> FrozenDict:
        """The parsed arguments, deeply frozen: objects are dicts, arrays are tuples."""
        return self.parsed[0]

    @property
    def problem(self) -> str | None:
        """Why `raw` is not usable, or None."""
        return self.parsed[1]

    @property
    def sendable_raw(self) -> str:
        """The arguments as JSON text of an object, whatever the model wrote."""
        arguments, problem = self.parsed
        plain = problem is None and self.raw.lstrip().startswith("{")
        halves = "\\ud" in self.raw or "\\uD" in self.raw  # escaped ones, which some refuse
        return self.raw if plain and not halves else canonical(arguments)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("parsed", None)  # it is of the old text
        return copied

    def with_arguments(self, arguments: Mapping[str, Any]) -> ToolCall:
        """The same call with other arguments (JSON values only)."""
        return ToolCall(id=self.id, name=self.name, raw=sendable(canonical(arguments)))

    def with_id(self, id: str) -> ToolCall:
        """The same call under another id."""
        return ToolCall(id=id, name=self.name, raw=self.raw)


Content = TextBlock | ImageBlock | AudioBlock | FileBlock
ContentBlock = Annotated[Content, Field(discriminator="type")]
AssistantContent = TextBlock | ThinkingBlock | ToolCall | ImageBlock | AudioBlock
AssistantBlock = Annotated[AssistantContent, Field(discriminator="type")]


def blocks_of(text: str) -> tuple[TextBlock, ...]:
    """Text as content: one block, or none for no text."""
    return (TextBlock(text=text),) if text else ()


def text_of(blocks: Sequence[object]) -> str:
    """The text of the text blocks, joined."""
    return "".join([block.text for block in blocks if type(block) is TextBlock])


def _blocks(value: object) -> object:
    """Text where blocks are wanted is one text block; no text is no block."""
    return blocks_of(value) if isinstance(value, str) else value


Blocks = Annotated[tuple[ContentBlock, ...], BeforeValidator(_blocks)]


class Usage(Frozen):
    """Tokens of one or more model calls. Unknown is None, which is not zero."""

    input_tokens: int | None = None  # all of the prompt, cached part included
    output_tokens: int | None = None  # all that was written, reasoning included
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        def plus(a: int | None, b: int | None) -> int | None:
            return b if a is None else a if b is None else a + b

        return Usage(
            input_tokens=plus(self.input_tokens, other.input_tokens),
            output_tokens=plus(self.output_tokens, other.output_tokens),
            cached_tokens=plus(self.cached_tokens, other.cached_tokens),
            reasoning_tokens=plus(self.reasoning_tokens, other.reasoning_tokens),
        )


NO_USAGE = Usage()


class SystemMessage(Frozen):
    """Instructions inside a conversation (an agent's own prompt is not a message)."""

    role: Literal["system"] = "system"
    id: str = Field(default_factory=lambda: new_id("m"))
    content: Blocks

    @classmethod
    def of(cls, text: str) -> Self:
        """A message of one text."""
        return cls(content=blocks_of(text))

    @property
    def text(self) -> str:
        return text_of(self.content)


class UserMessage(Frozen):
    """What a user, or another agent, said."""

    role: Literal["user"] = "user"
    id: str = Field(default_factory=lambda: new_id("m"))
    content: Blocks

    @classmethod
    def of(cls, text: str) -> Self:
        """A message of one text."""
        return cls(content=blocks_of(text))

    @property
    def text(self) -> str:
        return text_of(self.content)


class AssistantMessage(Frozen):
    """A complete answer of a model."""

    role: Literal["assistant"] = "assistant"
    id: str = Field(default_factory=lambda: new_id("m"))
    content: tuple[AssistantBlock, ...] = ()
    stop_reason: StopReason = StopReason.END
    stop_detail: SendableText | None = None  # the provider's own words, for a refusal for instance
    usage: Usage = NO_USAGE
    model: str | None = None

    @property
    def text(self) -> str:
        return text_of(self.content)

    @classmethod
    def of(cls, text: str, *calls: ToolCall) -> Self:
        """A message of one text, and calls."""
        return cls(content=(*blocks_of(text), *calls))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order of the message."""
        return tuple([block for block in self.content if type(block) is ToolCall])

    def without_calls(self) -> Self:
        """A copy that keeps everything but the tool calls."""
        return self.with_content([b for b in self.content if type(b) is not ToolCall])

    def with_content(self, content: Sequence[AssistantContent]) -> Self:
        """A copy with other blocks."""
        return self.model_copy(update={"content": tuple(content)})


class ToolResultMessage(Frozen):
    """The result of one call. `payload` is structured content for programs, never sent."""

    role: Literal["tool"] = "tool"
    id: str = Field(default_factory=lambda: new_id("m"))
    call_id: str
    tool_name: str
    content: tuple[ContentBlock, ...] = ()
    status: Status = Status.OK
    payload: Any = Field(default=None, repr=False)

    @property
    def text(self) -> str:
        return text_of(self.content)

    def with_call_id(self, call_id: str) -> Self:
        """The same result for the call under another id."""
        return self.model_copy(update={"call_id": call_id})

    @property
    def is_error(self) -> bool:
        return self.status is not Status.OK


ConversationMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
Message = Annotated[ConversationMessage, Field(discriminator="role")]


@plain(kw_only=True)
class Observation:
    """What came of one tool call.

    `content` is what the model sees, `payload` is structured and for programs, `details` is for
    people. `terminate` skips the follow-up model call if every result of the batch has it.
    """

    status: Status = Status.OK
    content: tuple[Content, ...] = ()
    payload: Any = None
    details: str | None = None
    terminate: bool = False

    @classmethod
    def of(cls, text: str, status: Status = Status.OK) -> Observation:
        """An observation whose content is one text."""
        return cls(status=status, content=blocks_of(text))

    @property
    def text(self) -> str:
        return text_of(self.content)
