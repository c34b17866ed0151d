"""Looks for a history that breaks a law, and tells it as a short story."""

from __future__ import annotations

import contextlib
import io
import signal
import traceback
from collections.abc import Generator
from typing import cast

from tests.framework.histories.generate import history_of
from tests.framework.histories.history import History, story
from tests.framework.histories.laws import Broken
from tests.framework.histories.play import played
from tests.framework.histories.shrink import shrunk

LONGEST_S = 20.0  # on the wall: what takes longer spins, for its clock jumps


def first_failure(start: int, end: int) -> int | None:
    """The first of these seeds whose history breaks a law."""
    return next((seed for seed in range(start, end) if fault_of(history_of(seed))), None)


def fault_of(history: History) -> str | None:
    """The law that this history breaks, and how; None if all hold."""
    try:
        with _bounded(), contextlib.redirect_stdout(io.StringIO()):
            played(history)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return _told(error)
    return None


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, Broken):
        return str(error)
    where = "".join(traceback.format_exception(error, limit=-4))
    return f"{type(error).__name__} comes out: {error}\n{where}"


def failing_story(seed: int) -> str:
    """The history of a seed that fails, made small, and what it breaks."""
    history = history_of(seed)
    return smallest_story(history)


def smallest_story(history: History) -> str:
    fault = fault_of(history)
    assert fault is not None
    law = fault.split(":")[0]
    small = shrunk(history, lambda other: (fault_of(other) or "").split(":")[0] == law)
    return f"{story(small)}\nbroken: {fault_of(small)}"


@contextlib.contextmanager
def _bounded() -> Generator[None, None, None]:
    """Raise in the middle of what spins for ever. In the main thread of a process only."""

    def strike(*_: object) -> None:
        raise Broken("nothing spins")

    before = signal.signal(signal.SIGALRM, strike)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
