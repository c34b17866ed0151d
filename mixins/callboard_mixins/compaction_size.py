"""How many tokens a request takes that may have to be compacted."""

from __future__ import annotations

from callboard.messages import AssistantMessage
from callboard.model import ModelRequest, ToolOffer
from callboard_mixins.compacting import Compacted
from callboard_mixins.token_estimate import around_tokens, tokens_of


class Measure:
    """About how many tokens a request takes. Looks at each of its messages once.

    The last answer says by its usage what it took with all before it, unless it was given before
    the conversation was compacted.
    """

    __slots__ = ("_around", "_compacted", "_count", "_offer", "_system", "_tokens")

    def __init__(self) -> None:
        self._compacted: Compacted | None = None
        self._count = 0  # of the messages that were estimated
        self._tokens = 0
        self._system = ""
        self._offer: ToolOffer | None = None
        self._around = 0

    def tokens(self, request: ModelRequest, compacted: Compacted, *, fresh: int) -> int:
        """`fresh` is how many of the newest messages came after it was so compacted."""
        shown = request.messages
        if self._compacted is not compacted or len(shown) < self._count:
            self._compacted, self._count, self._tokens = compacted, 0, 0
        grown = 0
        for at in range(len(shown) - 1, self._count - 1, -1):
            message = shown[at]
            if isinstance(message, AssistantMessage) and len(shown) - at <= fresh:
                counted = message.usage.input_tokens
                if counted is not None:
                    return grown + counted + (message.usage.output_tokens or 0)
            grown += tokens_of(message)
        self._count, self._tokens = len(shown), self._tokens + grown
        return self._tokens + self._around_it(request)

    def _around_it(self, request: ModelRequest) -> int:
        """The system prompt and the tools: the same objects in nearly every turn."""
        if request.offer is not self._offer or request.system != self._system:
            self._offer, self._system = request.offer, request.system
            self._around = around_tokens(request)
        return self._around
