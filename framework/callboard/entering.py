"""Models that are context managers, entered for as long as they are asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, cast

from callboard.model import Model


class Entered:
    """An async context manager that leaves, at its end, the models which were added to it.

    A model that cannot be left is told of by `warn`. Those in `outer` are entered already.
    """

    __slots__ = ("_models", "_outer", "_warn")

    def __init__(self, warn: Callable[[str], None], *, outer: Entered | None = None) -> None:
        self._warn = warn
        self._outer = outer
        self._models: list[Model] = []

    def __contains__(self, model: Model) -> bool:
        if any([one is model for one in self._models]):
            return True
        return self._outer is not None and model in self._outer

    async def add(self, model: Model) -> None:
        """Enter this model, unless it needs no entering or is entered. Raises as it does."""
        if hasattr(model, "__aenter__") and model not in self:
            await _manager(model).__aenter__()
            self._models.append(model)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        while self._models:
            try:
                await _manager(self._models.pop()).__aexit__(kind, error, traceback)
            except Exception as problem:  # noqa: BLE001  # the provider's own code
                self._warn(f"the model could not be closed: {problem!r}")


def _manager(model: Model) -> AbstractAsyncContextManager[object]:
    return cast(AbstractAsyncContextManager[object], model)
