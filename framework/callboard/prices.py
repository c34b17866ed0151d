"""What model calls cost, in US dollars: a price list from `genai-prices`, or the caller's own.

Used by `reasoning.py` where a `Budget` wants it; without one nothing here runs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from callboard.errors import ConfigurationError, MissingExtra
from callboard.messages import Usage

Prices = Callable[[str, Usage], float | None]

FREE = frozenset({"local"})  # kinds of models that run on one's own machine
_NOTHING = Usage(input_tokens=0, output_tokens=0)


def list_price(model: str, usage: Usage) -> float | None:
    """The list price of a model call in US dollars; None where model or usage is not known.

    `model` is a name as `resolve_model` takes it: "openai:gpt-5" is OpenAI's price. A name without
    a kind gets the price of the first provider that has such a model.

    Raises:
        MissingExtra: the price list is not installed.
    """
    kind, colon, name = model.partition(":")
    if kind in FREE:
        return 0.0
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    from genai_prices import Usage as Priced  # it takes 160 ms
    from genai_prices import calc_price

    used = Priced(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens or None,
    )
    try:
        found = calc_price(used, name if colon else model, provider_id=kind if colon else None)
    except (LookupError, ValueError):  # no such model; or numbers that cannot be
        return None
    return float(found.total_price)


def check_installed() -> None:
    """Raise MissingExtra if there is no price list, without loading it."""
    if find_spec("genai_prices") is None:
        raise MissingExtra("genai-prices", extra="cost")


class Costs:
    """The cost of each call of one agent. `required` says that a limit depends on it."""

    __slots__ = ("_known", "_prices", "_required")

    def __init__(self, prices: Prices, *, required: bool) -> None:
        self._prices = prices
        self._required = required
        self._known: set[str] = set()

    def within(self, outer: Costs | None) -> Costs:
        """These, for a run inside another: what must be known there must be known here."""
        required = self._required or (outer is not None and outer._required)
        return self if required == self._required else Costs(self._prices, required=required)

    def before(self, model: str) -> None:
        """Ask for the price before the model is asked, so that a limit cannot be blind.

        Raises:
            ConfigurationError: the price of this model is not known.
        """
        if not self._required or model in self._known:
            return
        if _sound(self._prices(model, _NOTHING)) is None:
            raise ConfigurationError(
                f"the price of {model!r} is not known, so Budget(cost=...) would never end a run:"
                " give prices=, a function of (model, usage) that returns US dollars"
            )
        self._known.add(model)

    def of(self, model: str, usage: Usage) -> float | None:
        """The cost of one call, None where it is not known."""
        try:
            return _sound(self._prices(model, usage))
        except Exception:  # noqa: BLE001  # the caller's own code: what was used is still recorded
            return None

    def after(self, model: str, cost: float | None, usage: Usage) -> None:
        """Look at the cost of a complete answer.

        Raises:
            ConfigurationError: a limit depends on it, and it is not known.
        """
        if cost is None and self._required:
            raise ConfigurationError(
                f"what an answer of {model!r} cost is not known ({usage!r}), so Budget(cost=...)"
                " would never end a run: give prices= that knows it, or limit something else"
            )


def _sound(price: float | None) -> float | None:
    """Unknown if it is no price: NaN, or below zero."""
    return price if price is not None and price >= 0 else None
