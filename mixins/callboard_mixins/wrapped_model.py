"""A model around another one, and a stream around its stream. Base of what layers wrap.

The stream is an object and no async generator: those cost 4 us more on asyncio.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator

import anyio

from callboard.model import Capabilities, Delta, Model, ModelRequest

CLOSING_S = 10.0  # what the inner stream may take to close, shielded


class WrappedModel:
    """Goes by the name of the model inside, so that records, prices and adapters know it.

    A run enters the agent's own model, which is the one inside.
    """

    __slots__ = ("inner", "name")

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self.name = inner.name

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities


class WrappedStream:
    """The stream of the model inside; subclasses open it, perhaps more than once.

    It has no `__init__`, which would be a call more for each request.
    """

    __slots__ = ("_deltas", "_model", "_request")

    _model: Model
    _request: ModelRequest
    _deltas: AsyncIterator[Delta] | None

    def __aiter__(self) -> WrappedStream:
        return self

    @abstractmethod
    async def __anext__(self) -> Delta: ...

    async def aclose(self) -> None:
        """Close the stream inside, also when the task is being cancelled."""
        close = getattr(self._deltas, "aclose", None)
        self._deltas = None
        if close is not None:
            with anyio.move_on_after(CLOSING_S, shield=True):
                await close()
