"""Redacts a stream of deltas. What may become part of a secret is held back until it is clear."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace

from callboard.model import (
    AttemptDiscarded,
    Delta,
    Model,
    ModelRequest,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)
from callboard_mixins.redaction.cleaning import Cleaner
from callboard_mixins.redaction.redactor import Redactor
from callboard_mixins.wrapped_model import WrappedModel, WrappedStream

_CONTEXT = 80  # shown characters that the patterns still look at, for what must not stand before


class HeldText:
    """One text that is being written: shows what is clear, holds back the rest."""

    __slots__ = ("_due", "_redactor", "_shown", "_text", "changed")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = ""
        self._shown = 0  # characters of `_text` that were shown, redacted
        self._due = 0  # characters held at which it is worth looking again
        self.changed = False

    def add(self, piece: str) -> str:
        """What can be shown now that this piece has come."""
        self._text += piece
        if len(self._text) - self._shown < self._due:
            return ""
        shown = self._release(self._redactor.finder.open_from(self._text))
        held = len(self._text) - self._shown
        self._due = held + 1 + held // 16  # a long text is not looked at for each letter
        return shown

    def rest(self) -> str:
        """All that is held: nothing more comes."""
        shown = self._release(len(self._text))
        self._text, self._shown, self._due = "", 0, 0
        return shown

    def _release(self, until: int) -> str:
        if until <= self._shown:
            return ""
        spans = [s for s in self._redactor.finder.spans(self._text) if s.end > self._shown]
        for span in spans:
            if span.start < until < span.end:
                until = max(span.start, self._shown)
        at = self._shown
        spans = [s for s in spans if s.end <= until]
        found = [s._replace(start=max(s.start - at, 0), end=s.end - at) for s in spans]
        self.changed = self.changed or bool(found)
        shown = self._redactor.hidden(self._text[at:until], found)
        drop = max(until - _CONTEXT, 0)
        self._text, self._shown = self._text[drop:], until - drop
        return shown


class _HeldCall(HeldText):
    """The arguments of one call, and where the assembler finds it."""

    __slots__ = ("id", "index")

    def __init__(self, redactor: Redactor, id: str | None, index: int | None) -> None:
        super().__init__(redactor)
        self.id = id
        self.index = index


class RedactedDeltas:
    """The deltas of one model call, redacted. Feed it each one, in order."""

    __slots__ = ("_calls", "_cleaner", "_is_fresh", "_redactor", "_signed", "_text", "_thinking")

    def __init__(self, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._redactor = cleaner.redactor
        self._is_fresh = True  # nothing has come that is held

    def _begin(self) -> None:
        self._is_fresh = False
        self._text = HeldText(self._redactor)
        self._thinking = HeldText(self._redactor)
        self._signed = False  # the open block of thinking has a signature
        self._calls: list[_HeldCall] = []

    def passes(self, delta: Delta) -> bool:
        """Whether the delta can be shown as it is, before anything is held."""
        if not self._is_fresh:
            return False
        if type(delta) is WholeDelta:
            return self._cleaner.clean(delta.content) is delta.content
        return type(delta) is UsageDelta or (type(delta) is StopDelta and delta.detail is None)

    def feed(self, delta: Delta) -> Iterator[Delta]:
        """What can be shown now."""
        if self._is_fresh:
            self._begin()
        match delta:
            case TextDelta(text=text):
                yield from self._thinking_ends()
                yield from _if_any(TextDelta(self._text.add(text)))
            case ThinkingDelta():
                yield from self._text_ends()
                yield from self._thought(delta)
            case ToolCallDelta():
                yield from self._text_ends()
                yield from self._thinking_ends()
                yield from self._called(delta)
            case WholeDelta(content=content):
                yield from self.end()
                yield WholeDelta(tuple([self._cleaner.clean(block) for block in content]))
            case AttemptDiscarded(reason=reason):
                self._is_fresh = True  # what was held is void, too
                yield AttemptDiscarded(self._redactor.text(reason))
            case StopDelta(reason=reason, detail=detail):
                yield from self.end()
                yield StopDelta(reason, None if detail is None else self._redactor.text(detail))
            case _:
                yield delta

    def end(self) -> Iterator[Delta]:
        """What is held still, where nothing more comes."""
        if self._is_fresh:
            return
        yield from self._text_ends()
        yield from self._thinking_ends()
        yield from self._calls_end(self._calls)

    def _text_ends(self) -> Iterator[Delta]:
        yield from _if_any(TextDelta(self._text.rest()))

    def _thinking_ends(self) -> Iterator[Delta]:
        yield from _if_any(ThinkingDelta(self._thinking.rest()))
        self._thinking.changed = self._signed = False

    def _thought(self, delta: ThinkingDelta) -> Iterator[Delta]:
        """A signature is for the very text: it goes where that was changed."""
        if delta.text and self._signed:
            yield from self._thinking_ends()
        shown = self._thinking.add(delta.text)
        if delta.signature is None and delta.redacted is None:
            yield from _if_any(ThinkingDelta(shown))
            return
        yield from _if_any(ThinkingDelta(shown + self._thinking.rest()))
        self._signed = True
        signature = None if self._thinking.changed else delta.signature
        if signature is not None or delta.redacted is not None:
            yield ThinkingDelta("", signature, delta.redacted)

    def _called(self, delta: ToolCallDelta) -> Iterator[Delta]:
        """A call opens at once; its arguments may be held to the end of the message."""
        call = self._continued(delta)
        if call is None:
            same = [c for c in self._calls if delta.index is None or c.index == delta.index]
            yield from self._calls_end(same)
            call = _HeldCall(self._redactor, delta.id, delta.index)
            self._calls.append(call)
        shown = call.add(delta.arguments)
        if shown or delta.id is not None or delta.name is not None:
            yield replace(delta, arguments=shown)

    def _continued(self, delta: ToolCallDelta) -> _HeldCall | None:
        """The call that this piece belongs to, as the assembler sees it; None: it opens one."""
        calls = [c for c in self._calls if delta.index is None or c.index == delta.index]
        if delta.id:
            return next((call for call in calls if call.id == delta.id), None)
        starts_over = delta.index is None and bool(delta.name)
        return calls[-1] if calls and not starts_over else None

    def _calls_end(self, calls: Sequence[_HeldCall]) -> Iterator[Delta]:
        for call in calls:
            rest = call.rest()
            if rest:
                yield ToolCallDelta(arguments=rest, id=call.id, index=call.index)


def _if_any(delta: TextDelta | ThinkingDelta) -> Iterator[Delta]:
    if delta.text:
        yield delta


class RedactedModel(WrappedModel):
    """A model that is asked, and answers, in redacted words only."""

    __slots__ = ("_cleaner",)

    def __init__(self, inner: Model, cleaner: Cleaner) -> None:
        super().__init__(inner)
        self._cleaner = cleaner

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """As `Model.stream`."""
        return _RedactedStream(self.inner, self._asked(request), self._cleaner)

    def _asked(self, request: ModelRequest) -> ModelRequest:
        messages = self._cleaner.history(request.messages)
        system = self._cleaner.redactor.text(request.system)
        if system is request.system and messages is request.messages:
            return request
        return replace(request, messages=messages, system=system)


class _RedactedStream(WrappedStream):
    __slots__ = ("_due", "_is_over", "_redacted")

    def __init__(self, model: Model, request: ModelRequest, cleaner: Cleaner) -> None:
        self._model = model
        self._request = request
        self._deltas = model.stream(request)
        self._redacted = RedactedDeltas(cleaner)
        self._due: deque[Delta] = deque()
        self._is_over = False

    async def __anext__(self) -> Delta:
        while not self._due:
            if self._deltas is None or self._is_over:
                raise StopAsyncIteration
            try:
                delta = await self._deltas.__anext__()
            except StopAsyncIteration:
                self._is_over = True
                self._due.extend(self._redacted.end())
                continue
            if self._redacted.passes(delta):
                return delta
            self._due.extend(self._redacted.feed(delta))
        return self._due.popleft()
