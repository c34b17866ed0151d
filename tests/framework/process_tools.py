"""Functions that the tests run in a process of their own, which imports this module."""

from __future__ import annotations

import os
import re
from pathlib import Path

from callboard.tooling.process_functions import in_process
from callboard.tooling.tools import tool


@tool(effect="pure")
@in_process()
def double(number: int, *, label: str = "") -> dict[str, str | int]:
    """Twice a number.

    Args:
        number: Any.
    """
    print("this is not the answer")
    return {"label": label, "is": number * 2, "process": os.getpid()}


@tool(timeout_s=2)
@in_process()
def hang(path: str) -> bool:
    """Look for what takes for ever, holding the lock of the interpreter."""
    Path(path).write_text(f"{os.getpid()}\n")
    return re.match(r"(a+)+$", "a" * 60 + "b") is not None


@in_process()
def fail(kind: str) -> None:
    if kind == "exit":
        os._exit(3)
    if kind == "kill":
        os.kill(os.getpid(), 9)
    if kind == "own":
        raise OwnError("mine")
    raise ValueError("boom")


class OwnError(Exception):
    pass
