"""Redacts records, events, messages and whatever they are made of: changed copies, or the same
object where there is nothing to hide.

Every kind is named here with its fields that hold words. A kind that is not named is refused, so
that a new one is not stored or shown before somebody has thought of it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from pydantic_core import to_jsonable_python

from callboard import approvals, events, messages, replies
from callboard.journaling import records
from callboard.journaling.message_view import MessageView
from callboard.json_text import canonical
from callboard.per_message import PerMessage
from callboard_mixins.redaction.redactor import Redactor

T = TypeVar("T")

FIELDS: Final[Mapping[type, tuple[str, ...]]] = MappingProxyType(
    {
        records.RunStarted: ("prompt",),
        records.RunFinished: ("text", "error", "output"),
        records.Prompted: ("messages",),
        records.ModelAttempted: ("error", "answer"),
        records.MessageAdded: ("message",),
        records.Decided: ("call", "reason"),
        records.ToolStarted: (),
        records.ToolFinished: ("observation",),
        records.Observed: ("observation",),
        records.Queued: ("content",),
        records.Taken: ("message",),
        records.Spent: (),
        records.Withdrawn: (),
        records.ApprovalRequested: ("approval",),
        records.ApprovalResolved: ("answer",),
        records.LayerFact: ("payload",),
        records.Repaired: ("notes",),
        records.DraftInterrupted: ("partial", "reason"),
        records.Activated: (),
        records.Snapshot: ("messages",),
        events.AgentStart: ("prompt",),
        events.AgentEnd: ("text",),
        events.TurnStart: (),
        events.TurnEnd: ("message", "results"),
        events.MessageStart: (),
        events.MessageUpdate: (),  # its delta was redacted in the stream
        events.MessageEnd: ("message",),
        events.ToolStart: ("call",),
        events.ToolUpdate: ("value",),
        events.ToolEnd: ("observation",),
        events.ArgumentsRepaired: ("before", "after"),
        events.ApprovalAsked: ("approval",),
        events.ApprovalAnswered: ("approval",),
        events.Retry: ("reason",),
        events.LimitReached: ("limit",),
        events.Warned: ("text",),
        replies.Prompt: ("messages",),
        approvals.Approval: ("preview", "reason", "findings", "answer"),
        messages.SystemMessage: ("content",),
        messages.UserMessage: ("content",),
        messages.AssistantMessage: ("content", "stop_detail"),
        messages.ToolResultMessage: ("content", "payload"),
        messages.Observation: ("content", "payload", "details"),
        messages.TextBlock: ("text",),
    }
)
_MESSAGES = frozenset(
    {
        messages.SystemMessage,
        messages.UserMessage,
        messages.AssistantMessage,
        messages.ToolResultMessage,
    }
)
_PLAIN = frozenset({bool, int, float, type(None)})


class Cleaner:
    """Redacts anything that is stored or shown. Remembers the messages that are clean."""

    __slots__ = ("_seen", "message", "redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._seen: MessageView | None = None  # a history that was clean
        self.redactor = redactor
        self.message = PerMessage(self._fields)  # a history is sent again in each turn

    def clean(self, value: T) -> T:
        """The value without what is to be hidden.

        Raises:
            TypeError: it is of a kind that nobody has said the fields of.
        """
        return cast(T, self._clean(value))

    def history(
        self, said: Sequence[messages.ConversationMessage]
    ) -> Sequence[messages.ConversationMessage]:
        """The messages of a request, the same object where all are clean. What was clean before
        and only grew is not looked through again.
        """
        begun = 0
        view = said if type(said) is MessageView else None
        if view is not None and self._seen is not None and view.continues(self._seen):
            begun = len(self._seen)
        if all([self.message(said[at]) is said[at] for at in range(begun, len(said))]):
            self._seen = view or self._seen
            return said
        return tuple([self.message(message) for message in said])

    def _clean(self, value: Any) -> Any:
        kind = cast("type[object]", type(value))
        if kind is str:
            return self.redactor.text(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return self._items(value)
        if kind in FIELDS:
            return self.message(value) if kind in _MESSAGES else self._fields(value)
        special = _SPECIAL.get(kind)
        if special is not None:
            return special(self, value)
        return self._other(kind, value)

    def _fields(self, value: Any) -> Any:
        changed: dict[str, Any] | None = None
        for name in FIELDS[type(value)]:
            given = getattr(value, name)
            clean = self._clean(given)
            if clean is not given:
                changed = {} if changed is None else changed
                changed[name] = clean
        return value if changed is None else replace(value, **changed)

    def _items(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        for item in given:
            if self._clean(item) is not item:
                return tuple([self._clean(item) for item in given])
        return given

    def _other(self, kind: type[object], value: Any) -> Any:
        if isinstance(value, list):
            given = cast("Sequence[Any]", value)
            items = [self._clean(item) for item in given]
            same = all([a is b for a, b in zip(items, given, strict=True)])
            return given if same else items
        if isinstance(value, (str, Mapping, tuple)):
            return self.redactor.json(value)
        if isinstance(value, Enum):
            return value
        if is_dataclass(value) and kind.__module__.startswith("callboard."):
            raise TypeError(f"redaction does not know which fields of {kind.__name__} hold words")
        return self._foreign(value)

    def _foreign(self, value: object) -> Any:
        """What a tool told or a run put out: any object, which stays if it has nothing to hide."""
        plain = to_jsonable_python(value, fallback=repr, bytes_mode="base64")
        clean = self.redactor.json(plain)
        return value if clean is plain else clean

    def thinking(self, block: messages.ThinkingBlock) -> messages.ThinkingBlock:
        """A signature is for the very text: it goes where that was changed."""
        text = self.redactor.text(block.text)
        return block if text == block.text else replace(block, text=text, signature=None)

    def call(self, call: messages.ToolCall) -> messages.ToolCall:
        """The call with its arguments redacted, also where JSON escapes hide them."""
        raw = self.redactor.text(call.raw)
        clean = call if raw is call.raw else replace(call, raw=raw)
        if "\\" in raw and clean.problem is None:
            arguments = self.redactor.json(clean.arguments)
            if arguments is not clean.arguments:
                return replace(call, raw=canonical(arguments))
        return clean

    def media(self, block: messages.Media) -> messages.Media:
        """The address of media, and the text of files; images and sound are not looked into."""
        url = None if block.url is None else self.redactor.text(block.url)
        data = block.data
        if isinstance(block, messages.FileBlock):
            name = None if block.name is None else self.redactor.text(block.name)
            data = None if data is None else self._file(data)
            if name != block.name:
                block = replace(block, name=name)
        if url is block.url and data is block.data:
            return block
        return replace(block, url=url, data=data)

    def _file(self, data: str) -> str:
        try:
            text = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return data
        clean = self.redactor.text(text)
        return data if clean is text else base64.b64encode(clean.encode()).decode()


_SPECIAL: Mapping[type, Callable[[Cleaner, Any], Any]] = MappingProxyType(
    {
        messages.ThinkingBlock: Cleaner.thinking,
        messages.ToolCall: Cleaner.call,
        messages.ImageBlock: Cleaner.media,
        messages.AudioBlock: Cleaner.media,
        messages.FileBlock: Cleaner.media,
    }
)
