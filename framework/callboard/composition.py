"""The laws that a class of layers must satisfy, checked when its class statement runs.

Checking changes nothing: no method is wrapped, no class is marked.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, NoReturn, TypeVar, cast

from callboard.deciding import Steps
from callboard.errors import CompositionError

F = TypeVar("F", bound=Callable[..., Any])

STEPS = (
    "reply",
    "_reasoning",
    "_deciding",
    "_acting",
    "_summarizing",
    "_committing",
    "_tools",
)

_MARK = "__callboard_replaces__"


def replaces(step: F) -> F:
    """Mark a step override that on purpose does not call `super()`.

    It stands in for everything below it in the MRO, so put it on what is meant to end the chain
    (an `_acting` that answers from a cache, for instance).
    """
    setattr(step, _MARK, True)
    return step


def is_replacing(step: object) -> bool:
    """Whether the method is marked with `@replaces`."""
    return getattr(step, _MARK, False) is True


def check(cls: type, root: type) -> None:
    """Check one class below `root`.

    Raises:
        CompositionError: with the law that is broken and the remedy.
    """
    for name in STEPS:
        if name in cls.__dict__:
            _check_step(cls, name, cls.__dict__[name], getattr(root, name))
    _check_bases(cls, root)
    _check_attributes(cls)
    _check_constructor(cls)
    _check_private_names(cls, root)
    _check_order(cls)


def _fail(cls: type, problem: str, remedy: str) -> NoReturn:
    raise CompositionError(f"{cls.__module__}.{cls.__qualname__}: {problem}. {remedy}")


def _check_step(cls: type, name: str, step: object, model: Callable[..., Any]) -> None:
    if not isinstance(step, FunctionType):
        _fail(cls, f"{name} is a {type(step).__name__}", f"Write it as a method: def {name}(...).")
    wanted, found = _shape(model), _shape(step)
    if wanted != found:
        _fail(
            cls,
            f"{name}({', '.join(found)}) does not have the parameters of the step",
            f"Write {name}({', '.join(wanted)}): names and kinds must be the same.",
        )
    if inspect.iscoroutinefunction(step) != inspect.iscoroutinefunction(model):
        word = "async def" if inspect.iscoroutinefunction(model) else "def"
        _fail(cls, f"{name} must be a plain '{word}'", f"Write '{word} {name}'.")
    if not _calls_own_super(step, name) and not is_replacing(step):
        _fail(
            cls,
            f"{name} does not call super().{name}(...), so every layer below it is cut off",
            "Call it, or mark the method with @replaces if it is meant to stand in for them.",
        )


def _shape(step: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(step).parameters.values()
    marks = {"VAR_POSITIONAL": ("*", ""), "VAR_KEYWORD": ("**", ""), "KEYWORD_ONLY": ("", "=")}
    shape: list[str] = []
    for parameter in parameters:
        before, behind = marks.get(parameter.kind.name, ("", ""))
        shape.append(f"{before}{parameter.name}{behind}")
    return shape


def _calls_own_super(step: FunctionType, name: str) -> bool:
    """Whether the code mentions super() and this step's own name."""
    codes = [step.__code__]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend([const for const in code.co_consts if isinstance(const, type(code))])
    return "super" in names and name in names


def _check_bases(cls: type, root: type) -> None:
    """A layer that does not inherit the root could stand behind it, where nobody calls it."""
    for layer in cls.__mro__:
        steps = [name for name in STEPS if name in layer.__dict__]
        if steps and not issubclass(layer, root) and layer not in root.__mro__:
            _fail(
                cls,
                f"{layer.__name__} has the step {steps[0]} and is no {root.__name__}",
                f"Write class {layer.__name__}({root.__name__}): its order is checked then.",
            )
    hook = cls.__dict__.get("__init_subclass__")
    if hook is not None and "super" not in hook.__func__.__code__.co_names:
        _fail(
            cls,
            "__init_subclass__ does not call super(), so no class below it would be checked",
            "Write def __init_subclass__(cls, **rest): super().__init_subclass__(**rest).",
        )


