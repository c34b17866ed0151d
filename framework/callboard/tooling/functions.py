"""What a function is, whatever wraps it. Used where functions become tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

_Function = Callable[..., Any]


def plain_function(function: _Function) -> _Function:
    """The function inside a partial, a bound method or a callable object."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function) or isinstance(function, staticmethod):
            function = function.__func__
        elif inspect.isroutine(function) or isinstance(function, type):
            return function
        else:
            function = type(function).__call__


def label(function: _Function) -> str:
    """How error texts call a function."""
    plain = plain_function(function)
    return f"{getattr(plain, '__module__', '?')}.{getattr(plain, '__qualname__', repr(plain))}"


def is_unbound_method(function: _Function) -> bool:
    """Whether this is a function of a class body, still without its instance."""
    if not inspect.isfunction(function):
        return False
    outer, _, _ = function.__qualname__.rpartition(".")
    code = getattr(inspect.unwrap(function), "__code__", None)
    first = code.co_varnames[:1] if code is not None and code.co_argcount else ()
    return bool(outer) and not outer.endswith("<locals>") and first == ("self",)
