"""What other models left in a conversation, made safe for the one that is asked now.

Used by the adapters before they convert a request. Providers take the ids and the signed thinking
of their own models only: a strict one refuses `call_1|fc_1`, and every one a foreign signature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count

from callboard.messages import (
    AssistantContent,
    AssistantMessage,
    ConversationMessage,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
)
from callboard.per_message import PerMessage

_DIGITS = 16  # of the digest in an id that is long enough to keep some of the old one


@dataclass(frozen=True, slots=True)
class IdShape:
    """The call ids that a provider takes: these characters (as in a regular expression's
    brackets), at most `longest` of them.
    """

    characters: str = "A-Za-z0-9_-"
    longest: int = 40  # what OpenAI's chat completions take

    def fits(self, id: str) -> bool:
        return re.fullmatch(f"[{self.characters}]{{1,{self.longest}}}", id) is not None

    def made_of(self, id: str, *, salt: str = "") -> str:
        """An id of this shape, the same for the same `id`, another for another."""
        digest = sha256(f"{salt}{id}".encode()).hexdigest()
        room = self.longest - _DIGITS
        if room < 1:
            return digest[: self.longest]
        return re.sub(f"[^{self.characters}]", "", id)[:room] + digest[:_DIGITS]


ANY_OF_OPENAI = IdShape()


def wire_ids(
    messages: Sequence[ConversationMessage], *, model: str | None, shape: IdShape = ANY_OF_OPENAI
) -> Mapping[str, str]:
    """From the call ids of other models that do not fit to ones that do; one to one.

    Ids of `model` itself, and all that fit, are kept: they do not stand in the result.
    """
    foreign: list[str] = []
    kept: set[str] = set()
    for message in messages:
        if type(message) is AssistantMessage:
            for call in message.calls:
                native = message.model is not None and message.model == model
                (kept.add if native or shape.fits(call.id) else foreign.append)(call.id)
    made: dict[str, str] = {}
    for id in foreign:
        if id not in kept and id not in made:
            made[id] = _unused(id, shape, kept)
            kept.add(made[id])
    return made


def _unused(id: str, shape: IdShape, taken: set[str]) -> str:
    new = shape.made_of(id)
    salts = count(1)
    while new in taken:
        new = shape.made_of(id, salt=f"{next(salts)} ")
    return new


class HandOver:
    """Makes conversations safe for `model`. What is made of a message is made once.

    Without a `model` every message counts as another's.
    """

    def __init__(self, model: str | None = None, *, shape: IdShape = ANY_OF_OPENAI) -> None:
        self._model = model
        self._shape = shape
        self._is_foreign = PerMessage(self._found_foreign)
        self._copies = PerMessage(_Copy)

    def safe(self, messages: Sequence[ConversationMessage]) -> Sequence[ConversationMessage]:
        """The messages with copies of those that hold what only another model could read.

        Call ids are rewritten in the call and in its result alike; thinking of another model loses
        its signature, and goes where nothing else was in it. Nothing given is changed.
        """
        if not any([self._is_foreign(message) for message in messages]):
            return messages
        ids = wire_ids(messages, model=self._model, shape=self._shape)
        return [self._one(message, ids) for message in messages]

    def _found_foreign(self, message: ConversationMessage) -> bool:
        if type(message) is not AssistantMessage:
            return False
        if message.model is not None and message.model == self._model:
            return False
        return any([_is_signed(b) or self._is_unfit(b) for b in message.content])

    def _is_unfit(self, block: AssistantContent) -> bool:
        return type(block) is ToolCall and not self._shape.fits(block.id)

    def _one(self, message: ConversationMessage, ids: Mapping[str, str]) -> ConversationMessage:
        if type(message) is ToolResultMessage:
            renamed = message.call_id in ids
            return (
                self._copies(message).of(message, (ids[message.call_id],)) if renamed else message
            )
        if type(message) is AssistantMessage and self._is_foreign(message):
            new = tuple([ids.get(call.id, call.id) for call in message.calls])
            return self._copies(message).of(message, new)
        return message


class _Copy:
    """The safe copy of one message, made again only where its ids are others."""

    __slots__ = ("_ids", "_made")

    def __init__(self, _: ConversationMessage) -> None:
        self._ids: tuple[str, ...] | None = None
        self._made: ConversationMessage | None = None

    def of(
        self, message: AssistantMessage | ToolResultMessage, ids: tuple[str, ...]
    ) -> ConversationMessage:
        if self._made is None or self._ids != ids:
            self._ids, self._made = ids, _with_ids(message, ids)
        return self._made


def _with_ids(
    message: AssistantMessage | ToolResultMessage, ids: tuple[str, ...]
) -> ConversationMessage:
    if isinstance(message, ToolResultMessage):
        return replace(message, call_id=ids[0])
    new = iter(ids)
    content = [
        block.with_id(next(new)) if type(block) is ToolCall else _unsigned(block)
        for block in message.content
    ]
    return message.with_content([block for block in content if block is not None])


def _is_signed(block: AssistantContent) -> bool:
    return type(block) is ThinkingBlock and (block.signature or block.redacted) is not None


def _unsigned(block: AssistantContent) -> AssistantContent | None:
    if type(block) is not ThinkingBlock or not _is_signed(block):
        return block
    return ThinkingBlock(text=block.text) if block.text else None