def _check_attributes(cls: type) -> None:
    for name, value in cls.__dict__.items():
        kind = type(cast("object", value))
        if issubclass(kind, (list, dict, set, bytearray)) and not name.startswith("__"):
            _fail(
                cls,
                f"the class attribute {name} is a {kind.__name__}, which all agents share",
                "Make it a tuple, a frozenset or a MappingProxyType, or set it in __init__.",
            )


def _check_constructor(cls: type) -> None:
    init = cls.__dict__.get("__init__")
    if not isinstance(init, FunctionType):
        return
    kinds = [p.kind for p in list(inspect.signature(init).parameters.values())[1:]]
    allowed = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    if any(kind not in allowed for kind in kinds) or allowed[1] not in kinds:
        _fail(
            cls,
            "__init__ must take keywords only, and pass those of others on",
            "Write def __init__(self, *, mine, **rest): super().__init__(**rest).",
        )
    if "super" not in init.__code__.co_names:
        _fail(cls, "__init__ does not call super().__init__(**rest)", "Call it first.")


def snake(name: str) -> str:
    """`ToolGuardMixin` as `tool_guard`."""
    name = name.removesuffix("Mixin").lstrip("_")
    parts = [c if c.islower() or c.isdigit() else f"_{c.lower()}" for c in name]
    return "".join(parts).lstrip("_")


def _check_private_names(cls: type, root: type) -> None:
    """Private state of a mixin carries its name, so that two mixins never share by accident."""
    if not cls.__name__.endswith("Mixin"):
        return
    own = f"_{snake(cls.__name__)}"
    for name in _assigned(cls):
        if name.startswith("_") and not name.startswith(("__", own)) and not hasattr(root, name):
            _fail(cls, f"self.{name} could collide with another layer's", f"Name it {own}_....")


def _assigned(cls: type) -> Iterator[str]:
    """The attributes of self that the class's own methods assign."""
    for method in cls.__dict__.values():
        if isinstance(method, FunctionType):
            yield from _stores(method)


def _stores(method: FunctionType) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return  # no source at hand (a REPL, a frozen program): nothing to look at
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
            case _:
                pass


def _check_order(cls: type) -> None:
    """`goes_outside = (Other,)` on a layer: it must stand before every Other in the MRO."""
    named: Any = cls.__dict__.get("goes_outside", ())
    if type(named) is not tuple or not all([isinstance(one, type) for one in cast(Any, named)]):
        _fail(cls, f"goes_outside is {named!r}", "Write a tuple of classes: (ToolGuardMixin,).")
    mro = cls.__mro__
    for place, layer in enumerate(mro):
        for inner in layer.__dict__.get("goes_outside", ()):
            for outer in mro[:place]:
                if issubclass(outer, inner) and not issubclass(outer, layer):
                    _fail(
                        cls,
                        f"{layer.__name__} must go outside {inner.__name__}",
                        f"Put {layer.__name__} before {outer.__name__} in the class statement.",
                    )


def layers_of(cls: type, root: type) -> tuple[type, ...]:
    """The classes outside the root that override a step, outermost first."""
    mro = cls.__mro__[: cls.__mro__.index(root)]
    return tuple([layer for layer in mro if any(step in layer.__dict__ for step in STEPS)])


def explain(cls: type, root: type) -> str:
    """The stack of layers as text, outermost first, with the steps that each one has."""
    lines = [f"{cls.__name__}: layers from the outermost to the root"]
    for layer in (*layers_of(cls, root), root):
        own = layer.__dict__
        steps = [step for step in STEPS if step in own or layer is root]
        lines.append(f"  {layer.__name__:<24} {', '.join(steps)}")
    return "\n".join(lines)


def steps_of(agent: Any, root: type[Any]) -> Steps:
    """The outermost steps of an agent around a call, and what its layers have."""
    own: type[Any] = agent.__class__
    layers = layers_of(own, root)
    acting = [layer for layer in layers if "_acting" in layer.__dict__]
    return Steps(
        deciding=agent._deciding,
        acting=agent._acting,
        layered=tuple([step for step in STEPS for one in layers if step in one.__dict__]),
        acting_is_replaced=any(is_replacing(layer.__dict__["_acting"]) for layer in acting),
        layers=", ".join(layer.__name__ for layer in acting),
    )
