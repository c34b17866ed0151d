"""Tools: functions with a name, a description and a schema that a model can call.

Agents take plain functions and make tools of them; `@tool` is for those who want to say more.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from opcode import opmap
from typing import Any, TypedDict, Unpack, overload

from callboard.errors import ToolDefinitionError
from callboard.json_text import sendable
from callboard.messages import ToolCall
from callboard.tooling.arguments import (
    Invalid,
    Misfit,
    Prepare,
    RawArguments,
    TypedArguments,
    Validator,
    fit,
    refusal_text,
    values_of,
)
from callboard.tooling.functions import is_unbound_method, label, plain_function
from callboard.tooling.tool_context import ToolContext

__all__ = [
    "Effect",
    "Form",
    "Invalid",
    "Tool",
    "ToolBounds",
    "ToolContext",
    "ToolOptions",
    "as_tool",
    "tool",
]

DEFAULT_TIMEOUT_S = 120.0
DEFAULT_RESULT_BYTES = 50_000

_Function = Callable[..., Any]
_YIELD = opmap["YIELD_VALUE"]  # what an await is compiled to
_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Effect(StrEnum):
    """What a second execution of the same call would do. It decides what a restart may do."""

    PURE = "pure"  # only looks: may run again at any time
    IDEMPOTENT = "idempotent"  # a second run changes nothing more
    EFFECT = "effect"  # happens once, or nobody knows: never run again without asking


class Form(StrEnum):
    """How a function runs: in the loop or in a thread, with one value or many."""

    ASYNC = "async"
    AT_ONCE = "at_once"  # async without an await: it ends in its first step
    SYNC = "sync"
    ASYNC_STREAM = "async_stream"
    SYNC_STREAM = "sync_stream"


class ToolBounds(TypedDict, total=False):
    """How a tool may be used, and what bounds it."""

    label: str
    effect: Effect | str
    sequential: bool
    timeout_s: float | None
    resource: str | None
    max_concurrency: int | None
    terminate: bool
    polling: bool
    max_result_bytes: int
    prepare: Prepare | None
    sandboxed: bool


class ToolOptions(ToolBounds, total=False):
    """What may be said of a tool beside its function."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Tool:
    """A function that a model can call; it stays callable like the function itself.

    - `effect`: what a second execution would do.
    - `sequential`: a batch with this tool in it runs one call after another.
    - `timeout_s`: for one execution; None waits for ever. Coroutines are cancelled at the
      deadline; threads cannot be, so their work may still finish.
    - `resource`: calls of tools with the same resource never overlap.
    - `max_concurrency`: most executions of this tool at once in one agent.
    - `terminate`: a good result asks to skip the model call that would follow.
    - `polling`: repeating the same call with the same result is how it is meant to be used.
    - `max_result_bytes`: of UTF-8 text that the model sees; longer text is cut and says so.
    - `prepare`: turns old argument shapes into new ones, before validation; gets a copy.
    - `sandboxed`: what it runs is shut in by the system, so a guard may let it pass.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    function: _Function
    form: Form
    validator: Validator = field(repr=False)
    label: str = ""
    effect: Effect = Effect.EFFECT
    sequential: bool = False
    timeout_s: float | None = DEFAULT_TIMEOUT_S
    resource: str | None = None
    max_concurrency: int | None = None
    terminate: bool = False
    polling: bool = False
    max_result_bytes: int = DEFAULT_RESULT_BYTES
    prepare: Prepare | None = None
    sandboxed: bool = False
    context_parameter: str | None = None
    wire_name: str = field(default="", init=False)
    takes_context: bool = field(default=False, init=False)  # the function is given a ToolContext
    is_at_once: bool = field(default=False, init=False)  # async, and never waits
    unbound: bool = field(default=False, init=False, repr=False)  # a method without its instance

    def __post_init__(self) -> None:
        if not self.name:
            raise ToolDefinitionError(f"{label(self.function)} needs a name: tool(name=...)")
        for limit in ("timeout_s", "max_concurrency", "max_result_bytes"):
            value = getattr(self, limit)
            if value is not None and not value > 0:
                raise ToolDefinitionError(f"tool {self.name!r}: {limit}={value!r} must be above 0")
        for text in ("name", "description"):  # a server may offer any text
            object.__setattr__(self, text, sendable(getattr(self, text)))
        object.__setattr__(self, "label", self.label or self.name)
        object.__setattr__(self, "wire_name", wire_name(self.name))
        is_raw = type(self.validator) is RawArguments
        object.__setattr__(self, "takes_context", is_raw or self.context_parameter is not None)
        at_once = self.form is Form.AT_ONCE and not self.takes_context
        object.__setattr__(self, "is_at_once", at_once)
        object.__setattr__(self, "unbound", is_unbound_method(self.function))

    @staticmethod
    def from_schema(
        *,
        name: str,
        description: str,
        parameters: dict[str, Any],
        run: _Function,
        **options: Unpack[ToolBounds],
    ) -> Tool:
        """A tool whose arguments are described by a JSON schema from outside.

        `run` gets the arguments (plain dicts and lists) and the ToolContext. The schema is
        compiled when it is first needed; `defect` tells whether it is sound.
        """
        return Tool(
            name=name,
            description=description,
            parameters=parameters,
            function=run,
            form=_form(run),
            validator=RawArguments(parameters),
            **_checked(options, name),
        )

    @property
    def defect(self) -> str | None:
        """Why the schema cannot be used, or None. A Toolbox puts such tools aside."""
        return self.validator.defect

    def check(self, call: ToolCall) -> ToolCall | Invalid:
        """The call with arguments that fit, or what to tell the model.

        The same object comes back where nothing had to be repaired.
        """
        checked = call.checked
        if checked is not None and checked[0] is self.validator:
            return call  # decided again, or sealed after it was looked up
        return fit(call, self.validator, tool_name=self.name, prepare=self.prepare)

    def bind(self, call: ToolCall, context: ToolContext) -> Callable[[], Any] | Invalid:
        """The function with its arguments, ready to start. A checked call is not checked again."""
        try:
            values = values_of(call, self.validator)
        except Misfit as misfit:
            text = refusal_text(call, self.name, misfit.problems)
            return Invalid(text, misfit.problems)
        if self.takes_context:
            if self.context_parameter is None:  # a tool of a schema takes both as they are
                return functools.partial(self.function, values, context)
            values[self.context_parameter] = context
        return functools.partial(self.function, **values)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without schema, bounds or context."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """A tool defined in a class body is bound to the instance, like a method."""
        if instance is None or not self.unbound:
            return self
        return replace(self, function=self.function.__get__(instance, owner))


def wire_name(name: str) -> str:
    """The name that providers accept: the same everywhere, whatever other tools there are."""
    if _WIRE_NAME.fullmatch(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:55]}_{mark}"


@overload
def tool(function: _Function, /) -> Tool: ...
@overload
def tool(
    function: None = None, /, **options: Unpack[ToolOptions]
) -> Callable[[_Function], Tool]: ...
def tool(
    function: _Function | None = None, /, **options: Unpack[ToolOptions]
) -> Tool | Callable[[_Function], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(name=..., effect="pure", ...)`.

    Name, description and schema come from the function's signature and docstring.

    Raises:
        ToolDefinitionError: the function cannot be called by name, a type has no schema, or an
            option is unknown.
    """
    if function is None:
        return functools.partial(_build, options=options)
    return _build(function, options)


