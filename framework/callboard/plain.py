"""`@plain`: a dataclass with slots that is frozen for type checkers, and not at run time.

Freezing costs 0.5 us an object, since each field is then set through `object.__setattr__`, and a
frozen pydantic model 1.5 us. A turn makes about two dozen messages, records and deltas. What
guards rely on (`SealedCall`, verdicts, approvals) is frozen in earnest. Comparing and showing are
shared functions, as the generated ones double the time of an import.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def plain(cls: type[T], /) -> type[T]: ...
@overload
def plain(cls: None = None, /, *, kw_only: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain(
    cls: type[T] | None = None, /, *, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make the class a dataclass with slots; nobody but its constructor sets its fields."""

    def make(cls: type[T]) -> type[T]:
        made = dataclass(slots=True, repr=False, eq=False, kw_only=kw_only)(cls)
        for name, method in _SHARED.items():
            if name not in cls.__dict__:
                setattr(made, name, method)
        return made

    return make if cls is None else make(cls)


def _equal(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return all(
        getattr(self, one.name) == getattr(other, one.name) for one in fields(self) if one.compare
    )


def _hash(self: Any) -> int:
    return hash(tuple([getattr(self, one.name) for one in fields(self) if one.compare]))


def _show(self: Any) -> str:
    shown = [f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr]
    return f"{type(self).__name__}({', '.join(shown)})"


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _show}
