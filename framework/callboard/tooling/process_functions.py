"""Functions in an interpreter of their own: for code that may hang, and holds no `await`.

A thread cannot be stopped and a regular expression that runs wild keeps the whole process waiting;
a process can be killed.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from callboard.errors import CallboardError, ToolDefinitionError
from callboard.tooling.function_child import MARK
from callboard.tooling.functions import label
from callboard.tooling.processes import ProcessEnd, ProcessLimits, run_process

CHILD = Path(__file__).with_name("function_child.py")
LIMITS = ProcessLimits(output_bytes=10_000_000)  # of the answer as JSON

_P = ParamSpec("_P")
_R = TypeVar("_R")


class ProcessFailed(CallboardError):
    """A function in a process of its own gave no answer.

    `signal` is the name of what killed the process, None where it ended by itself.
    """

    def __init__(self, text: str, *, signal: str | None = None) -> None:
        super().__init__(text)
        self.signal = signal


def in_process(
    *, limits: ProcessLimits = LIMITS, env: Mapping[str, str] | None = None
) -> Callable[[Callable[_P, _R]], Callable[_P, Coroutine[Any, Any, _R]]]:
    """Make a coroutine function of a plain one; each call runs it in a new interpreter.

    Put it below `@tool(...)`: at the tool's deadline, or when the call is cancelled, the process
    is killed with all that it started. The function stands at the top of a module that can be
    imported again; its arguments and its result are JSON values, and what it prints is dropped.
    It sees `env` only (`minimal_environment()` without it). A start takes about 50 ms and the
    imports of the module. What the function raises is raised again if it is a builtin exception.

    Raises:
        ToolDefinitionError: the function cannot be found again by its module and name.
        ProcessFailed: (of the call) the process ended without an answer.
    """

    def wrap(function: Callable[_P, _R]) -> Callable[_P, Coroutine[Any, Any, _R]]:
        _check(function)

        @functools.wraps(function)
        async def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            job = {
                "module": function.__module__,
                "name": function.__qualname__,
                "path": sys.path,
                "args": args,
                "kwargs": kwargs,
            }
            command = [sys.executable, "-I", str(CHILD)]
            given = json.dumps(job).encode()
            end = await run_process(command, cwd=os.getcwd(), env=env, stdin=given, limits=limits)
            return cast("_R", _value(end, label(function)))

        setattr(call, MARK, function)
        return call

    return wrap


def _check(function: Callable[..., Any]) -> None:
    name = label(function)
    if not inspect.isfunction(function) or "<" in function.__qualname__:
        raise ToolDefinitionError(f"{name}: a process runs functions at the top of a module only")
    if function.__module__ == "__main__":
        raise ToolDefinitionError(
            f"{name}: another process cannot import the script that runs; put it into a module"
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ToolDefinitionError(
            f"{name}: a process runs plain functions, no coroutines or yields"
        )


def _value(end: ProcessEnd, name: str) -> Any:
    if end.code != 0:
        last = end.stderr.text.strip().rpartition("\n")[2]
        how = end.signal or f"code {end.code}"
        raise ProcessFailed(f"{name} ended with {how}: {last[:500]}", signal=end.signal)
    if end.stdout.left_out_bytes:
        raise ProcessFailed(f"{name} returned too much: return less, or raise output_bytes")
    answer = json.loads(end.stdout.text)
    if "value" in answer:
        return answer["value"]
    kind = getattr(builtins, answer["error"], None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        raise kind(answer["text"])
    raise ProcessFailed(f"{answer['error']}: {answer['text']}")
