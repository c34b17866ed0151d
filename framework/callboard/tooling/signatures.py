"""What a function's signature and docstring say about it as a tool. Used by `tools.py`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, SchemaValidator, to_jsonable_python
from typing_extensions import TypedDict

from callboard.errors import ToolDefinitionError
from callboard.tooling.argument_repair import is_array, is_object
from callboard.tooling.functions import is_unbound_method, label, plain_function

_Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Signature:
    """A function as a tool sees it. `parameters` is the JSON schema of its arguments.

    `context_parameter` names the parameter that takes the ToolContext: it is not in the schema.
    """

    description: str
    parameters: dict[str, Any]
    validator: SchemaValidator
    context_parameter: str | None


def read_signature(function: _Function, *, injected: type) -> Signature:
    """Read a function's parameters; one annotated with `injected` is left out of the schema.

    Raises:
        ToolDefinitionError: when the arguments cannot be passed by name, or a type has no schema.
    """
    plain = plain_function(function)
    parameters = _parameters(function, plain)
    hints = _hints(plain, [parameter.name for parameter in parameters])
    context = [p.name for p in parameters if _is_injected(hints.get(p.name), injected)]
    if len(context) > 1:
        raise ToolDefinitionError(f"{label(function)} takes {injected.__name__} twice: {context}")
    description, texts = _docstring(function, plain)
    taken = [p for p in parameters if p.name not in context]
    items = {p.name: _item(p, hints.get(p.name, Any), texts.get(p.name)) for p in taken}
    adapter = _adapter(function, items)
    return Signature(
        description=description,
        parameters=_schema(function, adapter, taken),
        validator=adapter.validator,  # type: ignore[arg-type]  # pydantic's plug-in wrapper
        context_parameter=context[0] if context else None,
    )


def _parameters(function: _Function, plain: _Function) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{label(function)} has no readable signature: {error}") from None
    if function is plain and is_unbound_method(plain):
        del parameters[0]
    bound: Mapping[str, Any] = getattr(function, "keywords", {})  # of a partial
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        raise ToolDefinitionError(
            f"{label(function)} cannot be a tool: a model passes arguments by name, and "
            f"{parameter} has none; name each parameter, or use Tool.from_schema"
        )
    return [parameter for parameter in parameters if parameter.name not in bound]


def _hints(plain: _Function, names: list[str]) -> dict[str, Any]:
    """The evaluated annotations of these parameters (never of the return value)."""
    plain = inspect.unwrap(plain)
    if isinstance(plain, type):
        plain = plain.__init__  # type: ignore[misc]
    found = getattr(plain, "__annotations__", {})
    holder: Any = SimpleNamespace(__annotations__={n: found[n] for n in names if n in found})
    module = getattr(plain, "__globals__", {})
    try:
        local = _enclosing_names(plain, module)
        return get_type_hints(holder, globalns=module, localns=local, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ToolDefinitionError(
            f"an annotation of {label(plain)} cannot be read: {error}; define or import the type "
            "where the function stands (not under TYPE_CHECKING)"
        ) from None


def _enclosing_names(plain: _Function, module: Mapping[str, Any]) -> dict[str, Any]:
    """The local names where a nested function was written, while its outer function runs."""
    outer, nested, _ = getattr(plain, "__qualname__", "").rpartition(".<locals>.")
    if not nested:
        return {}
    for frame in _frames():
        if frame.f_globals is module and frame.f_code.co_qualname == outer:
            return dict(frame.f_locals)
    return {}


def _frames() -> Iterator[Any]:
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


def _is_injected(hint: Any, injected: type) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        return any(_is_injected(member, injected) for member in get_args(hint))
    return isinstance(hint, type) and issubclass(hint, injected)


def _item(parameter: inspect.Parameter, hint: Any, text: str | None) -> Any:
    """One key of the TypedDict: its type, its description, and whether it must be there."""
    default = parameter.default
    described = isinstance(default, FieldInfo) or any(
        isinstance(extra, FieldInfo) and extra.description
        for extra in getattr(hint, "__metadata__", ())
    )
    if default is None:
        hint = hint | None if not isinstance(hint, str) else hint
    if text and not described:
        hint = Annotated[hint, Field(description=text)]
    if isinstance(default, FieldInfo):
        hint = Annotated[hint, default]
        return Required[hint] if default.is_required() else NotRequired[hint]
    return Required[hint] if default is parameter.empty else NotRequired[hint]


def _adapter(function: _Function, items: dict[str, Any]) -> TypeAdapter[Any]:
    # A TypedDict, since a model's own attributes (schema, copy, json, _x) would clash.
    make: Any = TypedDict  # type checkers know literal dicts only
    shape = make("arguments", items)
    shape.__pydantic_config__ = ConfigDict(extra="forbid")
    try:
        return TypeAdapter(shape)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise ToolDefinitionError(
            f"{label(function)} cannot be a tool: a parameter's type has no schema: {error}"
        ) from None


def _schema(
    function: _Function, adapter: TypeAdapter[Any], parameters: list[inspect.Parameter]
) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = _without_titles(adapter.json_schema())
    except PydanticUserError as error:
        raise ToolDefinitionError(
            f"{label(function)} cannot be a tool: no JSON schema describes its types: {error}"
        ) from None
    schema.pop("description", None)
    properties = schema.setdefault("properties", {})
    for parameter in parameters:
        default = parameter.default
        if default is not parameter.empty and not isinstance(default, FieldInfo):
            _show_default(properties.get(parameter.name), default)
    return schema


def _show_default(shown: dict[str, Any] | None, default: Any) -> None:
    if shown is None or "default" in shown or default is PydanticUndefined:
        return
    try:
        shown["default"] = to_jsonable_python(default)
    except ValueError:  # a default that JSON cannot say stays the function's own affair
        return


def _without_titles(schema: Any, *, names: bool = False) -> Any:
    """Pydantic's titles repeat the names. `names` says that the keys are names of properties."""
    if is_array(schema):
        return [_without_titles(item) for item in schema]
    if not is_object(schema):
        return schema
    return {
        key: item
        if not names and key in ("default", "const", "enum", "examples")
        else _without_titles(item, names=not names and key in ("properties", "$defs"))
        for key, item in schema.items()
        if names or key != "title"
    }


def _docstring(function: _Function, plain: _Function) -> tuple[str, dict[str, str]]:
    """The description, and the text of each parameter."""
    text = inspect.cleandoc(plain.__doc__ or "")
    if not text and getattr(plain, "__name__", "") == "__call__":
        text = inspect.cleandoc(type(function).__doc__ or "")
    if "\n" not in text:
        return text, {}
    from docstring_parser import ParseError, parse  # 60 ms, wanted for long docstrings only

    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    parts = [parsed.short_description, parsed.long_description]
    texts = {p.arg_name: _one_line(p.description) for p in parsed.params if p.description}
    return "\n\n".join([part.strip() for part in parts if part]) or text, texts


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
