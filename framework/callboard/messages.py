"""What a conversation is made of: content blocks, messages and tool calls.

Messages are conversation only: a failure, an abort or a limit is an outcome in the journal and
never a message. They never change once they are made, and can be shared between agents. They are
plain dataclasses that pydantic reads and writes (`TypeAdapter(Message)`): as pydantic models they
cost a turn a tenth more, and an import a third.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self, cast

from callboard.json_text import FrozenDict, canonical, sendable
from callboard.plain import plain
from callboard.raw_arguments import read_arguments

_ids = itertools.count()
_process = secrets.token_hex(6)


def _reseed() -> None:
    global _process
    _process = secrets.token_hex(6)


os.register_at_fork(after_in_child=_reseed)


_set = object.__setattr__  # while an object is made; type checkers see it as frozen after that


def new_id(prefix: str) -> str:
    """A fresh id, unique over processes: 0.2 us where str(uuid4()) takes 3 us."""
    return f"{prefix}_{_process}{next(_ids):x}"


def message_id() -> str:
    """A fresh id for a message."""
    return new_id("m")


class Value:
    """The base of what messages are made of: can be weakly referenced, refuses unknown fields."""

    __slots__ = ("__weakref__",)
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


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
    """How one tool call ended."""

    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    INVALID = "invalid"  # the arguments do not fit the schema
    UNKNOWN_TOOL = "unknown_tool"
    SKIPPED = "skipped"
    UNKNOWN_OUTCOME = "unknown_outcome"  # it was started, and nobody knows how it ended


@plain(kw_only=True)
class TextBlock(Value):
    """Text. Halves of characters in it are mended when it is made."""

    type: Literal["text"] = "text"
    text: str

    def __post_init__(self) -> None:
        if not self.text.isascii():
            _set(self, "text", sendable(self.text))


@plain(kw_only=True)
class ThinkingBlock(Value):
    """What the model thought, sent back byte for byte with its signature where it has one."""

    type: Literal["thinking"] = "thinking"
    text: str = ""
    signature: str | None = None
    redacted: str | None = None  # encrypted thinking, opaque

    def __post_init__(self) -> None:
        _set(self, "text", sendable(self.text))


@plain(kw_only=True)
class Media(Value):
    """Media by base64 data, by URL, or by the digest of a blob; exactly one of them is set."""

    type: str
    media_type: str = "application/octet-stream"
    data: str | None = field(default=None, repr=False)  # base64
    url: str | None = field(default=None, repr=False)  # it may hold data, or be signed
    blob: str | None = None


@plain(kw_only=True)
class ImageBlock(Media):
    """An image."""

    type: Literal["image"] = "image"


@plain(kw_only=True)
class AudioBlock(Media):
    """Sound."""

    type: Literal["audio"] = "audio"


@plain(kw_only=True)
class FileBlock(Media):
    """Any other file, a PDF for instance."""

    type: Literal["file"] = "file"
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            _set(self, "name", sendable(self.name))


class _Parsed(Value):
    """What a call remembers beside its fields; filled in when it is first needed."""

    __slots__ = ("_parsed", "checked")

    _parsed: tuple[FrozenDict, str | None] | None
    checked: tuple[object, dict[str, Any]] | None  # a tool's validator, and what it made of them


@plain(kw_only=True)
class ToolCall(_Parsed):
    """A call that the model asks for.

    `raw` is the argument text as the model wrote it and is kept in the transcript. `arguments`
    is that text parsed once: a deeply frozen mapping, empty when `problem` says what is wrong
    with the text. A layer that rewrites a call passes `call.with_arguments(...)` on.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    raw: str = "{}"

    def __post_init__(self) -> None:
        self._parsed = self.checked = None

    @property
    def parsed(self) -> tuple[FrozenDict, str | None]:
        """`arguments` and `problem` together."""
        parsed = self._parsed
        if parsed is None:
            parsed = self._parsed = read_arguments(self.raw)
        return parsed

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

    def with_arguments(self, arguments: Mapping[str, Any]) -> ToolCall:
        """The same call with other arguments (JSON values only)."""
        return ToolCall(id=self.id, name=self.name, raw=sendable(canonical(arguments)))

    def with_id(self, id: str) -> ToolCall:
        """The same call under another id."""
        return ToolCall(id=id, name=self.name, raw=self.raw)


Content = TextBlock | ImageBlock | AudioBlock | FileBlock
AssistantContent = TextBlock | ThinkingBlock | ToolCall | ImageBlock | AudioBlock


def blocks_of(text: str) -> tuple[TextBlock, ...]:
    """Text as content: one block, or none for no text."""
    return (TextBlock(text=text),) if text else ()


def text_of(blocks: Sequence[object]) -> str:
    """The text of the text blocks, joined."""
    return "".join([block.text for block in blocks if type(block) is TextBlock])


@plain(kw_only=True)
class Usage(Value):
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


@plain(kw_only=True)
class _Said(Value):
    """A message of content blocks; plain text may be given for them."""

    role: str
    id: str = field(default_factory=message_id)
    content: tuple[Content, ...]

    def __post_init__(self) -> None:
        if isinstance(cast("object", self.content), str):
            _set(self, "content", blocks_of(cast("str", self.content)))

    @property
    def text(self) -> str:
        return text_of(self.content)


@plain(kw_only=True)
class SystemMessage(_Said):
    """Instructions inside a conversation (an agent's own prompt is not a message)."""

    role: Literal["system"] = "system"

    @classmethod
    def of(cls, text: str) -> Self:
        """A message of one text."""
        return cls(content=blocks_of(text))


@plain(kw_only=True)
class UserMessage(_Said):
    """What a user, or another agent, said."""

    role: Literal["user"] = "user"

    @classmethod
    def of(cls, text: str) -> Self:
        """A message of one text."""
        return cls(content=blocks_of(text))


@plain(kw_only=True)
class AssistantMessage(Value):
    """A complete answer of a model."""

    role: Literal["assistant"] = "assistant"
    id: str = field(default_factory=message_id)
    content: tuple[AssistantContent, ...] = ()
    stop_reason: StopReason = StopReason.END
    stop_detail: str | None = None  # the provider's own words, for a refusal for instance
    usage: Usage = NO_USAGE
    model: str | None = None

    def __post_init__(self) -> None:
        if self.stop_detail is not None:
            _set(self, "stop_detail", sendable(self.stop_detail))

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
        return replace(self, content=tuple(content))


@plain(kw_only=True)
class ToolResultMessage(Value):
    """The result of one call. `payload` is structured content for programs, never sent."""

    role: Literal["tool"] = "tool"
    id: str = field(default_factory=message_id)
    call_id: str
    tool_name: str
    content: tuple[Content, ...] = ()
    status: Status = Status.OK
    payload: Any = field(default=None, repr=False)

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def is_error(self) -> bool:
        return self.status is not Status.OK


ConversationMessage = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
Message = ConversationMessage


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
