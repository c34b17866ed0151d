"""The answer at a limit: how the model is asked for it, and what stands in where it fails."""

from __future__ import annotations

from dataclasses import replace

from callboard.journaling.transcript import State
from callboard.json_text import cut
from callboard.messages import AssistantMessage, ToolResultMessage, UserMessage
from callboard.model import ModelRequest, Purpose
from callboard.replies import Outcome, RunEnds

INSTRUCTION = (
    "The limit of this run ({limit}) is reached, and no more tools can be called. Answer the "
    "question now as well as you can from what is known, and say what is still missing."
)
MAX_BYTES = 4_000
RESULT_BYTES = 800


def summary_request(request: ModelRequest, limit: str) -> ModelRequest:
    """The request without tools and their options, with one more instruction, never stored."""
    instruction = UserMessage.of(INSTRUCTION.format(limit=limit))
    return replace(
        request,
        messages=(*request.messages, instruction),
        offer=None,
        purpose=Purpose.SUMMARY,
    )


def tool_free(message: AssistantMessage) -> AssistantMessage:
    """The summary without calls, which are neither stored nor shown.

    Raises:
        RunEnds: nothing is left of it.
    """
    message = message.without_calls() if message.calls else message
    if not message.text.strip():
        raise RunEnds(Outcome.EMPTY_REPLY, "the summary had no text")
    return message


def stand_in(state: State, limit: str) -> str:
    """A bounded text from the results of this run, for when the summary call failed."""
    lines = [f"The limit of this run ({limit}) was reached before it was finished."]
    messages = state.messages[state.run_from :]
    said = [m for m in messages if isinstance(m, AssistantMessage)]
    results = [m for m in messages if isinstance(m, ToolResultMessage)]
    if said and said[-1].text:
        lines.append(f"Last said: {cut(said[-1].text, RESULT_BYTES)}")
    lines.append("Results so far:" if results else "There are no results.")
    first = len(lines)
    for result in reversed(results):  # the newest are worth most where not all fit
        lines.insert(first, _line(result))
        if sum(len(line) for line in lines) > MAX_BYTES:
            break
    return cut("\n".join(lines), MAX_BYTES)


def _line(result: ToolResultMessage) -> str:
    return f"- {result.tool_name} ({result.status}): {cut(result.text, RESULT_BYTES)}"
