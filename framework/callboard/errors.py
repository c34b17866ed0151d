"""Every exception that Callboard raises on purpose. All of them derive from CallboardError.

CallboardError
├── ConfigurationError      an argument, a file or a name is wrong: fix the code (also a ValueError)
│   ├── CompositionError    a class statement breaks a law of layers (also a TypeError)
│   ├── ToolDefinitionError a function cannot become a tool, or two tools collide
│   └── MissingExtra        an optional dependency is not installed: the text names the extra
├── ModelError              a provider refused or failed: `category` says what the caller can do
├── NotAnApprover           somebody answered an approval who may not; nothing was changed
├── CommitFailed            a record could not be written: to the agent this is a crash of the run
│   ├── JournalConflict     somebody else appended first
│   └── Fenced              another process owns the address now
├── JournalDamaged          a journal cannot be read, or was written by a newer version
├── ActorError              a message could not be delivered or answered: nothing else is wrong
│   ├── UnknownAddress      no actor is there, and none can be made
│   ├── MailboxFull         the actor is behind, and its mailbox rejects
│   ├── AskTimeout          no answer came in time (also a TimeoutError)
│   ├── AskCycle            the actor that is asked waits for the one who asks
│   ├── ActorStopped        it stopped before it answered
│   └── ActorFailed         an actor failed on a message that nobody waits for
├── BlobLost                what a record keeps in the blob store is not there, or is damaged
├── ScriptError             a test's script and what the agent asked of it differ
├── RunFailed               a run ended with outcome `failed`; carries the reply (replies.py)
└── StopRun                 raised by tools and layers to end the run with an outcome
    ├── CallWaits           a running tool asks a human (approvals.py)
    └── RunEnds             the loop's own: a park, an interrupt, an empty reply (replies.py)
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class CallboardError(Exception):
    """The base of every error of this package."""


class ConfigurationError(CallboardError, ValueError):
    """An argument, a file or a name is wrong; the text names the value and the remedy."""


class CompositionError(ConfigurationError, TypeError):
    """A class statement breaks a law of layers; the text names the class and the remedy."""


class ToolDefinitionError(ConfigurationError):
    """A function or a schema cannot become a tool, or two tools have one name."""


class MissingExtra(ConfigurationError, ImportError):
    """An optional dependency is missing."""

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(
            f"{package!r} is not installed; it comes with: pip install 'callboard[{extra}]'"
        )
        self.package = package
        self.extra = extra


class ErrorCategory(StrEnum):
    """What kind of failure a provider reported, by what a caller can do about it."""

    RATE_LIMITED = "rate_limited"  # wait, then try again
    QUOTA = "quota"  # no credit left: waiting does not help
    OVERLOADED = "overloaded"  # the provider is busy or broken: try again, or another model
    CONTEXT_OVERFLOW = "context_overflow"  # the request is too long: compact it
    AUTH = "auth"  # the key is missing, wrong or not allowed
    BAD_REQUEST = "bad_request"  # the same request will fail again
    UNSUPPORTED_MEDIA = "unsupported_media"  # the model does not take this kind of content
    MALFORMED_OUTPUT = "malformed_output"  # the provider could not parse its model's output
    NETWORK = "network"  # no answer, a broken connection, a stalled stream
    CONTENT_FILTER = "content_filter"  # the provider refused the input


class ModelError(CallboardError):
    """A model call failed. Never holds a key.

    `retry_after_s` is what the provider asked for, in seconds, or None. `status` is the HTTP
    status, or None where no answer came. `final` says that nobody should ask the same again: it
    was tried often enough, or the provider said so.
    """

    def __init__(
        self,
        message: str,
        *,
        category: ErrorCategory,
        retry_after_s: float | None = None,
        status: int | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.category = category
        self.retry_after_s = retry_after_s
        self.status = status
        self.final = final

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.category in RETRYABLE and not self.final


RETRYABLE = frozenset(
    {
        ErrorCategory.RATE_LIMITED,
        ErrorCategory.OVERLOADED,
        ErrorCategory.NETWORK,
        ErrorCategory.MALFORMED_OUTPUT,
    }
)


class NotAnApprover(CallboardError):
    """Somebody answered an approval who may not. Nothing was changed: let one of those answer."""


class CommitFailed(CallboardError):
    """A record could not be written. Nothing more is written until the state is read back."""


class JournalConflict(CommitFailed):
    """The journal holds another number of records than its writer expected."""


class Fenced(CommitFailed):
    """Another process owns the address now, or the lease ran out: nothing was written."""


class JournalDamaged(CallboardError):
    """A journal cannot be read: it is damaged, or a newer version wrote it."""


class ActorError(CallboardError):
    """A message could not be delivered, or got no answer."""


class UnknownAddress(ActorError):
    """No actor has this address, and its type is not registered."""


class MailboxFull(ActorError):
    """The mailbox of the actor is full, and its policy is to reject."""


class AskTimeout(ActorError, TimeoutError):
    """No answer came before the deadline."""


class AskCycle(ActorError):
    """The actor that was asked waits itself, directly or through others, for the one who asks."""


class ActorStopped(ActorError):
    """The actor stopped before it took the message in, or before it answered."""


class ActorFailed(ActorError):
    """An actor failed on a message that nobody waits for, and its supervision escalates."""


class BlobLost(CallboardError):
    """What a record keeps in the blob store cannot be read: bring the store back, then resume."""


class ScriptError(CallboardError, AssertionError):
    """A scripted model was asked for something its script does not hold."""


class StopRun(CallboardError):
    """Ends the run: raised by a tool or a layer, it closes the round and returns a Reply.

    The reply has outcome `stopped` and this text. Siblings of the call that raised it are
    cancelled and awaited first. `output` becomes `reply.output`.
    """

    def __init__(self, text: str = "", *, output: Any = None) -> None:
        super().__init__(text)
        self.text = text
        self.output = output
