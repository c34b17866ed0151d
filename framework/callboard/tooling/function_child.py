"""The interpreter that runs one function for `process_functions`. Started by its path alone.

It reads the job as JSON from stdin and prints the answer as JSON; what the function prints goes
to stderr. It imports nothing of Callboard but what the function's module does.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

MARK = "__callboard_process__"  # the attribute of a wrapper that holds the plain function


def plain(found: Any) -> Any:
    """The function inside the wrapper, and inside the tool made of that."""
    while not hasattr(found, MARK):
        found = found.function
    return getattr(found, MARK)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What the function returns or raises."""
    sys.path[:] = job["path"]
    found: Any = import_module(job["module"])
    for name in job["name"].split("."):
        found = getattr(found, name)
    try:
        return {"value": plain(found)(*job["args"], **job["kwargs"])}
    except Exception as error:  # noqa: BLE001  # the function's own code: raised again elsewhere
        return {"error": type(error).__name__, "text": str(error)}


def main() -> None:
    """Answer the one job."""
    out = os.dup(1)
    os.dup2(2, 1)
    text = json.dumps(answer(json.load(sys.stdin)))
    sys.stdout.flush()
    with os.fdopen(out, "w") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
