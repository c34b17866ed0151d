"""Which variables of a shell text have a certain value. Called by `shell_walk`.

Certain is only what the text itself sets, outside of branches, loops and other processes, and
what a loop goes through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from callboard_mixins.tool_guard.shell_tree import Node
from callboard_mixins.tool_guard.shell_words import Variables, Word, literal

_FOLDERS = {"HOME": literal("~"), "PWD": literal(".")}
_MOVERS = frozenset({"cd", "pushd", "popd", "chdir"})
_SETTERS = frozenset(
    {"mapfile", "readarray", "getopts", "let", "eval", "source", ".", "select", "printf -v"}
)
_SPECIAL = frozenset({"IFS", "_", "LINENO", "RANDOM", "SECONDS", "BASH_COMMAND"})
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True, eq=False)
class Scope:
    """The variables of one text, as far as the walk has come."""

    values: Variables = field(default_factory=lambda: dict(_FOLDERS))
    branches: int = 0
    any_move: bool = False
    functions: bool = False
    untold: bool = False  # something sets variables in a way that is not followed

    @staticmethod
    def of(root: Node) -> Scope:
        """The scope in which a text begins."""
        names = {node.text for node in root.below() if node.type == "command_name"}
        words = {node.text for node in root.below() if node.type == "word"}
        scope = Scope()
        scope.any_move = bool((names | words) & _MOVERS)
        scope.functions = any(node.type == "function_definition" for node in root.below())
        printf = "printf" in names and any(word.startswith("-v") for word in words)
        sets = any(
            node.type == "expansion" and re.match(r"\$\{[^}]*?(?::=|=|@|!)", node.text)
            for node in root.below()
        )
        scope.untold = bool((names | words) & _SETTERS) or printf or sets
        if scope.untold or "IFS" in _statements(root):
            scope.untold = True
            scope.values.clear()
        return scope

    def enter(self, node: Node) -> None:
        """A branch begins: what it sets is uncertain in it and behind it."""
        self.branches += 1
        self._drop(self.assigned(node))

    def leave(self, node: Node) -> None:
        self.branches -= 1
        self._drop(self.assigned(node))

    def forget(self) -> None:
        """Nothing that the text has set is certain any more."""
        self._drop([name for name in self.values if name not in _FOLDERS])

    def moves(self, node: Node) -> bool:
        """Whether something below a node changes the folder, other than in a subshell."""
        if node.type in ("subshell", "command_substitution"):
            return False
        if node.type == "command_name" and node.text not in ("", "echo"):
            return node.text in _MOVERS or node.text in ("command", "builtin", "eval")
        return any(self.moves(child) for child in node.children)

    @staticmethod
    def assigned(node: Node) -> frozenset[str]:
        """The names that anything below a node sets."""
        return frozenset(_names(node))

    def assign(self, name: str, word: Word, *, plain: bool) -> None:
        """`NAME=value` was read."""
        certain = plain and word.one is not None and not self.branches and not self.untold
        if certain and name not in _SPECIAL and "/" not in name and "[" not in name:
            self.values[name] = word
        else:
            self._drop([name])

    def set_loop(self, name: str, word: Word | None) -> None:
        """A loop goes through these values."""
        if word is not None and not self.untold and name not in _SPECIAL:
            self.values[name] = word

    def after_command(
        self, words: Sequence[Word], pairs: Iterable[tuple[str, Word]], *, declares: bool
    ) -> None:
        """What `export A=b`, `read x` and `unset x` leave."""
        if declares:
            plain = not any(word.known.startswith("-") for word in words)
            for name, word in pairs:
                self.assign(name, word, plain=plain)
            if not plain:
                self._drop([word.known for word in words])
        elif words and words[0].one in ("read", "unset"):
            self._drop([word.known for word in words[1:]])
            if any(word.one is None for word in words[1:]):
                self.values.clear()
                self.untold = True

    def _drop(self, names: Iterable[str]) -> None:
        for name in names:
            self.values.pop(name, None)


def _names(node: Node) -> Iterable[str]:
    for found in node.below():
        if found.type in ("variable_assignment", "for_statement"):
            yield from (child.text for child in found.children if child.type == "variable_name")
            yield from (child.text.split("[")[0] for child in found.children if child.label)
        elif found.type in ("postfix_expression", "unary_expression", "binary_expression") or (
            found.type == "command" and found.text.startswith(("read", "unset"))
        ):
            yield from _NAME.findall(found.text)


def _statements(root: Node) -> set[str]:
    """The names set by statements, not those that are set for one command alone."""
    return {
        name
        for found in root.below()
        if found.type != "command"
        for child in found.children
        if child.type == "variable_assignment"
        for name in _names(child)
    }


def any_of(words: Sequence[Word]) -> Word | None:
    """One word that stands for any of several; None where that would hide where they lead."""
    if len(words) == 1:
        return words[0] if words[0].value is not None else None
    if not words or not all(_plain(word) for word in words):
        return None
    return Word("...", "*", "", pattern=True)


def _plain(word: Word) -> bool:
    value = word.value
    if value is None or value.startswith(("/", "~", "-")):
        return False
    return ".." not in value.split("/")
