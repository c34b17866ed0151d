"""From what a model wrote to arguments that fit: loss-free repair, validation, and the refusal
text that lets the model do better. Used by `Tool.check`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import SchemaValidator, ValidationError, to_json

from callboard.errors import ToolDefinitionError
from callboard.json_text import FrozenDict, Json, thaw
from callboard.messages import ToolCall
from callboard.tooling.argument_repair import repaired, resolved
from callboard.tooling.raw_schema import RawSchema

SHOWN_CHARACTERS = 200  # of one received value in a refusal
SHOWN_PROBLEMS = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where the arguments do not fit."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """Arguments that do not fit, with the text that tells the model so."""

    text: str
    problems: tuple[Problem, ...] = ()


class Misfit(Exception):
    """Raised by a validator; never leaves `fit`."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join([f"{problem.path}: {problem.text}" for problem in problems]))
        self.problems = tuple(problems)


class TypedArguments:
    """Validates against the types of a function's parameters, as JSON and strictly.

    Text is no number and "yes" is no boolean, while dates, enums and bytes come as text.
    """

    __slots__ = ("_validate", "schema")
    defect: None = None

    def __init__(self, validator: SchemaValidator, schema: dict[str, Any]) -> None:
        self._validate = validator.validate_json
        self.schema = schema

    def validate(self, arguments: FrozenDict, text: str = "") -> dict[str, Any]:
        """Keyword arguments for the function, fresh at each call.

        `text` is JSON that says just this, where there is some: to encode it again takes 1.3 us.
        """
        try:
            values: dict[str, Any] = self._validate(text or to_json(arguments), strict=True)
        except ValidationError as error:
            problems = [_typed_problem(e, self.schema) for e in _listed(error)]
            raise Misfit(problems) from None
        return values


class RawArguments:
    """Validates against a JSON schema that came from somewhere else."""

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._compiled: RawSchema | None = None

    @property
    def defect(self) -> str | None:
        """Why the schema is unusable, or None. Compiles it: the first time costs milliseconds."""
        try:
            self._schema()
        except ToolDefinitionError as error:
            return str(error)
        return None

    def validate(self, arguments: FrozenDict, text: str = "") -> dict[str, Any]:
        """The arguments as plain dicts and lists, fresh at each call."""
        try:
            found = self._schema().problems(arguments, SHOWN_PROBLEMS)
        except ToolDefinitionError as error:
            raise Misfit([Problem("(tool)", str(error))]) from None
        except RecursionError:
            raise Misfit([Problem("(arguments)", "nested too deeply")]) from None
        if found:
            raise Misfit([Problem(_path(path), _clip(text)) for path, text in found])
        plain: dict[str, Any] = thaw(arguments)
        return plain

    def _schema(self) -> RawSchema:
        if self._compiled is None:
            self._compiled = RawSchema(self.schema)
        return self._compiled


Validator = TypedArguments | RawArguments
Prepare = Callable[[dict[str, Any]], dict[str, Any]]


def fit(
    call: ToolCall, validator: Validator, *, tool_name: str, prepare: Prepare | None = None
) -> ToolCall | Invalid:
    """The call with arguments that fit, the same object where nothing had to change.

    Repair is tried only on arguments that do not fit as they are. `prepare` gets a copy first.
    """
    arguments, problem = call.parsed
    if problem is not None:
        text = f"The tool {tool_name!r} was not run: {problem}.\nReceived: {_clip(call.raw)}"
        return Invalid(text, (Problem("(arguments)", problem),))
    if prepare is not None:
        try:
            call = _prepared(call, prepare)
            arguments = call.arguments
        except Exception as error:  # noqa: BLE001  # the tool's own code
            return _refusal(call, tool_name, [Problem("(arguments)", f"{error}")])
    try:
        call.checked = (validator, validator.validate(arguments, _text_of(call)))
        return call
    except Misfit as misfit:
        first = misfit
    arguments = repaired(call.arguments, validator.schema)
    if arguments is call.arguments:
        return _refusal(call, tool_name, first.problems)
    better = call.with_arguments(arguments)
    try:
        better.checked = (validator, validator.validate(better.arguments, _text_of(better)))
    except Misfit as misfit:
        return _refusal(call, tool_name, misfit.problems)
    return better


def _text_of(call: ToolCall) -> str:
    """`raw` where it says what the arguments do, letter for letter: an object, nothing mended."""
    raw = call.raw
    return raw if raw[:1] == "{" and raw.isascii() and "\\" not in raw else ""


def values_of(call: ToolCall, validator: Validator) -> dict[str, Any]:
    """What the function gets. Taken out once, so that a second run never sees changed values.

    Raises:
        Misfit: when the call was not checked and does not fit.
    """
    checked, call.checked = call.checked, None
    if checked is not None and checked[0] is validator:
        values: dict[str, Any] = checked[1]
        return values
    return validator.validate(call.arguments)


def _prepared(call: ToolCall, prepare: Prepare) -> ToolCall:
    arguments = cast(object, prepare(thaw(call.arguments)))
    if not isinstance(arguments, Mapping):
        raise TypeError(f"prepare returned {type(arguments).__name__}, not a dict")
    changed = cast("Mapping[str, Any]", arguments)
    return call if thaw(call.arguments) == changed else call.with_arguments(changed)


def refusal_text(call: ToolCall, tool_name: str, problems: tuple[Problem, ...]) -> str:
    """What the model is told: the tool, each place that does not fit, and what was received."""
    lines = [f"The arguments do not fit the tool {tool_name!r}; it was not run."]
    lines += [f"- {problem.path}: {problem.text}" for problem in problems]
    lines.append(f"Received: {_shown(call.arguments, 5 * SHOWN_CHARACTERS)}")
    return "\n".join(lines)


def _refusal(
    call: ToolCall, tool_name: str, problems: tuple[Problem, ...] | list[Problem]
) -> Invalid:
    problems = tuple(problems)
    return Invalid(refusal_text(call, tool_name, problems), problems)


def _listed(error: ValidationError) -> list[Any]:
    found = error.errors(include_url=False, include_context=False)
    return list(found[:SHOWN_PROBLEMS])


def _typed_problem(error: Any, schema: dict[str, Any]) -> Problem:
    path = error["loc"]
    if error["type"] == "missing":
        return Problem(_path(path), f"missing; wanted {_wanted(path, schema)}")
    if error["type"] == "extra_forbidden":
        known = ", ".join(schema.get("properties", ())) if len(path) == 1 else ""
        return Problem(_path(path), f"not a parameter; the tool takes {known or 'none'}")
    return Problem(_path(path), f"{error['msg']}, got {_shown(error['input'])}")


def _wanted(path: tuple[Any, ...], schema: dict[str, Any]) -> str:
    node: Any = schema
    for step in path:
        node = resolved(node, schema).get("properties", {}).get(step, {})
    node = resolved(node, schema)
    return str(node.get("type") or _shown(node.get("enum", "a value")))


def _path(path: Any) -> str:
    return ".".join([str(step) for step in path]) or "(arguments)"


def _shown(value: Json, characters: int = SHOWN_CHARACTERS) -> str:
    return _clip(to_json(value, fallback=repr).decode(), characters)


def _clip(text: str, characters: int = SHOWN_CHARACTERS) -> str:
    return text if len(text) <= characters else f"{text[:characters]}... ({len(text)} characters)"
