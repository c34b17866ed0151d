"""The entry of the command `callboard`: the one place where errors become exit codes."""

from __future__ import annotations

import os
import sys
import traceback

from callboard.errors import CallboardError, MissingExtra
from callboard_console.exits import Exit, code_of_error, line_of

LIBRARIES = frozenset({"typer", "rich"})  # what the extra `cli` brings


def run() -> None:
    """Run the command line. Shows no traceback unless CALLBOARD_TRACEBACK is set."""
    try:
        start()
    except SystemExit as end:  # typer makes one of a KeyboardInterrupt, without a word
        if end.code == Exit.INTERRUPTED:
            print("interrupted", file=sys.stderr)
        raise
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(Exit.FAILED) from None
    except CallboardError as error:
        stop(f"error: {line_of(error)}", code_of_error(error))
    except Exception as error:  # noqa: BLE001  # the last door: a fault of ours is one line too
        fault = f"{type(error).__name__}: {line_of(error)}"
        stop(f"error: this is a fault in callboard: {fault}", Exit.FAILED)


def start() -> None:
    """Import the commands, which need the extra `cli`, and run the one that is asked for."""
    try:
        from callboard_console.commands import app
    except ModuleNotFoundError as error:
        if error.name in LIBRARIES:
            raise MissingExtra(error.name, extra="cli") from error
        raise
    app()


def stop(line: str, code: Exit) -> None:
    """One line on stderr, then the end."""
    if os.environ.get("CALLBOARD_TRACEBACK"):
        traceback.print_exc()
    print(line, file=sys.stderr)
    raise SystemExit(code)
