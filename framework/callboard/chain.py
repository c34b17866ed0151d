"""Runs inside runs: whom the current task works for, and who waits for whom.

Used by `runs.py`, which enters each run here, and by `lease.py`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from callboard.errors import ConfigurationError


class Link(Protocol):
    """An agent that runs."""

    name: str
    awaited: tuple[Link, ...]  # whom runs inside its run wait for


inside: ContextVar[tuple[Link, ...]] = ContextVar("callboard_inside", default=())


def refuse_inside(agent: Link) -> None:
    """A tool that runs its own agent, directly or through others, would wait for itself.

    Raises:
        ConfigurationError: the agent, which runs now, is one of those that this task works for.
    """
    if any([one is agent for one in inside.get()]):
        raise ConfigurationError(
            f"{agent.name} was asked to run inside its own run, which would wait for itself; "
            "use steer or follow_up"
        )


@contextmanager
def waiting_for(agent: Link) -> Generator[None, None, None]:
    """Around the wait for an agent's turn and for its run.

    Raises:
        ConfigurationError: the agent waits for one of those that this task works for, so that
            neither of them would ever end.
    """
    chain = inside.get()
    for one in _awaited_by(agent):
        if any([one is own for own in chain]):
            raise ConfigurationError(
                f"{chain[-1].name} and {agent.name} would wait for each other for ever, as"
                f" {agent.name} waits for {one.name}; let one of them tell instead of ask, or"
                " give each an agent of its own"
            )
    for own in chain:
        own.awaited = (*own.awaited, agent)
    try:
        yield
    finally:
        for own in chain:
            left = list(own.awaited)
            left.remove(agent)
            own.awaited = tuple(left)


def _awaited_by(agent: Link) -> Iterator[Link]:
    """All whom its run waits for, directly or through others."""
    seen: list[Link] = [agent]
    for one in seen:
        for other in one.awaited:
            if not any([other is known for known in seen]):
                seen.append(other)
                yield other
