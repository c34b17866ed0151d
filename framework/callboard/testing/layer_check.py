"""The conformance kit for layers: `check_layer(MyMixin)`.

It stacks the layer with well-behaved probes in every legal order, lets agents work through a
script, and holds what they did to the laws in `layer_laws.py`.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet
from functools import partial
from math import factorial
from typing import Any, Literal

import anyio
from anyio.lowlevel import current_token

from callboard.agent import ReActAgent
from callboard.decide import ToolExecution
from callboard.errors import CompositionError, ConfigurationError
from callboard.testing.layer_case import Case, Layer, Make, broken, names
from callboard.testing.layer_laws import KEYWORDS, ORDER, SHARED
from callboard.testing.layer_probes import PROBES
from callboard.testing.scripted_model import ScriptedModel
from callboard.testing.virtual_time import virtual_backend

Orders = int | Literal["all"]

MISSPELT = "misspelt_keyword"
CONTAINERS = (MutableSequence, MutableMapping, MutableSet, deque)


def check_layer(
    *layers: Layer,
    make: Make | None = None,
    orders: Orders = "all",
) -> None:
    """Check one layer, or several that are to be stacked, against the laws of layers.

    `make` gives the keyword arguments that they need, all together and built afresh in each call
    (no model, no tools). All orders of one layer with the probes are 720, of two 5,040: give a
    number of `orders` for a seeded sample. Time jumps, so a layer that waits costs nothing. What
    parks is approved and goes on.

    Raises:
        AssertionError: a law is broken; the text names the layer, the law and the remedy.
        CompositionError: no order is legal.
        ConfigurationError: called with something else than layers, or in a running event loop.
    """
    for layer in layers:
        if ReActAgent not in getattr(layer, "__mro__", ())[1:]:
            raise ConfigurationError(f"{layer!r} is no layer: it must inherit ReActAgent")
    if not layers or (isinstance(orders, int) and orders < 1):
        raise ConfigurationError("check_layer wants one layer or more, and one order or more")
    try:
        current_token()
    except anyio.NoEventLoopError:
        backend, options = virtual_backend("asyncio")
        check = partial(_check, layers, make or dict, orders)
        anyio.run(check, backend=backend, backend_options=options)
        return
    raise ConfigurationError("check_layer() runs an event loop of its own: call it outside of one")


async def _check(layers: tuple[Layer, ...], make: Make, orders: Orders) -> None:
    before = dict(_class_state(layers))
    for layer in layers:
        own = partial(_own, layer, layers, make)
        _check_keywords(layer, own)
        await Case((layer,), (layer,), own).check()
        sequential = {"tool_execution": ToolExecution.SEQUENTIAL}
        await Case((layer,), (layer,), own).check(**sequential)
    refused: dict[frozenset[str], tuple[Layer, ...]] = {}
    for order in _orders((*layers, *PROBES), orders):
        if _is_legal(order):
            case = Case(layers, order, make)
            refused.setdefault(await case.check(), order)
            _check_refusals(case, refused)
    if not refused:
        raise CompositionError(f"{names(layers)}: no order with the probes is legal; see explain()")
    await _check_side_by_side(layers, next(iter(refused.values())), make)
    changed = sorted(name for name, now in _class_state(layers) if before.get(name) != now)
    if changed:
        raise broken(layers, SHARED, f"the class attribute {changed[0]} changed while agents ran")


def _own(layer: Layer, layers: tuple[Layer, ...], make: Make) -> Mapping[str, Any]:
    """The keywords for one layer alone: without those that only the other layers take."""
    foreign = {name for other in layers for name in _keywords(other)} - _keywords(layer)
    return {name: value for name, value in make().items() if name not in foreign}


def _keywords(layer: Layer) -> set[str]:
    inits = [vars(cls)["__init__"] for cls in layer.__mro__ if "__init__" in vars(cls)]
    return {name for init in inits for name in inspect.signature(init).parameters}


def _orders(stack: tuple[Layer, ...], orders: Orders) -> Iterable[tuple[Layer, ...]]:
    if orders == "all" or orders >= factorial(len(stack)):
        return itertools.permutations(stack)
    chance = random.Random(0)
    return [_drawn(stack, chance) for _ in range(orders)]


def _drawn(stack: tuple[Layer, ...], chance: random.Random) -> tuple[Layer, ...]:
    """One order by chance, in which each layer stands where its declarations want it."""
    left, order = list(stack), list[Layer]()
    while left:
        free = [it for it in left if not any(_stands_before(other, it) for other in left)]
        order.append(chance.choice(free or left))
        left.remove(order[-1])
    return tuple(order)


def _stands_before(one: Layer, other: Layer) -> bool:
    if one is other or issubclass(other, one):
        return False
    inside = [inner for cls in one.__mro__ for inner in cls.__dict__.get("goes_outside", ())]
    return issubclass(other, tuple(inside)) or issubclass(one, other)


def _is_legal(order: tuple[Layer, ...]) -> bool:
    """Whether the order can be written; where goes_outside forbids it, the refusal must say so."""
    try:
        type("Stack", order, {})
    except CompositionError as refusal:
        if "must go outside" not in str(refusal):
            raise
        return False
    except TypeError:  # one of them inherits another that stands before it
        return False
    return True


def _check_keywords(layer: Layer, make: Make) -> None:
    keywords: dict[str, Any] = {**make(), "model": ScriptedModel()}
    try:
        layer(**keywords)
    except TypeError as refusal:
        remedy = "give its keywords: check_layer(..., make=lambda: {...})"
        raise ConfigurationError(f"{refusal}: {remedy}") from refusal
    keywords[MISSPELT] = 1
    try:
        layer(**keywords)
    except TypeError as refusal:
        if MISSPELT not in str(refusal):
            raise broken((layer,), KEYWORDS, f"it says {refusal}") from None
    else:
        raise broken((layer,), KEYWORDS, f"{MISSPELT}=1 was taken")


def _check_refusals(case: Case, refused: Mapping[frozenset[str], tuple[Layer, ...]]) -> None:
    if len(refused) == 1:
        return
    (some, one), (others, other) = refused.items()
    differing = ", ".join(sorted(some ^ others))
    raise case.broken(
        ORDER, f"{differing}: refused in one order of {names(one)} and {names(other)}"
    )


async def _check_side_by_side(
    layers: tuple[Layer, ...], order: tuple[Layer, ...], make: Make
) -> None:
    """Two agents at the same time: each keeps the laws, and they have nothing in common."""
    one, two = Case(layers, order, make), Case(layers, order, make)
    agents = one.agent(), two.agent()
    for name, value in vars(agents[0]).items():
        if isinstance(value, CONTAINERS) and value is vars(agents[1]).get(name):
            raise broken(layers, SHARED, f"self.{name} is one object in both")
    failures: list[AssertionError] = []
    async with anyio.create_task_group() as group:
        group.start_soon(_work, one, agents[0], failures)
        group.start_soon(_work, two, agents[1], failures)
    if failures:
        raise failures[0]
    if one.judge(agents[0]) != two.judge(agents[1]):
        raise one.broken(SHARED, "side by side they refused different calls")


async def _work(case: Case, agent: ReActAgent, failures: list[AssertionError]) -> None:
    try:
        await case.work(agent)
    except AssertionError as failure:  # a task group would wrap it in a group
        failures.append(failure)


def _class_state(layers: tuple[Layer, ...]) -> Iterator[tuple[str, str]]:
    """The attributes of the layers' classes, as text that changes when they do."""
    classes = {cls for layer in layers for cls in layer.__mro__}
    for cls in classes - set(ReActAgent.__mro__):
        for name, value in vars(cls).items():
            if not name.startswith("__"):
                yield f"{cls.__name__}.{name}", f"{value!r} {getattr(value, '__dict__', '')!r}"
