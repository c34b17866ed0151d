"""When a conversation is compacted, and how much of it stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

from callboard.errors import ConfigurationError
from callboard.model import ModelRequest

INSTRUCTIONS = (
    "You sum up a conversation between a user and an agent, so that the agent can go on with "
    "nothing but your summary. Keep: what the user wants, what was decided and why, what the tools "
    "found (names, numbers, paths as they are), what failed, and what is left to do. Write facts, "
    "no advice."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """When a conversation is compacted, and how much of it stays as it is.

    It is when a request takes more than `at_tokens`, or else `at_share` of the window that the
    model's description names; without either, only after the model said that it was too long. The
    last `keep_recent` rounds (a message and the results of its calls) stay, and so does the newest
    message of the user, however old it is. In older rounds results longer than
    `longest_result_bytes` are cut first, which may be enough.
    """

    at_tokens: int | None = None
    at_share: float = 0.8
    keep_recent: int = 4
    longest_result_bytes: int = 2_000
    instructions: str = INSTRUCTIONS

    def __post_init__(self) -> None:
        if self.at_tokens is not None and self.at_tokens < 1:
            raise ConfigurationError(f"at_tokens={self.at_tokens!r}: it is 1 or more, or None")
        if not 0 < self.at_share <= 1:
            raise ConfigurationError(f"at_share={self.at_share!r}: it is above 0, and 1 at most")
        if self.keep_recent < 1:
            raise ConfigurationError(f"keep_recent={self.keep_recent!r}: the last round stays")
        if self.longest_result_bytes < 1:
            raise ConfigurationError(f"longest_result_bytes={self.longest_result_bytes!r}")

    def limit(self, request: ModelRequest) -> int | None:
        """The tokens above which a request is compacted, or None."""
        if self.at_tokens is not None:
            return self.at_tokens
        window = request.model.capabilities.context_tokens
        return None if window is None else int(window * self.at_share)
