"""From a shell text to the commands that it would run, with those inside wrappers and strings.

Nothing is run and no file is looked at. What cannot be told from the text is said to be unknown;
guards ask about it. Text is advice: only a sandbox contains.
"""

from __future__ import annotations

from callboard_mixins.tool_guard.shell_script import Redirection, Script, ShellCommand
from callboard_mixins.tool_guard.shell_tree import NotParsed
from callboard_mixins.tool_guard.shell_walk import Walk
from callboard_mixins.tool_guard.shell_words import Word

__all__ = ["Redirection", "Script", "ShellCommand", "Word", "parse_shell"]


def parse_shell(text: str) -> Script:
    """All commands that a text would run, as far as it can be told without running it.

    Bounded in time and memory for any input; more than 64 KiB are not read. No text makes it
    raise: `problem` says why it is not, or not wholly, understood.

    Raises:
        MissingExtra: tree-sitter is not installed (extra `guard`).
    """
    walk = Walk()
    try:
        walk.read(text)
    except (NotParsed, UnicodeEncodeError) as error:
        return Script(tuple(walk.commands), str(error))
    return Script(tuple(walk.commands))
