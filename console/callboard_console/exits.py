"""How a command ends: its exit codes, and one line for each thing that can go wrong."""

from __future__ import annotations

from enum import IntEnum

from callboard.errors import CallboardError, ErrorCategory, MissingExtra, ModelError
from callboard.replies import Outcome, RunFailed


class Exit(IntEnum):
    """What the shell gets."""

    ANSWERED = 0
    FAILED = 1  # the run failed
    USAGE = 2  # an option, a name or a file is wrong
    NO_MODEL = 3  # the model cannot be had or reached
    LIMIT = 4  # a limit ended the run; what was printed is a summary
    UNANSWERED = 5  # refused, empty, incomplete, or waiting for an approval
    INTERRUPTED = 130


CODES = """Exit codes: 0 answered, 1 the run failed, 2 wrong usage, 3 the model cannot be had or
reached, 4 a limit ended the run, 5 not answered (refused, empty, incomplete, or waiting for an
approval), 130 interrupted."""

UNREACHABLE = frozenset(
    {
        ErrorCategory.AUTH,
        ErrorCategory.NETWORK,
        ErrorCategory.OVERLOADED,
        ErrorCategory.QUOTA,
        ErrorCategory.RATE_LIMITED,
    }
)


class CommandError(CallboardError):
    """Ends a command with one line on stderr. `code` is what the shell gets."""

    def __init__(self, text: str, *, code: Exit = Exit.USAGE) -> None:
        super().__init__(text)
        self.code = code


def code_of_outcome(outcome: Outcome) -> Exit:
    """The exit code of a run that returned a reply."""
    match outcome:
        case Outcome.FINISHED | Outcome.STOPPED:
            return Exit.ANSWERED
        case Outcome.MAX_ITERS | Outcome.BUDGET:
            return Exit.LIMIT
        case Outcome.INTERRUPTED:
            return Exit.INTERRUPTED
        case Outcome.FAILED:
            return Exit.FAILED
        case _:
            return Exit.UNANSWERED


def code_of_error(error: BaseException) -> Exit:
    """The exit code of an error that ended a command."""
    cause = error.__cause__ if isinstance(error, RunFailed) else error
    if isinstance(error, CommandError):
        return error.code
    if isinstance(cause, MissingExtra):
        return Exit.NO_MODEL
    if isinstance(cause, ModelError) and cause.category in UNREACHABLE:
        return Exit.NO_MODEL
    if isinstance(error, ValueError):  # a ConfigurationError
        return Exit.USAGE
    return Exit.FAILED


def line_of(error: BaseException) -> str:
    """One line that says what was wrong, with the remedy where one is known."""
    text = " ".join(str(error).split()) or type(error).__name__
    cause = error.__cause__ if isinstance(error, RunFailed) else error
    if isinstance(cause, ModelError) and cause.category in REMEDIES:
        said = cause.category is ErrorCategory.AUTH and "_API_KEY" in text
        remedy = "or take --model local, which needs none" if said else REMEDIES[cause.category]
        text = f"{text.rstrip('.')}; {remedy}"
    return text


REMEDIES = {
    ErrorCategory.AUTH: "set the key, OPENAI_API_KEY for instance, or take --model local",
    ErrorCategory.NETWORK: "`callboard doctor` tells which models can be reached",
    ErrorCategory.QUOTA: "the account has no credit left; --model local needs none",
    ErrorCategory.RATE_LIMITED: "wait a little, then ask again",
    ErrorCategory.CONTEXT_OVERFLOW: "ask for less, or take a model with a larger context",
}
