"""The terminal of a chat: a line to type on at all times, and the trace above it.

What is complete goes to the scrollback. The line that a model is writing, and what the agent is
about, stand between it and the prompt until they are complete, too.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from math import inf
from typing import IO, cast

import anyio
from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.utils import get_cwidth
from rich.console import Console

REFRESH_S = 0.2
MOST_ROWS = 6  # of a line that is being written; the whole of it comes when it is complete
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Paper:
    """The file that the trace is written to."""

    encoding = "utf-8"

    def __init__(self, print_above: Callable[[str], None]) -> None:
        self._print_above = print_above
        self.unfinished = ""  # the line that is being written, with its escape codes

    def write(self, text: str) -> int:
        whole, newline, self.unfinished = (self.unfinished + text).rpartition("\n")
        if newline:
            self._print_above(whole + newline)
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        return True


class TerminalFront:
    """A terminal. Ctrl-C and Ctrl-D are keys here; a line that was typed is not lost by them."""

    is_live = True

    def __init__(self) -> None:
        self._output = _output()
        self._paper = Paper(self._print_above)
        self.console = _console(self._paper)
        self.aside = _console(Paper(self._print_above))
        self._said, self._saying = anyio.create_memory_object_stream[str](inf)
        self._interrupt: Callable[[], None] = self.close
        self._doing: str | None = None
        self._doing_since = 0.0
        self._history = InMemoryHistory()
        self._prompt: PromptSession[str] = PromptSession(
            message=self._shown,
            key_bindings=self._keys(),
            history=self._history,
            refresh_interval=REFRESH_S,
            erase_when_done=True,
            output=self._output,
        )

    async def edit(self, interrupt: Callable[[], None]) -> None:
        """One prompt for the whole chat: between two of them a key could get lost."""
        self._interrupt = interrupt
        # what tools print goes above the prompt, too; EOFError: the terminal is gone
        with self._said, patch_stdout(raw=True), suppress(EOFError):
            await self._prompt.app.run_async(handle_sigint=False)
        if self._paper.unfinished:
            self._paper.write("\n")

    async def lines(self) -> AsyncIterator[str]:
        async for line in self._saying:
            yield line

    def wait(self, what: str | None) -> None:
        if what != self._doing:
            self._doing, self._doing_since = what, time.monotonic()
            self._prompt.app.invalidate()

    def remember(self, said: Sequence[str]) -> None:
        for text in said:
            self._history.append_string(text)

    def close(self) -> None:
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            text = event.current_buffer.text
            event.current_buffer.reset(append_to_history=bool(text.strip()))
            self._said.send_nowait(text)

        @keys.add("c-c", eager=True)
        def _(event: KeyPressEvent) -> None:
            if event.app.is_done:
                return
            if event.current_buffer.text and self._doing is None:
                event.current_buffer.reset(append_to_history=True)
                event.current_buffer.load_history_if_not_yet_loaded()
                self._print_above("(the up key brings it back; Ctrl-C again leaves)\n")
            else:
                self._interrupt()

        @keys.add("c-d", eager=True)
        def _(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.delete()
            else:
                self._said.send_nowait("/quit")

        return keys

    # -- what is shown ---------------------------------------------------------------------------

    def _print_above(self, text: str) -> None:
        app = self._prompt.app
        if app.is_running and not app.is_done:
            app.renderer.erase()
        self._output.write_raw(text.replace("\n", "\r\n"))
        self._output.flush()
        app.invalidate()

    def _shown(self) -> StyleAndTextTuples:
        """What stands above the prompt, and the prompt."""
        columns = max(self._output.get_size().columns - 1, 10)
        shown: StyleAndTextTuples = []
        if self._paper.unfinished:
            rows = wrapped(to_formatted_text(ANSI(self._paper.unfinished)), columns)
            for row in rows[-MOST_ROWS:]:
                shown += [*row, ("", "\n")]
        if self._doing is not None:
            took_s = time.monotonic() - self._doing_since
            frame = FRAMES[int(took_s / REFRESH_S) % len(FRAMES)]
            doing = f"{frame} {self._doing}  {took_s:.0f} s"
            shown += [("fg:ansibrightblack", doing[:columns]), ("", "\n")]
        return [*shown, ("fg:ansiblue bold", "> ")]


def wrapped(text: StyleAndTextTuples, columns: int) -> list[StyleAndTextTuples]:
    """A styled text in rows of at most so many columns."""
    rows: list[StyleAndTextTuples] = []
    for line in split_lines(text):
        rows.append([])
        used = 0
        for style, piece, *_ in line:
            for character in piece:
                width = get_cwidth(character)
                if used + width > columns:
                    rows.append([])
                    used = 0
                rows[-1].append((style, character))
                used += width
    return rows


def _console(paper: Paper) -> Console:
    return Console(file=cast(IO[str], paper), force_terminal=True)


def _output() -> Output:
    """Standard output. It is not asked where the cursor is, which some terminals do not tell."""
    output = create_output()
    if isinstance(output, Vt100_Output):
        output.enable_cpr = False
    return output
