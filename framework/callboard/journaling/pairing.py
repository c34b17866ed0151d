"""Mending a conversation that was brought in from elsewhere, so that it can be sent.

Each call gets exactly one result right behind its message, in the order of the calls; results
without a call and empty messages go; ids used before are replaced in call and result alike.
Nothing is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from callboard.messages import (
    AssistantContent,
    AssistantMessage,
    ConversationMessage,
    Status,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    new_id,
)

LOST = "No result was kept: the call was interrupted, and it is not known whether it ran."


def paired(
    messages: Iterable[ConversationMessage],
) -> tuple[tuple[ConversationMessage, ...], tuple[str, ...]]:
    """The messages, mended, and a note for each thing that was mended."""
    mender = _Mender(list(messages))
    for place, message in enumerate(mender.given):
        mender.take(place, message)
    for result in mender.results:
        if result is not None:
            mender.notes.append(f"a result for {result.call_id!r}, which no call has, was dropped")
    return tuple(mender.mended), tuple(mender.notes)


class _Mender:
    def __init__(self, given: Sequence[ConversationMessage]) -> None:
        self.given = given
        self.mended: list[ConversationMessage] = []
        self.notes: list[str] = []
        self.ids: set[str] = set()
        self.results = [m if isinstance(m, ToolResultMessage) else None for m in given]

    def take(self, place: int, message: ConversationMessage) -> None:
        if isinstance(message, ToolResultMessage):
            return  # it comes with its call
        if not message.content:
            self.notes.append(f"an empty {message.role} message was dropped")
        elif isinstance(message, AssistantMessage) and message.calls:
            self._take_calls(place, message)
        else:
            self.mended.append(message)

    def _take_calls(self, place: int, message: AssistantMessage) -> None:
        content: list[AssistantContent] = []
        results: list[ToolResultMessage] = []
        for block in message.content:
            if isinstance(block, ToolCall):
                result = self._result_of(block, place)
                block = self._with_fresh_id(block)
                results.append(self._answering(result, block))
            content.append(block)
        unchanged = all(a is b for a, b in zip(content, message.content, strict=True))
        self.mended.append(message if unchanged else message.with_content(content))
        self.mended.extend(results)

    def _answering(self, result: ToolResultMessage, call: ToolCall) -> ToolResultMessage:
        """The result under the call's id and name; some providers match by name."""
        if result.tool_name != call.name:
            self.notes.append(f"a result of {result.tool_name!r} for {call.name!r} was renamed")
        elif result.call_id == call.id:
            return result
        return replace(result, call_id=call.id, tool_name=call.name)

    def _with_fresh_id(self, call: ToolCall) -> ToolCall:
        if not call.id or call.id in self.ids:
            self.notes.append(f"the repeated call id {call.id!r} was replaced")
            call = call.with_id(new_id("call"))
        self.ids.add(call.id)
        return call

    def _result_of(self, call: ToolCall, place: int) -> ToolResultMessage:
        """The first result behind the call that has its id and is not taken yet."""
        for later in range(place + 1, len(self.given)):
            found = self.results[later]
            if found is not None and found.call_id == call.id:
                self.results[later] = None
                return found
        self.notes.append(f"a result for the call {call.id!r} of {call.name!r} was missing")
        return ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=(TextBlock(text=LOST),),
            status=Status.UNKNOWN_OUTCOME,
        )
