"""What a shell text comes to: its commands, in the order of the text, those inside others too."""

from __future__ import annotations

from dataclasses import dataclass

from callboard_mixins.tool_guard.shell_words import Word


@dataclass(frozen=True, slots=True)
class Redirection:
    """`> file`, `2>&1`, `<<EOF`. `body` is what a here-document or here-string hands over."""

    op: str
    target: Word | None = None
    body: Word | None = None

    @property
    def writes(self) -> bool:
        return self.op.startswith((">", "&>", "<>"))


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command, as far as the text tells.

    - `program`: its name without folder; "" where only redirections or assignments stand, and
      None where only the run can tell. `written` is the word as it stands there.
    - `words`: what follows the program. `source`: the piece of text that it was read from.
    - `via`: what it stands in, from outside in: "pipe", "substitution", "sudo", "sh -c",
      "function f", ...
    - `upstream`: the commands before it in its pipeline, with those inside them.
    - `folders`: where it may run, relative to the start or absolute; None is anywhere.
    - `fetched`: programs whose output this command is, as in `eval "$(curl ...)"`.
    """

    program: str | None
    written: str
    words: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    source: str = ""
    via: tuple[str, ...] = ()
    upstream: tuple[ShellCommand, ...] = ()
    folders: tuple[str | None, ...] = (".",)
    fetched: frozenset[str] = frozenset()
    reads_commands: bool = False  # a shell whose commands come from its input, unseen

    @property
    def arguments(self) -> tuple[str | None, ...]:
        """The values of the words; None where only the run can tell."""
        return tuple(word.value for word in self.words)


@dataclass(frozen=True, slots=True)
class Script:
    """All commands of a text. With a `problem` there may be more than these."""

    commands: tuple[ShellCommand, ...]
    problem: str | None = None
