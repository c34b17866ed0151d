"""Which part of a conversation is summed up, and what a model is shown in its place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from callboard.errors import ConfigurationError
from callboard.json_text import cut
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    TextBlock,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)
from callboard.model import ModelRequest
from callboard_mixins.token_estimate import tokens_of

INSTRUCTIONS = (
    "You sum up a conversation between a user and an agent, so that the agent can go on with "
    "nothing but your summary. Keep: what the user wants, what was decided and why, what the tools "
    "found (names, numbers, paths as they are), what failed, and what is left to do. Write facts, "
    "no advice."
)
LEFT_OUT = "(The messages before this point were too many and are left out: {count} of them.)"
SUMMED_UP = "(What was said before this point, summed up:)\n{summary}"
_SHOWN_BYTES = 4_000  # of one message, to the model that sums up
_WHOLE_BYTES = 200_000  # of all of them
Trim = Callable[[ConversationMessage], ConversationMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When a conversation is compacted, and how much of it stays as it is.

    It is when a request takes more than `at_tokens`, or else `at_share` of the window that the
    model's description names; without either, only after the model said that it was too long. The
    last `keep_recent` rounds (a message and the results of its calls) stay, and so does the newest
    message of the user, however old it is. In older rounds results longer than
    `longest_result_bytes` are cut first, which may be enough.
    """

    at_tokens: int | None = None
    at_share: float = 0.8
    keep_recent: int = 4
    longest_result_bytes: int = 2_000
    instructions: str = INSTRUCTIONS

    def __post_init__(self) -> None:
        if self.at_tokens is not None and self.at_tokens < 1:
            raise ConfigurationError(f"at_tokens={self.at_tokens!r}: it is 1 or more, or None")
        if not 0 < self.at_share <= 1:
            raise ConfigurationError(f"at_share={self.at_share!r}: it is above 0, and 1 at most")
        if self.keep_recent < 1:
            raise ConfigurationError(f"keep_recent={self.keep_recent!r}: the last round stays")
        if self.longest_result_bytes < 1:
            raise ConfigurationError(f"longest_result_bytes={self.longest_result_bytes!r}")

    def limit(self, request: ModelRequest) -> int | None:
        """The tokens above which a request is compacted, or None."""
        if self.at_tokens is not None:
            return self.at_tokens
        window = request.model.capabilities.context_tokens
        return None if window is None else int(window * self.at_share)


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is shown of a conversation: a summary instead of the messages up to one, and results
    that are cut up to another. As it stands in the journal.
    """

    upto: str = ""  # the id of the last message that is summed up
    summary: str = ""
    trimmed: str = ""  # the id of the last message whose result may be cut
    newest: str = ""  # the id of the newest message when this was made
    overflow: str = ""  # the newest user message when the model said that it was too long

    @classmethod
    def of(cls, fact: Mapping[str, Any]) -> Compacted:
        return cls(**fact)


class CompactedView(Sequence[ConversationMessage]):
    """The messages from `start` on, behind a summary; results before `trimmed_to` are cut."""

    __slots__ = ("_head", "_messages", "_start", "_trim", "_trimmed_to")

    def __init__(
        self,
        messages: Sequence[ConversationMessage],
        *,
        head: tuple[ConversationMessage, ...],
        start: int,
        trimmed_to: int,
        trim: Trim,
    ) -> None:
        self._messages = messages
        self._head = head
        self._start = start
        self._trimmed_to = trimmed_to
        self._trim = trim

    def __len__(self) -> int:
        return len(self._head) + len(self._messages) - self._start

    def __iter__(self) -> Iterator[ConversationMessage]:
        for at in range(len(self)):
            yield self[at]

    @overload
    def __getitem__(self, index: int) -> ConversationMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ConversationMessage, ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> ConversationMessage | tuple[ConversationMessage, ...]:
        if isinstance(index, slice):
            return tuple([self[at] for at in range(*index.indices(len(self)))])
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"message {index} of {len(self)}")
        if index < len(self._head):
            return self._head[index]
        at = index - len(self._head) + self._start
        message = self._messages[at]
        return self._trim(message) if at < self._trimmed_to else message


class Measure:
    """About how many tokens the messages of a request take. Looks at each of them once.

    The last answer says by its usage what it took with all before it, unless it was given before
    the conversation was compacted.
    """

    __slots__ = ("_compacted", "_count", "_tokens")

    def __init__(self) -> None:
        self._compacted: Compacted | None = None
        self._count = 0  # of the messages that were estimated
        self._tokens = 0

    def tokens(
        self, shown: Sequence[ConversationMessage], compacted: Compacted, *, fresh: int
    ) -> int:
        """`fresh` is how many of the newest messages came after it was compacted."""
        if self._compacted != compacted or len(shown) < self._count:
            self._compacted, self._count, self._tokens = compacted, 0, 0
        grown = 0
        for at in range(len(shown) - 1, self._count - 1, -1):
            message = shown[at]
            if isinstance(message, AssistantMessage) and len(shown) - at <= fresh:
                counted = message.usage.input_tokens
                if counted is not None:
                    return grown + counted + (message.usage.output_tokens or 0)
            grown += tokens_of(message)
        self._count, self._tokens = len(shown), self._tokens + grown
        return self._tokens


def place_after(messages: Sequence[ConversationMessage], id: str) -> int:
    """The index behind the message of this id; 0 where there is none. The newest come first."""
    if not id:
        return 0
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].id == id:
            return at + 1
    return 0


def cut_point(messages: Sequence[ConversationMessage], start: int, *, keep_recent: int) -> int:
    """Up to where messages from `start` on may be summed up: whole rounds only, and at least
    `keep_recent` of them stay. `start` where there is nothing to gain.
    """
    borders: list[int] = []
    for at in range(len(messages) - 1, start - 1, -1):
        if not isinstance(messages[at], ToolResultMessage):
            borders.append(at)
        if len(borders) > keep_recent:
            break
    if len(borders) <= keep_recent:
        return start
    point = borders[keep_recent - 1]
    is_prompt_alone = point == start + 1 and newest_prompt(messages) is messages[start]
    return start if is_prompt_alone else point


def newest_prompt(messages: Sequence[ConversationMessage]) -> UserMessage | None:
    """The newest message of the user: it is always shown as it is."""
    return next((one for one in reversed(messages) if isinstance(one, UserMessage)), None)


def trimmer(longest_bytes: int) -> Trim:
    """What cuts the result of a tool to so many bytes, and leaves other messages as they are."""

    def trim(message: ConversationMessage) -> ConversationMessage:
        if not isinstance(message, ToolResultMessage) or len(message.text) <= longest_bytes // 4:
            return message
        size = len(message.text.encode(errors="replace"))
        if size <= longest_bytes:
            return message
        note = f"\n(an older result: the first {longest_bytes} of its {size} bytes are shown)"
        return replace(message, content=(TextBlock(text=cut(message.text, longest_bytes) + note),))

    return trim


def head_of(
    compacted: Compacted, messages: Sequence[ConversationMessage], start: int
) -> tuple[ConversationMessage, ...]:
    """What stands for the messages before `start`: a summary, and the newest message of the user
    if it is one of them.
    """
    if not compacted.upto:
        return ()
    text = LEFT_OUT.format(count=start)
    if compacted.summary:
        text = SUMMED_UP.format(summary=compacted.summary)
    summary = UserMessage(id=f"compaction/{compacted.upto}", content=blocks_of(text))
    if any([isinstance(messages[at], UserMessage) for at in range(start, len(messages))]):
        return (summary,)
    prompt = newest_prompt(messages)
    return (summary,) if prompt is None else (summary, prompt)


def to_sum_up(messages: Sequence[ConversationMessage]) -> UserMessage:
    """The messages as one text, for the model that sums them up. Bounded; the newest count most."""
    lines: list[str] = []
    size = 0
    for message in reversed(messages):
        line = _line(message)
        size += len(line)
        if size > _WHOLE_BYTES:
            lines.append("(earlier messages are left out)")
            break
        lines.append(line)
    return UserMessage.of("Sum this up:\n\n" + "\n\n".join(reversed(lines)))


def _line(message: ConversationMessage) -> str:
    text = cut(message.text, _SHOWN_BYTES)
    if isinstance(message, ToolResultMessage):
        return f"result of {message.tool_name} ({message.status}): {text}"
    if isinstance(message, AssistantMessage):
        calls = [f"called {call.name}({cut(call.raw, 500)})" for call in message.calls]
        return "\n".join([f"agent: {text}", *calls])
    return f"user: {text}"
