"""Payloads and answers as JSON, for engines that keep them.

`{"value": ...}` any JSON value      `{"prompt": [...]}` messages for an agent
`{"go_on": true}` GoOn               `{"control": "steer", ...}` a word on the control lane
`{"reply": {...}}` a Reply           `{"error": "ActorFailed", "text": "..."}` what was raised
`{"call": {...}}` an AgentCall       `{"told": [...]}` what became of its questions above
`{"take_over": {...}}` a TakeOver    `{"messages": [...]}` a conversation
`{"approvals": [...]}`, `{"queued": [...]}` what the control lane answers with
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import isfinite
from types import GenericAlias
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from callboard.agent_calls import AgentCall, Told
from callboard.approvals import Approval
from callboard.errors import (
    ActorFailed,
    ActorStopped,
    AskCycle,
    AskTimeout,
    CallboardError,
    ConfigurationError,
    MailboxFull,
    NotAnApprover,
    UnknownAddress,
)
from callboard.journaling.records import Queued
from callboard.json_text import Json
from callboard.messages import (
    AssistantMessage,
    Content,
    ConversationMessage,
    ToolResultMessage,
    UserMessage,
)
from callboard.replies import Outcome, Prompt, Reply, RunFailed
from callboard.seated import GoOn
from callboard.taking_over import TakeOver

Items = Sequence[object]
Document = dict[str, Any]
_ERRORS: tuple[type[CallboardError], ...] = (
    ActorFailed,
    ActorStopped,
    AskCycle,
    AskTimeout,
    ConfigurationError,
    MailboxFull,
    NotAnApprover,
    UnknownAddress,
)
_LISTS: dict[type[object], str] = {
    Approval: "approvals",
    Queued: "queued",
    Told: "told",
    AssistantMessage: "messages",
    ToolResultMessage: "messages",
}
_IN_PROMPTS: frozenset[type[object]] = frozenset({str, UserMessage, *get_args(Content)})
_BY_NAME = {kind.__name__: kind for kind in _ERRORS}


def to_body(payload: Any) -> Json:
    """A payload or an answer as JSON.

    Raises:
        ConfigurationError: it is no prompt, no reply and no JSON value; names what it is.
    """
    if isinstance(payload, GoOn):
        return {"go_on": True}
    if isinstance(payload, Reply):
        return {"reply": _adapter(Reply).dump_python(payload, mode="json")}
    if isinstance(payload, Prompt):
        return {"prompt": _dumped(payload.messages)}
    if _has_messages(payload):
        return {"prompt": _dumped(Prompt.of(payload).messages)}
    if isinstance(payload, TakeOver):
        return {"take_over": _adapter(TakeOver).dump_python(payload, mode="json")}
    if isinstance(payload, AgentCall):
        return {"call": _adapter(AgentCall).dump_python(payload, mode="json")}
    name = _list_name(payload)
    if name is not None:
        return {name: _many(name).dump_python(payload, mode="json")}
    return {"value": checked(payload)}


def error_body(error: BaseException) -> Json:
    """What was raised, for those who asked from elsewhere."""
    if isinstance(error, RunFailed):
        return to_body(error.reply)
    return {"error": type(error).__name__, "text": str(error)}


def from_body(body: Json) -> Any:
    """The payload or the answer that `to_body` wrote.

    Raises:
        RunFailed: it is the reply of a run that failed. ActorFailed, or another error of this
        package: the actor raised it. ConfigurationError: nobody wrote this with `to_body`.
    """
    try:
        return _read(body)
    except ValidationError as error:
        raise ConfigurationError(
            f"{body!r:.200} is no letter that Callboard wrote, or a newer one did: {error!s:.300}"
        ) from error


def _read(body: Json) -> Any:
    match body:
        case {"value": value}:
            return value
        case {"prompt": messages}:
            return _adapter(tuple[UserMessage, ...]).validate_python(messages)
        case {"go_on": True}:
            return GoOn()
        case {"reply": reply}:
            return _reply(_adapter(Reply).validate_python(reply))
        case {"call": call}:
            return _adapter(AgentCall).validate_python(call)
        case {"take_over": conversation}:
            return _adapter(TakeOver).validate_python(conversation)
        case {"told": items} | {"approvals": items} | {"queued": items} | {"messages": items}:
            return _many(next(iter(body))).validate_python(items)
        case {"error": str(name), "text": str(text)}:
            raise _BY_NAME.get(name, ActorFailed)(text if name in _BY_NAME else f"{name}: {text}")
        case _:
            raise ConfigurationError(f"{body!r:.200} is no letter that Callboard wrote")


def checked(value: Any, *, where: str = "a payload") -> Json:
    """The value, if JSON can hold it; tuples become lists.

    Raises:
        ConfigurationError: names the type and the remedy.
    """
    if value is None or isinstance(value, (bool, int, str)) or _is_finite(value):
        return value
    if isinstance(value, (list, tuple)):
        return [checked(item, where=where) for item in cast(Items, value)]
    if isinstance(value, dict) and all([isinstance(key, str) for key in cast(Items, value)]):
        return {key: checked(item, where=where) for key, item in cast(Document, value).items()}
    raise _no_json(cast(object, value), where)


def _no_json(value: object, where: str) -> ConfigurationError:
    return ConfigurationError(
        f"{where} holds a {type(value).__name__}, which is no JSON: a durable engine keeps text,"
        " finite numbers, lists and dicts with text as keys, and messages for agents"
        f" ({value!r:.100})"
    )


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and isfinite(value)


def _has_messages(payload: Any) -> bool:
    """Whether it is a prompt of messages or blocks; text alone is a plain value."""
    items = cast(Items, payload) if isinstance(payload, (list, tuple)) else (payload,)
    kinds: set[object] = {type(item) for item in items}
    return not kinds <= {str} and kinds <= _IN_PROMPTS


def _dumped(messages: tuple[UserMessage, ...]) -> Json:
    return _adapter(tuple[UserMessage, ...]).dump_python(messages, mode="json")


def _list_name(payload: Any) -> str | None:
    """What a tuple is a list of, if it is one that the control lane answers with."""
    items = cast(Items, payload) if isinstance(payload, tuple) else ()
    return next((_LISTS[type(item)] for item in items if type(item) in _LISTS), None)


def _many(name: str) -> TypeAdapter[Any]:
    if name == "messages":
        return _adapter(tuple[ConversationMessage, ...])
    items = [item for item, known in _LISTS.items() if known == name]
    return _adapter(GenericAlias(tuple, (items[0], ...)))


def _reply(reply: Reply) -> Reply:
    if reply.outcome is Outcome.FAILED:
        raise RunFailed(f"the run failed: {reply.error}", reply=reply)
    return reply


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
