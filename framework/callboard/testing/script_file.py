"""Scripts as JSON files, for tests and demos without code: `load_script("demo.json")`.

A file holds a list. Each entry is a text, a whole answer or a streamed one:

    {"say": "let me add", "calls": [{"id": "a", "name": "add", "arguments": {"a": 1, "b": 2}}],
     "stop": "tool_use", "usage": {"in": 3, "out": 2}}
    {"stream": [{"think": "hm"}, {"sig": "AAA"}, {"text": "he"}, {"text": "llo"},
                {"call": {"index": 0, "id": "a", "name": "add", "args": "{\\"a\\":"}},
                {"sleep": 0.1}, {"usage": {"in": 8, "out": 4}}, {"finish": "end"}]}

A stream may also hold {"drop": "reason"}, {"eof": true}, {"error": {"category": ...}} and
{"choices": []}, which is nothing. `arguments` is an object, or a text taken as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from callboard.errors import ConfigurationError, ErrorCategory
from callboard.json_text import Json, canonical
from callboard.messages import Usage
from callboard.model import TextDelta, UsageDelta
from callboard.testing.script import (
    Answer,
    ScriptedCall,
    ScriptItem,
    Step,
    call_piece,
    drop,
    eof,
    error,
    finish,
    pause,
    raw_call,
    say,
    stream,
    think,
)
from callboard.testing.scripted_model import ScriptedModel


def load_script(
    path: str | Path, *, then: ScriptItem | None = "done", strict: bool = True
) -> ScriptedModel:
    """A scripted model from a file; behind its last entry it answers `then` for ever.

    Raises:
        ConfigurationError: the file cannot be read, or an entry is not in the notation.
    """
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigurationError(f"the script {str(path)!r} cannot be read: {problem}") from problem
    except ValueError as problem:
        raise ConfigurationError(f"the script {str(path)!r} is not JSON: {problem}") from problem
    script = read_script(entries, source=str(path))
    return ScriptedModel(script, then=then, name=f"scripted:{path}", strict=strict)


def read_script(entries: Json, *, source: str = "script") -> list[Answer]:
    """The answers of a parsed script; `source` stands in the errors.

    Raises:
        ConfigurationError: naming the source and the entry.
    """
    if not isinstance(entries, list):
        raise ConfigurationError(f"{source}: a script is a list of answers, not {entries!r:.80}")
    numbered = enumerate(cast(Sequence[Json], entries), 1)
    return [_answer(entry, f"{source}, entry {at}") for at, entry in numbered]


def _answer(entry: Json, where: str) -> Answer:
    if isinstance(entry, str):
        return say(entry)
    try:
        return _streamed(entry) if "stream" in _object(entry) else _said(entry)
    except (TypeError, ValueError, KeyError) as problem:
        raise ConfigurationError(f"{where}: {_reason(problem)}") from problem


def _reason(problem: Exception) -> str:
    return f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)


def _said(entry: Mapping[str, Json]) -> Answer:
    if not entry.keys() & {"say", "calls"}:
        raise ConfigurationError(f'{entry!r} has neither "say" nor "calls" nor "stream"')
    _only(entry, {"say", "calls", "stop", "usage", "detail"})
    usage = entry.get("usage")
    return say(
        _text(entry.get("say", "")),
        *[_call(given) for given in entry.get("calls", ())],
        stop=entry.get("stop"),
        usage=None if usage is None else _usage(usage),
        detail=entry.get("detail"),
    )


def _call(given: Mapping[str, Json]) -> ScriptedCall:
    _only(given, {"id", "name", "arguments"})
    arguments = given.get("arguments", "{}")
    raw = arguments if isinstance(arguments, str) else canonical(arguments)
    return raw_call(given["name"], raw, id=given.get("id"))


def _streamed(entry: Mapping[str, Json]) -> Answer:
    _only(entry, {"stream"})
    steps: list[Step] = []
    for at, piece in enumerate(entry["stream"], 1):
        try:
            steps.extend(_steps(piece))
        except (TypeError, ValueError, KeyError) as problem:
            raise ConfigurationError(f"piece {at}: {_reason(problem)}") from problem
    return stream(*steps)


def _steps(piece: Mapping[str, Json]) -> list[Step]:
    known = set(_PIECES) | {"choices"}
    _only(piece, known)
    return [_PIECES[kind](value) for kind, value in piece.items() if kind != "choices"]


def _call_piece(given: Mapping[str, Json]) -> Step:
    _only(given, {"index", "id", "name", "args"})
    return call_piece(
        given.get("args", ""),
        id=given.get("id"),
        name=given.get("name"),
        index=given.get("index"),
    )


def _error(given: Mapping[str, Json]) -> Step:
    _only(given, {"message", "category", "status", "retry_after_s"})
    return error(
        given.get("message", "the provider failed"),
        category=ErrorCategory(given.get("category", ErrorCategory.OVERLOADED)),
        status=given.get("status"),
        retry_after_s=given.get("retry_after_s"),
    )


def _usage(given: Mapping[str, Json]) -> Usage:
    _only(given, {"in", "out", "cached", "reasoning"})
    return Usage(
        input_tokens=given.get("in"),
        output_tokens=given.get("out"),
        cached_tokens=given.get("cached"),
        reasoning_tokens=given.get("reasoning"),
    )


_PIECES: Mapping[str, Callable[[Any], Step]] = {
    "text": lambda text: TextDelta(_text(text)),
    "think": lambda text: think(_text(text)),
    "sig": lambda signature: think(signature=_text(signature)),
    "redacted": lambda opaque: think(redacted=_text(opaque)),
    "call": _call_piece,
    "usage": lambda given: UsageDelta(_usage(given)),
    "finish": finish,
    "sleep": lambda seconds: pause(float(seconds)),
    "drop": lambda reason: drop(str(reason)),
    "eof": lambda _: eof(),
    "error": _error,
}


def _only(given: Json, known: set[str]) -> None:
    unknown = sorted(_object(given).keys() - known)
    if unknown:
        raise ConfigurationError(f"{unknown[0]!r} is not known here; there are {sorted(known)}")


def _object(value: Json) -> dict[str, Json]:
    if isinstance(value, dict):
        return cast(dict[str, Json], value)
    raise ConfigurationError(f"{value!r} must be an object")


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{value!r} must be a text")
