"""The answers of a scripted model: whole ones (`say`, `call`) and streamed ones (`stream`).

Used through `callboard.testing`; `scripted_model.py` plays them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from callboard.errors import ConfigurationError, ErrorCategory, ModelError
from callboard.json_text import canonical
from callboard.messages import (
    AssistantContent,
    AudioBlock,
    ImageBlock,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)
from callboard.model import (
    AttemptDiscarded,
    Delta,
    ModelRequest,
    StopDelta,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    WholeDelta,
)


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of a script. Where `id` is None the model counts one: call_1, call_2 ..."""

    name: str
    raw: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence of that many seconds (virtual ones on a virtual-time loop)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Eof:
    """The stream ends without a stop reason."""


Step = Delta | ScriptedCall | Pause | Eof | ModelError
Part = str | ScriptedCall | ThinkingDelta | AssistantContent


@dataclass(frozen=True, slots=True)
class Answer:
    """One scripted answer: what its stream does, in order."""

    steps: tuple[Step, ...]


ScriptItem = (
    str
    | ScriptedCall
    | Answer
    | BaseException
    | Callable[[ModelRequest], "ScriptItem | Awaitable[ScriptItem]"]
)


def call(name: str, /, _id: str | None = None, **arguments: Any) -> ScriptedCall:
    """A call of the tool `name` with these arguments. `_id=""` is a call without an id."""
    return ScriptedCall(name, canonical(arguments), _id)


def raw_call(name: str, text: str, *, id: str | None = None) -> ScriptedCall:
    """A call whose arguments are exactly this text, valid JSON or not."""
    return ScriptedCall(name, text, id)


def say(
    *parts: Part, stop: str | None = None, usage: Usage | None = None, detail: str | None = None
) -> Answer:
    """A whole answer of texts, calls, thoughts and blocks; an empty text is no block.

    Without `stop` it is "tool_use" where there are calls and else "end"; without `usage` the
    tokens are unknown.
    """
    steps: list[Step] = [_whole(part) for part in parts if part != ""]
    if usage is not None:
        steps.append(UsageDelta(usage))
    steps.append(finish(stop or _default_stop(steps), detail=detail))
    return Answer(tuple(steps))


def _whole(part: object) -> Step:
    if isinstance(part, str):
        return WholeDelta((TextBlock(text=part),))
    if isinstance(part, ThinkingDelta):
        return WholeDelta((_thought(part),))
    if isinstance(part, ScriptedCall):
        return part
    if isinstance(part, (TextBlock, ThinkingBlock, ToolCall, ImageBlock, AudioBlock)):
        return WholeDelta((part,))
    raise ConfigurationError(f"{part!r} cannot be said: pass texts, call(...), think(...), blocks")


def _thought(delta: ThinkingDelta) -> ThinkingBlock:
    return ThinkingBlock(text=delta.text, signature=delta.signature, redacted=delta.redacted)


def _default_stop(steps: Iterable[Step]) -> str:
    return "tool_use" if any(map(_is_call, steps)) else "end"


def _is_call(step: Step) -> bool:
    if isinstance(step, WholeDelta):
        return any(isinstance(block, ToolCall) for block in step.content)
    return isinstance(step, (ScriptedCall, ToolCallDelta))


def stream(*steps: str | Step) -> Answer:
    """An answer in pieces: texts, `think`, `call`, `call_piece`, `usage`, `finish`, `pause`,
    `drop`, `eof`, `error` and any delta.

    One that has neither `finish` nor another end stops properly at its end, as `say` does.
    """
    played = [TextDelta(step) if isinstance(step, str) else _checked(step) for step in steps]
    if not any(isinstance(step, (StopDelta, Eof, ModelError)) for step in played):
        played.append(finish(_default_stop(played)))
    return Answer(tuple(played))


_STEPS = (
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageDelta,
    StopDelta,
    WholeDelta,
    AttemptDiscarded,
    ScriptedCall,
    Pause,
    Eof,
    ModelError,
)


def _checked(step: object) -> Step:
    if not isinstance(step, _STEPS):
        raise ConfigurationError(
            f"{step!r} is no step of a stream: use texts, think(...), call(...), finish(...)"
        )
    return step


def think(
    text: str = "", *, signature: str | None = None, redacted: str | None = None
) -> ThinkingDelta:
    """A thought, or a piece of one; a signature may come in pieces of its own."""
    return ThinkingDelta(text, signature, redacted)


def call_piece(
    arguments: str = "", *, id: str | None = None, name: str | None = None, index: int | None = None
) -> ToolCallDelta:
    """A piece of a call, joined to others by the rules of ToolCallDelta."""
    return ToolCallDelta(arguments, id, name, index)


def usage(
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    *,
    cached_tokens: int | None = None,
    reasoning_tokens: int | None = None,
) -> UsageDelta:
    """Tokens used so far in this answer."""
    return UsageDelta(
        Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cached_tokens=cached_tokens,
            reasoning_tokens=reasoning_tokens,
        )
    )


def finish(stop: str = "end", *, detail: str | None = None) -> StopDelta:
    """The model stops: "end", "tool_use", "length", "refusal", "filter" or "other"."""
    try:
        return StopDelta(StopReason(stop), detail)
    except ValueError:
        known = ", ".join(StopReason)
        raise ConfigurationError(f"{stop!r} is no stop reason; there are {known}") from None


def pause(seconds: float) -> Pause:
    """Nothing comes for that many seconds."""
    return Pause(seconds)


def drop(reason: str = "the connection was reset") -> ModelError:
    """The connection breaks."""
    return ModelError(reason, category=ErrorCategory.NETWORK)


def eof() -> Eof:
    """The stream ends cleanly and without a stop reason: the message is incomplete."""
    return Eof()


def error(
    message: str = "the provider failed",
    *,
    category: str = ErrorCategory.OVERLOADED,
    status: int | None = None,
    retry_after_s: float | None = None,
) -> ModelError:
    """The provider reports a failure, before or in the middle of its answer."""
    return ModelError(
        message, category=ErrorCategory(category), status=status, retry_after_s=retry_after_s
    )