def as_tool(function: Tool | _Function) -> Tool:
    """The tool itself, or one made of a plain function: once per function, however many agents."""
    if isinstance(function, Tool):
        return function
    plain = function.__func__ if inspect.ismethod(function) else function
    if not inspect.isfunction(plain):
        return _build(function, {})
    # Kept on the function: a dictionary of weak keys would never let go, for a tool holds its key.
    kept = plain.__dict__.get("__callboard_tool__")
    if kept is None or kept.function is not plain:  # functools.wraps copies the attribute
        kept = plain.__dict__["__callboard_tool__"] = _build(plain, {})
    return kept if plain is function else replace(kept, function=function)


def _build(function: _Function, options: ToolOptions) -> Tool:
    if not callable(function):
        raise ToolDefinitionError(f"{function!r} is not callable, so it cannot be a tool")
    from callboard.tooling.signatures import (
        read_signature,  # it imports pydantic, which takes 50 ms
    )

    signature = read_signature(function, injected=ToolContext)
    given = _checked(options, label(function))
    return Tool(
        name=given.pop("name", None) or _name(function),
        description=given.pop("description", signature.description),
        parameters=signature.parameters,
        function=function,
        form=_form(function),
        validator=TypedArguments(signature.validator, signature.parameters),
        context_parameter=signature.context_parameter,
        **given,
    )


def _checked(options: ToolOptions | ToolBounds, name: str) -> dict[str, Any]:
    given: dict[str, Any] = dict(options)
    unknown = sorted(given.keys() - ToolOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(ToolOptions.__annotations__)
        raise ToolDefinitionError(f"{name}: unknown option {unknown[0]!r}; there are: {known}")
    if "effect" in given:
        try:
            given["effect"] = Effect(given["effect"])
        except ValueError:
            known = ", ".join(Effect)
            raise ToolDefinitionError(
                f"{name}: effect={given['effect']!r} is not one of {known}"
            ) from None
    return given


def _name(function: _Function) -> str:
    name = getattr(plain_function(function), "__name__", "")
    if name == "__call__":
        return type(function).__name__
    return "" if name == "<lambda>" else name


def _may_wait(function: _Function) -> bool:
    """Whether a coroutine function has an await (also `async for` and `async with`) in it."""
    code = getattr(function, "__code__", None)
    return code is None or _YIELD in code.co_code[::2]


def _form(function: _Function) -> Form:
    plain = plain_function(function)
    if inspect.iscoroutinefunction(plain):
        return Form.ASYNC if _may_wait(plain) else Form.AT_ONCE
    if inspect.isasyncgenfunction(plain):
        return Form.ASYNC_STREAM
    return Form.SYNC_STREAM if inspect.isgeneratorfunction(plain) else Form.SYNC
