"""Limits of a run and what was used of them.

`Budget` is what the caller allows, `Use` is a fold of records. Every limit ends a run the same
way: with a summary.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from callboard.errors import ConfigurationError
from callboard.journaling.records import Spent
from callboard.messages import NO_USAGE, Usage
from callboard.prices import Costs, Prices, check_installed, list_price


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one run may use; None is no limit. Checked before each model request.

    `seconds` is active time: a day that a run is parked is free. `repeats` is how many rounds in
    a row with identical calls and results end the run (tools declared `polling` are exempt).

    `cost` is in US dollars, by the list prices of `genai-prices` (the extra "cost") or by
    `prices(model_name, usage)`, which returns dollars, or None where it does not know. It is asked
    before the first call of each model too, with a usage of zeros: a model of unknown price ends
    the run as failed, by a ConfigurationError. `prices` without `cost` is for `reply.cost` alone.

    Raises:
        ConfigurationError: a limit is not above zero.
        MissingExtra: `cost` without `prices`, and the price list is not installed.
    """

    turns: int | None = None
    model_calls: int | None = None
    tokens: int | None = None  # input and output together, as far as providers report them
    seconds: float | None = None
    repeats: int | None = 3
    cost: float | None = None
    prices: Prices | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "model_calls", "tokens", "seconds", "repeats", "cost"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigurationError(
                    f"Budget({name}={value!r}): a limit must be above zero; leave it out for none"
                )
        if self.cost is not None and self.prices is None:
            check_installed()

    def costs(self) -> Costs | None:
        """What knows the cost of calls; None where nobody wants to know."""
        if self.cost is None and self.prices is None:
            return None
        return Costs(self.prices or list_price, required=self.cost is not None)


NO_LIMITS = Budget()


class Use:
    """What a run used so far, the runs inside it included (but for turns).

    `attempt_turns` starts again with each attempt (`reply`).
    """

    __slots__ = (
        "_last_calls",
        "active_s",
        "attempt_turns",
        "cost",
        "inner",
        "model_calls",
        "repeats",
        "turns",
        "usage",
    )

    def __init__(self) -> None:
        self.turns = 0
        self.attempt_turns = 0
        self.model_calls = 0
        self.usage: Usage = NO_USAGE
        self.active_s = 0.0
        self.cost: float | None = None  # in US dollars, as far as it is known
        self.repeats = 1
        self._last_calls: list[object] = []
        self.inner: dict[str, Spent] | None = None  # of each run inside, what it used so far

    def spend(self, spent: Spent) -> None:
        """Count what a run inside has used beyond what was counted of it before."""
        self.inner = self.inner or {}
        before = self.inner.get(spent.run_id, Spent(spent.run_id, 0))
        self.inner[spent.run_id] = spent
        self.model_calls += spent.model_calls - before.model_calls
        self.usage = self.usage + _beyond(spent.usage, before.usage)
        if spent.cost is not None:
            self.cost = (self.cost or 0.0) + spent.cost - (before.cost or 0.0)

    def spent_by(self, run_id: str) -> Spent:
        """This use, as the run around it records it."""
        return Spent(run_id, self.model_calls, self.usage, self.cost)

    def copy(self) -> Use:
        """One that may be changed: `spend` makes a new sum in it, and nothing here."""
        made = Use()
        for name in self.__slots__:
            setattr(made, name, getattr(self, name))
        made.inner = dict(self.inner or {})
        return made

    def count_repeat(self, calls: list[object]) -> None:
        """Note the calls of one round: the tool, arguments and result of each."""
        self.repeats = self.repeats + 1 if calls == self._last_calls else 1
        self._last_calls = calls

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Use):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it changes


def _beyond(usage: Usage, before: Usage) -> Usage:
    def minus(a: int | None, b: int | None) -> int | None:
        return a if a is None else a - (b or 0)

    names = [one.name for one in fields(Usage)]
    return Usage(**{name: minus(getattr(usage, name), getattr(before, name)) for name in names})


def reached(budget: Budget, use: Use) -> str | None:
    """The limit that is reached, in words for people, or None."""
    if budget.turns is not None and use.turns >= budget.turns:
        return f"turns={budget.turns}"
    if budget.model_calls is not None and use.model_calls >= budget.model_calls:
        return f"model_calls={budget.model_calls}"
    if budget.repeats is not None and use.repeats >= budget.repeats:
        return f"repeats={budget.repeats}"
    if budget.seconds is not None and use.active_s >= budget.seconds:
        return f"seconds={budget.seconds:g}"
    if budget.cost is not None and use.cost is not None and use.cost >= budget.cost:
        return f"cost={budget.cost:g}"
    if budget.tokens is not None:
        used = (use.usage.input_tokens or 0) + (use.usage.output_tokens or 0)
        if used >= budget.tokens:
            return f"tokens={budget.tokens}"
    return None
