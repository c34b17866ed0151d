"""The one place where deltas become a message.

Streamed or not, every answer goes through an Assembler, so that there is one set of rules for
call fragments, signatures, surrogates and unterminated streams.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from callboard.json_text import sendable
from callboard.messages import (
    NO_USAGE,
    AssistantContent,
    AssistantMessage,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
    new_id,
)
from callboard.model import (
    AttemptDiscarded,
    Delta,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)
from callboard.plain import plain


@plain
class Complete:
    """A message that ended properly."""

    message: AssistantMessage


@plain
class Incomplete:
    """A message that broke off: kept for people to read, never executed or sent again."""

    message: AssistantMessage  # as far as it came
    reason: str


class _OpenText:
    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[str] = []

    def close(self) -> TextBlock | None:
        text = "".join(self.parts)
        return TextBlock(text=text) if text else None


class _OpenThinking:
    __slots__ = ("parts", "redacted", "signature")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.signature: list[str] = []
        self.redacted: str | None = None

    def is_closed_for(self, delta: ThinkingDelta) -> bool:
        """Redacted thinking stands alone, and a signature ends its block."""
        alone = self.redacted is not None or delta.redacted is not None
        return alone or bool(delta.text and self.signature)

    def close(self) -> ThinkingBlock | None:
        text, signature = "".join(self.parts), "".join(self.signature) or None
        if not text and signature is None and self.redacted is None:
            return None
        return ThinkingBlock(text=text, signature=signature, redacted=self.redacted)


class _OpenCall:
    __slots__ = ("id", "index", "name", "parts")

    def __init__(self, id: str, index: int | None) -> None:
        self.id = id
        self.index = index
        self.name: list[str] = []
        self.parts: list[str] = []

    def close(self) -> ToolCall:
        name, raw = sendable("".join(self.name)), sendable("".join(self.parts))
        return ToolCall(id=sendable(self.id), name=name, raw=raw)


class Assembler:
    """Feed it every delta of one model call, in order; then ask for the `result`."""

    __slots__ = ("_blocks", "_half", "_halved", "_id", "_model", "_stop", "_text", "usage")

    def __init__(self, *, model: str | None = None, id: str | None = None) -> None:
        self._id = id or new_id("m")
        self._model = model
        self._discard()

    def _discard(self) -> None:
        self._blocks: list[_OpenText | _OpenThinking | _OpenCall | AssistantContent] = []
        self._text: list[str] | None = None  # the parts of the open text block: the hot path
        self._half = ""  # half of a surrogate pair, waiting for the other half
        self._halved: list[str] = []  # the parts that it belongs to
        self._stop: StopDelta | None = None
        self.usage: Usage = NO_USAGE  # the tokens reported so far

    def feed(self, delta: Delta) -> Delta | None:
        """Take one delta in. Returns what a watcher may be shown of it, or None for nothing yet
        (text that ends in half a character is held back until the other half is there).
        """
        if type(delta) is TextDelta:
            text = delta.text
            if self._text is not None and text and not self._half and text.isascii():
                self._text.append(text)  # nearly every delta there is
                return delta
            return self._feed_text(delta)
        if type(delta) is StopDelta:
            self._stop = delta
            return delta
        match delta:
            case ToolCallDelta():
                return self._feed_call(delta)
            case ThinkingDelta():
                return self._feed_thinking(delta)
            case WholeDelta():
                self._text = None if delta.content else self._text
                self._blocks.extend([_tidy(block) for block in delta.content])
            case UsageDelta():
                self.usage = delta.usage
            case AttemptDiscarded():
                self._discard()
            case _:
                raise TypeError(f"{delta!r} is not a delta")
        return delta

    def _feed_text(self, delta: TextDelta) -> TextDelta | None:
        if not delta.text:
            return None
        if self._text is None:
            block = _OpenText()
            self._blocks.append(block)
            self._text = block.parts
        shown = self._take(self._text, delta.text)
        return delta if shown is delta.text else TextDelta(shown) if shown else None

    def _take(self, parts: list[str], text: str) -> str:
        """Append the text, but for half a character at its end. Returns what may be shown."""
        if self._half and parts is not self._halved:
            self._release()
        if self._half or not text.isascii():
            text = self._half + text
            self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
            self._halved = parts
            text = text[:-1] if self._half else text
        if text:
            parts.append(text)
        return sendable(text)

    def _release(self) -> None:
        """Give up showing it whole; in the message it still finds its other half."""
        self._halved.append(self._half)
        self._half = ""

    def _feed_thinking(self, delta: ThinkingDelta) -> ThinkingDelta | None:
        if not (delta.text or delta.signature or delta.redacted):
            return None
        self._text = None
        block = self._blocks[-1] if self._blocks else None
        if not isinstance(block, _OpenThinking) or block.is_closed_for(delta):
            block = _OpenThinking()
            self._blocks.append(block)
        block.redacted = delta.redacted
        if delta.signature:
            block.signature.append(delta.signature)
        shown = self._take(block.parts, delta.text) if delta.text else ""
        return replace(delta, text=shown) if shown != delta.text else delta

    def _feed_call(self, delta: ToolCallDelta) -> ToolCallDelta | None:
        if not (delta.arguments or delta.id or delta.name):
            return None
        self._text = None
        call = self._continued(delta)
        if call is None:
            call = _OpenCall(delta.id or "", delta.index)
            self._blocks.append(call)
        if delta.name and delta.name != "".join(call.name):  # some repeat it in every piece
            call.name.append(delta.name)
        shown = self._take(call.parts, delta.arguments) if delta.arguments else ""
        return replace(delta, arguments=shown) if shown != delta.arguments else delta

    def _continued(self, delta: ToolCallDelta) -> _OpenCall | None:
        """The open call that this piece belongs to, or None where it opens a new one."""
        calls = [block for block in reversed(self._blocks) if isinstance(block, _OpenCall)]
        if delta.index is not None:
            calls = [call for call in calls if call.index == delta.index]
        if delta.id:
            return next((call for call in calls if call.id == delta.id), None)
        starts_over = delta.index is None and bool(delta.name) and bool(calls and calls[0].parts)
        return None if starts_over or not calls else calls[0]

    def result(self, *, broken: str | None = None) -> Complete | Incomplete:
        """The message, Complete only if a stop reason came and the stream did not break."""
        if self._half:
            self._release()
        stop = self._stop
        message = AssistantMessage(
            id=self._id,
            content=self._closed(),
            stop_reason=StopReason.OTHER if stop is None else stop.reason,
            stop_detail=None if stop is None else stop.detail,
            usage=self.usage,
            model=self._model,
        )
        if broken is not None or stop is None:
            return Incomplete(message, broken or "the stream ended without a stop reason")
        return Complete(message)

    def _closed(self) -> tuple[AssistantContent, ...]:
        closed: list[AssistantContent] = []
        for block in self._blocks:
            if type(block) is ToolCall:
                closed.append(block)
                continue
            done = block.close() if isinstance(block, _OPEN) else block
            if type(done) is ToolCall or (done is not None and not _is_empty(done)):
                closed.append(done)
        return tuple(closed)


_OPEN = (_OpenText, _OpenThinking, _OpenCall)


def _tidy(block: AssistantContent) -> AssistantContent:
    """A finished call with text that UTF-8 can hold (text blocks see to that themselves)."""
    if type(block) is not ToolCall:
        return block
    if block.id.isascii() and block.name.isascii() and block.raw.isascii():
        return block
    id, name, raw = sendable(block.id), sendable(block.name), sendable(block.raw)
    if id is block.id and name is block.name and raw is block.raw:
        return block
    return ToolCall(id=id, name=name, raw=raw)


def _is_empty(block: AssistantContent) -> bool:
    if isinstance(block, ThinkingBlock):
        return not block.text and block.signature is None and block.redacted is None
    return isinstance(block, TextBlock) and not block.text


def with_unique_ids(message: AssistantMessage, taken: Container[str]) -> AssistantMessage:
    """Replace empty ids, and ids used before, by fresh ones; given unique ids are kept."""
    seen: set[str] = set()
    for block in message.content:
        if type(block) is ToolCall:
            if not block.id or block.id in taken or block.id in seen:
                break
            seen.add(block.id)
    else:
        return message
    seen.clear()
    content = [_with_unique_id(block, taken, seen) for block in message.content]
    return message.with_content(content)


def _with_unique_id(
    block: AssistantContent, taken: Container[str], seen: set[str]
) -> AssistantContent:
    if not isinstance(block, ToolCall):
        return block
    if not block.id or block.id in taken or block.id in seen:
        block = block.with_id(new_id("call"))
    seen.add(block.id)
    return block
