"""The live trace of a run: thinking, tool calls, observations, and the answer as it arrives.

Styled on a terminal, plain text elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from rich.console import Console
from rich.status import Status

from callboard.events import (
    ApprovalAsked,
    Event,
    LimitReached,
    MessageEnd,
    MessageUpdate,
    Retry,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    TurnStart,
    Warned,
)
from callboard.json_text import Json
from callboard.messages import (
    AssistantMessage,
    ConversationMessage,
    SystemMessage,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from callboard.messages import Status as CallStatus
from callboard.model import AttemptDiscarded, Delta, TextDelta, ThinkingDelta, WholeDelta
from callboard.replies import Reply

MOST_ARGUMENT_CHARACTERS = 200
MOST_RESULT_LINES = 6
MOST_RESULT_CHARACTERS = 600
WORTH_TELLING_S = 0.1  # shorter tool calls are shown without their time


class Screen(Console):
    """Standard output. A reader that goes away is an error and not an exit, so that the run is
    closed first.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Trace:
    """Prints the events of one run, and counts what the closing line tells."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._arrows = ("→", "←", "·") if _speaks_unicode(console) else ("->", "<-", "-")
        self._open: str | None = None  # the style of the line being streamed
        self._written = ""  # the text streamed since the model was last asked
        self._started: dict[str, float] = {}
        self._begun = time.monotonic()
        self._status: Status | None = None
        self._turns = self._calls = 0
        self._batch = 0  # calls of this turn: results of several tell whose they are

    def header(self, question: str, model: str, tools: Sequence[str]) -> None:
        """What is asked, what answers, and with which tools."""
        self._line(question, "bold")
        self._line(self._joined([model, f"tools: {', '.join(tools) or 'none'}"]), "dim")

    def show(self, event: Event) -> None:
        """Print what an event tells a reader."""
        match event:
            case TurnStart():
                self._turns += 1
                self._batch = 0
                self._written = ""
                self.wait("thinking")
            case MessageUpdate(delta=delta):
                self._delta(delta)
            case MessageEnd():
                self._end_line()
            case ToolStart(call=call):
                self._tool_start(call)
            case ToolUpdate(value=value):
                self._line(f"{self._arrows[2]} {_shorten(str(value))}", "dim")
            case ToolEnd():
                self._tool_end(event)
            case LimitReached(limit=limit):
                self._written = ""
                self._line(f"limit reached: {limit}; summing up", "yellow")
                self.wait("summing up")
            case Retry(reason=reason):
                self._line(f"asking again: {reason}", "yellow")
            case ApprovalAsked(approval=approval):
                self._line(f"waits for approval: {approval.tool_name}", "yellow")
            case Warned(text=text):
                self._line(f"warning: {text}", "yellow")
            case _:
                pass

    def close(self, reply: Reply) -> None:
        """The answer, where it was not streamed, and one line on the run."""
        self.stop_waiting()
        self._end_line()
        if reply.text.strip() and reply.text.strip() != self._written.strip():
            self._line(reply.text, "bold")
        usage = reply.usage
        tokens = [f"{usage.input_tokens} tokens in"] if usage.input_tokens is not None else []
        tokens += [f"{usage.output_tokens} out"] if usage.output_tokens is not None else []
        parts = [
            f"{reply.outcome} in {time.monotonic() - self._begun:.1f} s",
            counted(self._turns, "turn"),
            counted(self._calls, "tool call"),
            ", ".join(tokens),
        ]
        self._line(self._joined([part for part in parts if part]), "dim")

    def wait(self, what: str) -> None:
        """A spinner, on a terminal, until something is printed."""
        self.stop_waiting()
        if self._console.is_terminal:
            self._status = self._console.status(f"[dim]{what}[/dim]")
            self._status.start()

    def stop_waiting(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def recall(self, message: ConversationMessage) -> None:
        """A message of the conversation so far, in the look of the trace."""
        match message:
            case UserMessage(text=text):
                self.said(text)
            case AssistantMessage():
                if message.text.strip():
                    self._line(message.text, "bold")
                for call in message.calls:
                    self._line(f"{self._arrows[0]} {call.name}({_arguments(call)})", "cyan")
            case ToolResultMessage():
                self._result(message.tool_name, message.status, message.text)
            case SystemMessage():
                pass

    def said(self, text: str) -> None:
        """What the user said."""
        self._line(f"> {_indented(text)}", "blue")

    def note(self, text: str, style: str = "yellow") -> None:
        """A line that is not the agent's."""
        self._line(text, style)

    def _delta(self, delta: Delta) -> None:
        match delta:
            case TextDelta(text=text):
                self._stream(text, "bold")
            case ThinkingDelta(text=text):
                self._stream(text, "dim italic")
            case WholeDelta(content=content):
                for block in content:
                    if isinstance(block, TextBlock):
                        self._stream(block.text, "bold")
                    elif isinstance(block, ThinkingBlock):
                        self._stream(block.text, "dim italic")
            case AttemptDiscarded(reason=reason):
                self._written = ""
                self._line(f"what was written so far is void: {reason}", "yellow")
            case _:
                pass

    def _tool_start(self, call: ToolCall) -> None:
        self._calls += 1
        self._batch += 1
        self._started[call.id] = time.monotonic()
        self._line(f"{self._arrows[0]} {call.name}({_arguments(call)})", "cyan")
        self.wait(f"running {call.name}")

    def _tool_end(self, event: ToolEnd) -> None:
        took_s = time.monotonic() - self._started.pop(event.call_id, time.monotonic())
        time_text = f"  ({took_s:.1f} s)" if took_s >= WORTH_TELLING_S else ""
        status, text = event.observation.status, event.observation.text
        is_named = self._batch > 1 or status is not CallStatus.OK
        self._result(event.tool_name if is_named else "", status, text, time_text)

    def _result(self, name: str, status: CallStatus, text: str, time_text: str = "") -> None:
        good = status is CallStatus.OK
        parts = [name, "" if good else str(status), _shorten_lines(text)]
        shown = ": ".join([part for part in parts if part])
        self._line(f"{self._arrows[1]} {shown}{time_text}", "green" if good else "red")

    def _stream(self, text: str, style: str) -> None:
        if not text:
            return
        self.stop_waiting()
        if self._open != style:
            self._end_line()
        self._open = style
        if style == "bold":
            self._written += text
        self._console.print(
            text, style=style, end="", markup=False, highlight=False, soft_wrap=True
        )

    def _end_line(self) -> None:
        if self._open is not None:
            self._console.print()
            self._open = None

    def _line(self, text: str, style: str) -> None:
        self.stop_waiting()
        self._end_line()
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def _joined(self, parts: Sequence[str]) -> str:
        return f" {self._arrows[2]} ".join(parts)


def _speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _arguments(call: ToolCall) -> str:
    written = ", ".join(f"{key}={_json(value)}" for key, value in call.arguments.items())
    return _shorten(written if call.problem is None else call.raw, MOST_ARGUMENT_CHARACTERS)


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorten(text: str, most: int = MOST_RESULT_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def _shorten_lines(text: str) -> str:
    """A bounded part of a result, its further lines indented below the arrow."""
    lines = _shorten(text.rstrip()).splitlines() or ["(nothing)"]
    left = len(text.rstrip().splitlines()) - MOST_RESULT_LINES
    if left > 1:
        lines = [*lines[:MOST_RESULT_LINES], f"... {left} more lines"]
    return "\n  ".join(lines)


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
