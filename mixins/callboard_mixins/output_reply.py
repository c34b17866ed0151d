"""Replies and streams that type checkers know the output of. At run time they are the usual ones.

Used by `structured_output.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar, cast

from callboard.replies import Outcome, Reply
from callboard.watching import EventStream
from callboard_mixins.output_form import OutputForm

T = TypeVar("T")


class TypedReply(Reply, Generic[T]):
    """A Reply whose output is of the wanted type, or None where the run ended without one (or the
    journal holds one of another form, which is a warning).
    """

    output: T | None


class TypedStream(EventStream, Generic[T]):
    """The stream of a run with such a reply."""

    reply: TypedReply[T] | None  # pyright: ignore[reportIncompatibleVariableOverride]  # set once


def typed(reply: Reply, form: OutputForm[T], *, warn: Callable[[str], None]) -> TypedReply[T]:
    """The reply with its output, which is JSON, as the type."""
    if reply.outcome is not Outcome.FINISHED or reply.output is None:
        return cast("TypedReply[T]", reply)
    try:
        output: T | None = form.typed(reply.output)
    except ValueError:  # an older form wrote it, or redaction hides a part of it
        warn("the output in the journal does not have the wanted form, so it is None")
        output = None
    return cast("TypedReply[T]", replace(reply, output=output))
