"""Stacks of layers: those of the histories and those that the project ships, in lawful orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from callboard.agent import ReActAgent
from tests.framework.histories.house import HOUSE
from tests.framework.histories.layers import LAYERS

ALL: Final[Mapping[str, type[ReActAgent]]] = MappingProxyType({**LAYERS, **HOUSE})


@cache
def stack(names: tuple[str, ...]) -> type[ReActAgent]:
    """The agent class with these layers, outermost first."""
    return type("Stack", tuple([ALL[name] for name in names]) or (ReActAgent,), {})


def lawful(names: Sequence[str]) -> tuple[str, ...]:
    """These layers in this order, but for those that must stand outside of others."""
    left, order = list(names), list[str]()
    while left:
        for name in left:
            if not any([_goes_outside(ALL[one], ALL[name]) for one in left if one != name]):
                order.append(name)
                left.remove(name)
                break
    return tuple(order)


def _goes_outside(one: type[ReActAgent], other: type[ReActAgent]) -> bool:
    inner: tuple[type[ReActAgent], ...] = getattr(one, "goes_outside", ())
    return issubclass(other, inner)
