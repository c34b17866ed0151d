"""The form that an answer must have: its schema, its check, what a model is told of it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar, cast

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from callboard.errors import CallboardError, ConfigurationError
from callboard.json_text import Json, freeze, parse
from callboard.tooling.raw_schema import RawSchema
from callboard_mixins.output_schema import WRAPPED, check_comes_back, wrapped

T = TypeVar("T")
SHOWN_PROBLEMS = 5
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL | re.IGNORECASE)


class Way(StrEnum):
    """How a model is brought to answer in the form."""

    TOOL = "tool"  # by calling a tool whose arguments have it
    NATIVE = "native"  # by the provider's own structured output; told, where a model has none
    PROMPTED = "prompted"  # by being told the schema


class OutputInvalid(CallboardError):
    """The model gave no answer in the wanted form, with all corrections. `problem` is the last."""

    def __init__(self, problem: str, *, attempts: int) -> None:
        super().__init__(f"no answer in the wanted form after {attempts} attempts: {problem}")
        self.problem = problem
        self.attempts = attempts


class OutputForm(Generic[T]):
    """A type (or a JSON schema) as the form of an answer.

    Raises:
        ConfigurationError: the type has no schema or loses something on its way through JSON, or
            the schema is not sound.
    """

    def __init__(self, wanted: type[T] | Mapping[str, Any]) -> None:
        self._adapter: TypeAdapter[T] | None = None
        self._raw: RawSchema | None = None
        if isinstance(wanted, Mapping):
            schema = dict(wanted)
        else:
            try:
                self._adapter = TypeAdapter(wanted)
                schema = self._adapter.json_schema()
                check_comes_back(wanted, self._adapter)
            except (PydanticUserError, TypeError, NameError) as error:
                raise ConfigurationError(f"output={wanted!r} has no JSON schema: {error}") from None
        self.is_wrapped = schema.get("type") != "object"
        self._is_text = schema.get("type") == "string"
        self.schema = wrapped(schema) if self.is_wrapped else schema
        if self._adapter is None:
            self._raw = RawSchema(self.schema)

    def read(self, text: str) -> Json:
        """The answer in a text, checked, as JSON. A text is wanted: it may stand there as it is.

        Raises:
            ValueError: it has another form; the text says what is wrong, for the model.
        """
        try:
            found = parse(_bare(text))
        except ValueError as error:
            if not self._is_text:
                raise ValueError(f"the answer is no JSON: {error}") from None
            found = None
        if self._is_text and not self._is_around(found):
            found = {WRAPPED: found if isinstance(found, str) else text}
        return self.checked(found)

    def checked(self, value: Json) -> Json:
        """The value in its own form, as JSON. Raises ValueError as `read`."""
        if self._raw is not None:
            problems = self._raw.problems(value, SHOWN_PROBLEMS)
            if problems:
                raise ValueError("; ".join([f"{path}: {text}" for path, text in problems]))
            return freeze(self._unwrapped(value))
        assert self._adapter is not None  # one of the two is there
        try:
            typed = self._adapter.validate_json(json.dumps(_plain(self._unwrapped(value))))
        except ValidationError as error:
            raise ValueError(_told(error)) from None
        return freeze(self._adapter.dump_python(typed, mode="json", by_alias=True, round_trip=True))

    def typed(self, value: Json) -> T:
        """What `checked` gave, as the type itself; JSON where a schema was wanted."""
        if self._adapter is None:
            return cast("T", value)
        return self._adapter.validate_json(json.dumps(_plain(value)))

    def _unwrapped(self, value: Json) -> Json:
        if not self.is_wrapped:
            return value
        if not self._is_around(value):
            raise ValueError(f"the answer must be an object with the one property {WRAPPED!r}")
        return value[WRAPPED]

    def _is_around(self, value: Json) -> bool:
        return isinstance(value, Mapping) and set(cast("Mapping[str, Json]", value)) == {WRAPPED}


def instruction(form: OutputForm[Any]) -> str:
    """What a model is told that has no other way."""
    schema = json.dumps(form.schema, ensure_ascii=False)
    return (
        f"Give your final answer as JSON and nothing else. It must fit this JSON schema:\n{schema}"
    )


def correction(problem: str, *, tool: str | None) -> str:
    """What a model is told after an answer in another form."""
    how = f"by calling {tool}" if tool is not None else "as JSON and nothing else"
    return f"Your answer does not have the wanted form: {problem}\nGive it again, {how}."


def _bare(text: str) -> str:
    """The JSON without the fence that many models put around it."""
    found = _FENCED.search(text)
    return text.strip() if found is None else found.group(1).strip()


def _plain(value: Json) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[str, Json]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Json]", value)]
    return value


def _told(error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False)
    told = [
        f"{'.'.join([str(part) for part in one['loc']]) or 'the answer'}: {one['msg']}"
        for one in problems[:SHOWN_PROBLEMS]
    ]
    return "; ".join(told)
