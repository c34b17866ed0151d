"""The walk over the tree of a shell text that gathers its commands. Called by `shell_parse`.

It follows folders and variables only as far as they are certain; what depends on a branch, a loop
or another process is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from callboard_mixins.tool_guard.shell_evaluation import check_evaluation
from callboard_mixins.tool_guard.shell_folders import After, Folders, change_folder, either
from callboard_mixins.tool_guard.shell_letters import check_letters
from callboard_mixins.tool_guard.shell_redirects import REDIRECTS, redirections
from callboard_mixins.tool_guard.shell_script import Redirection, ShellCommand
from callboard_mixins.tool_guard.shell_tree import Node, NotParsed, parse_tree
from callboard_mixins.tool_guard.shell_variables import Scope, any_of
from callboard_mixins.tool_guard.shell_words import Word, literal, word_of, words_of
from callboard_mixins.tool_guard.shell_wrappers import (
    SHELLS,
    Inner,
    inner_commands,
    lists_paths,
    more_arguments,
    reads_input,
)

MOST_COMMANDS = 500
MOST_TEXTS = 8  # one inside the other, as `bash -c "bash -c ..."`
_PROCESSES = frozenset({"subshell", "command_substitution", "process_substitution", "pipeline"})
_LOOPS = frozenset({"while_statement", "c_style_for_statement", "for_statement"})
_BRANCHES = frozenset({"if_statement", "case_statement", "list"}) | _LOOPS | _PROCESSES
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_TRANSPARENT = frozenset({"command", "builtin", "exec", "eval", "time"})  # run in this shell
_LEAVING = re.compile(r"(?:exit|return|break|continue)\b[ \w]*|\{ *(?:exit|return)[ \w]*; *\}")
_KEYWORDS = frozenset(
    "! { } if then elif else fi for while until do done case esac in function select [[ ]]".split()
)


@dataclass(slots=True, eq=False)
class Walk:
    """One pass over a text and the texts inside it. `commands` grows in the order of the text."""

    commands: list[ShellCommand] = field(default_factory=list[ShellCommand])
    via: tuple[str, ...] = ()
    upstream: tuple[ShellCommand, ...] = ()
    texts: int = 0
    scope: Scope = field(default_factory=Scope)
    given: dict[int, list[Node]] = field(default_factory=dict[int, list[Node]])

    def read(self, text: str, folders: Folders = (".",)) -> After:
        """Take in a text: the first one, or one inside a command. Raises NotParsed."""
        if self.texts >= MOST_TEXTS:
            raise NotParsed(f"more than {MOST_TEXTS} texts stand one in the other")
        check_letters(text)
        root = parse_tree(text)
        check_evaluation(root)
        outer, self.scope = self.scope, Scope.of(root)
        self.texts += 1
        try:
            return self.visit(root, folders)
        finally:
            self.texts -= 1
            self.scope = outer

    def visit(self, node: Node, folders: Folders) -> After:
        """Take in a node and all below it; where the next command may run comes back."""
        if node.type not in _BRANCHES and node.type != "function_definition":
            return self._plain(node, folders)
        self.scope.enter(node)
        try:
            after = self._branch(node, folders)
        finally:
            self.scope.leave(node)
        return after

    def _plain(self, node: Node, folders: Folders) -> After:
        if node.type in _COMMANDS:
            return self._command(node, folders)
        if node.type == "redirected_statement":
            return self._redirected(node, folders)
        if node.type == "variable_assignment":
            return self._assigned(node, folders)
        if node.type == "negated_command" and not re.match(r"![ \t]", node.text):
            raise NotParsed("a '!' without a blank behind it is part of the word, to the shell")
        return self._sequence(node.children, folders)

    def _branch(self, node: Node, folders: Folders) -> After:
        if node.type in ("command_substitution", "process_substitution", "subshell"):
            return self._process(node, folders)
        if node.type == "pipeline":
            return self._pipeline(node, folders, self.upstream)
        if node.type == "list":
            return self._list(node.children, folders)
        if node.type == "function_definition":
            return self._function(node, folders)
        if node.type in _LOOPS and self.scope.moves(node):
            folders = either(folders, (None,))
        after = self._loop(node, folders) if node.type == "for_statement" else None
        after = after or self._sequence(node.children, folders)
        return After(either(folders, after.any), either(folders, after.any))

    def _sequence(self, nodes: Iterable[Node], folders: Folders) -> After:
        after = After(folders, folders)
        for node in nodes:
            if node.type == "&":  # what stands before it ran in a process of its own
                self.scope.forget()
                after = After(folders, folders)
            elif node.children:
                after = self.visit(node, after.any)
        return after

    def _process(self, node: Node, folders: Folders) -> After:
        if node.text.startswith("`") and "\\" in node.text:
            raise NotParsed("a backslash stands between backticks, where it is read twice")
        via, upstream = self.via, self.upstream
        self.via = (*via, node.type.removeprefix("command_").removeprefix("process_"))
        self.upstream = upstream if node.type == "subshell" else ()
        self._sequence(node.children, folders)
        self.via, self.upstream = via, upstream
        return After(folders, folders)

    def _pipeline(self, node: Node, folders: Folders, before: tuple[ShellCommand, ...]) -> After:
        via, upstream = self.via, self.upstream
        self.via, self.upstream = (*via, "pipe"), before
        for child in node.children:
            begun = len(self.commands)
            if child.children:
                self.visit(child, folders)
                self.upstream += tuple(self.commands[begun:])
        self.via, self.upstream = via, upstream
        return After(folders, folders)

    def _list(self, nodes: Sequence[Node], folders: Folders) -> After:
        """`A && B`, `A || B`: B runs where A leaves it, if it went well or ill."""
        left, operator, right = nodes[0], nodes[1], nodes[-1]
        after = self.visit(left, folders)
        if operator.type == "&&":
            then = self.visit(right, after.good)
            return After(then.good, either(after.any, then.any))
        then = self.visit(right, after.any)
        if _LEAVING.fullmatch(right.text) and not self.scope.functions:
            return After(after.good, after.good)
        return After(either(after.good, then.good), either(after.any, then.any))

    def _function(self, node: Node, folders: Folders) -> After:
        names = node.labelled("name")
        name = names[0].text if names else ""
        self._emit(
            ShellCommand("function", "function", (literal(name),), source=node.text, via=self.via),
            folders,
        )
        inside: Folders = (None,) if self.scope.any_move else folders
        via, self.via = self.via, (*self.via, f"function {name}")
        self._sequence([child for child in node.children if child.label == "body"], inside)
        self.via = via
        self._emit_redirects(node.labelled("redirect"), folders, node)
        return After(folders, folders)

    def _loop(self, node: Node, folders: Folders) -> After:
        name = next((c.text for c in node.children if c.type == "variable_name"), "")
        values = words_of(node.labelled("value"), self.scope.values)
        self._emit(ShellCommand("for", "for", values, source=node.text, via=self.via), folders)
        for child in node.labelled("value"):
            self._sequence([child], folders)
        body = [child for child in node.children if child.label == "body"]
        if not any(name in self.scope.assigned(child) for child in body):
            self.scope.set_loop(name, any_of(values))
        return self._sequence(body, folders)

    def _assigned(self, node: Node, folders: Folders) -> After:
        """`NAME=value` by itself."""
        name, word = self._assignment(node)
        command = ShellCommand("", "", (), (), ((name, word),), node.text, self.via)
        self._emit(command, folders)
        self._sequence(node.children, folders)
        self.scope.assign(name, word, plain=node.text.startswith(f"{name}="))
        return After(folders, folders)

    def _assignment(self, node: Node) -> tuple[str, Word]:
        name, value = node.labelled("name"), node.labelled("value")
        if not re.match(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", node.text, re.ASCII):
            raise NotParsed(f"{node.text[:40]!r} is no assignment")
        word = word_of(value[0], self.scope.values) if value else literal("")
        return (name[0].text if name else node.text.split("=", 1)[0]), word

    def _redirected(self, node: Node, folders: Folders) -> After:
        """A statement with redirections: they belong to its last command, or to all of it."""
        redirects = [child for child in node.children if child.label == "redirect"]
        body = next((child for child in node.children if child.label == "body"), None)
        last = body
        while last and last.type in ("pipeline", "list", "negated_command"):
            last = next((c for c in reversed(last.children) if c.named), None)
        if last is not None and last.type in _COMMANDS:
            self.given[id(last)] = redirects
        else:
            self._emit_redirects(redirects, folders, node)
        begun = len(self.commands)
        after = self.visit(body, folders) if body else After(folders, folders)
        before = tuple(self.commands[begun:])
        for redirect in redirects:
            after = self._behind_document(redirect, before, after)
        return after

    def _behind_document(
        self, redirect: Node, before: tuple[ShellCommand, ...], after: After
    ) -> After:
        """`cat <<EOF | sh` and `cat <<EOF && ls`: the grammar puts them into the redirection."""
        for child in redirect.children:
            if child.type == "pipeline":
                self._pipeline(child, after.any, before)
            elif child.label == "right":
                after = After(after.any, either(after.any, self.visit(child, after.any).any))
            elif child.children and child.label not in ("redirect", "argument"):
                self._sequence([child], after.any)
        return after

    def _emit_redirects(self, nodes: list[Node], folders: Folders, whole: Node) -> None:
        if not nodes:
            return
        found, words = redirections(nodes, self.scope.values)
        if words:
            raise NotParsed("words stand behind a redirection that belongs to no command")
        self._emit(ShellCommand("", "", (), found, source=whole.text, via=self.via), folders)
        for node in nodes:
            self._inside(node, folders)

    def _command(self, node: Node, folders: Folders) -> After:
        values = self.scope.values
        redirects = [child for child in node.children if child.type in REDIRECTS]
        redirects += self.given.pop(id(node), [])
        assigned = [child for child in node.children if child.type == "variable_assignment"]
        declares = node.type == "declaration_command"
        rest = [
            child
            for child in node.children
            if child.type not in REDIRECTS and (declares or child.type != "variable_assignment")
        ]
        found, more = redirections(redirects, values)
        if node.type == "test_command" and not re.match(r"\[\[?\s|\(\(", node.text):
            raise NotParsed("a test begins without a blank")
        words = (literal("["),) if node.type == "test_command" else words_of(rest, values)
        pairs = tuple(self._assignment(child) for child in assigned)
        for child in [*assigned, *rest, *redirects]:
            self._inside(child, folders)
        after = self._run((*words, *more), found, pairs, node.text, folders)
        self.scope.after_command(words, pairs, declares=declares)
        return after

    def _inside(self, node: Node, folders: Folders) -> None:
        """Take in the substitutions inside a word."""
        if node.type in ("command_substitution", "process_substitution"):
            self.visit(node, folders)
            return
        behind = node.type == "heredoc_redirect"  # holds what follows the document, read elsewhere
        for child in node.children:
            if not behind or (child.type != "pipeline" and child.label != "right"):
                self._inside(child, folders)

    def _run(
        self,
        words: tuple[Word, ...],
        found: tuple[Redirection, ...],
        pairs: tuple[tuple[str, Word], ...],
        source: str,
        folders: Folders,
        fetched: frozenset[str] = frozenset(),
    ) -> After:
        """Take in one command by its words, and what it runs in turn."""
        if words and words[0].source in _KEYWORDS:
            raise NotParsed(f"the word {words[0].source!r} of the shell stands in an odd place")
        program = words[0].one if words else ""
        if program is not None and "=" in program:  # an assignment, to the shell
            program = None
        name = program.rsplit("/", 1)[-1] if program else program
        command = ShellCommand(
            name or (None if words else ""),
            words[0].source if words else "",
            words[1:],
            found,
            pairs,
            source,
            self.via,
            self.upstream,
            folders,
            fetched | (words[0].runs if words else frozenset[str]()),
        )
        return self._emit(command, folders)

    def _emit(self, command: ShellCommand, folders: Folders) -> After:
        if len(self.commands) >= MOST_COMMANDS:
            raise NotParsed(f"the text has more than {MOST_COMMANDS} commands")
        unread = self._unread(command) if command.program in SHELLS else ()
        self.commands.append(replace(command, folders=folders, reads_commands=unread is None))
        after = After(folders, folders)
        if command.program in ("cd", "pushd", "popd", "chdir"):
            back = command.program == "popd"
            after = After((None,), (None,)) if back else change_folder(command.words, folders)
        for inner in (*inner_commands(command.program or "", command.words), *(unread or ())):
            found = self._inner(inner, command, folders)
            after = found if command.program in _TRANSPARENT else after
        return after

    def _unread(self, command: ShellCommand) -> tuple[Inner, ...] | None:
        """The commands that a shell reads from its input; None where they are not known."""
        if not reads_input(command.program or "", command.words):
            return ()
        bodies = [found.body for found in command.redirections if found.body is not None]
        if bodies:
            return tuple(Inner("input", text=body.one, fetched=body.runs) for body in bodies)
        speaker = self.upstream[-1] if self.upstream else None
        if speaker is None or speaker.program not in ("echo", "printf", "cat"):
            return None
        if speaker.program == "cat":
            bodies = [found.body for found in speaker.redirections if found.body is not None]
            return tuple(Inner("input", text=b.one) for b in bodies) if bodies else None
        words = [w for w in speaker.words if w.one is None or not re.match(r"-[neE]+$", w.one)]
        if any(w.one is None or "\\" in w.one or "%" in w.one for w in words):
            return None
        return (Inner("input", text=" ".join(w.one or "" for w in words)),)

    def _inner(self, inner: Inner, command: ShellCommand, folders: Folders) -> After:
        via, self.via = self.via, (*self.via, inner.how)
        try:
            if _pastes(inner, command):
                inner = Inner(inner.how)
            if inner.words:
                listed = bool(self.upstream) and all(map(lists_paths, self.upstream))
                words = more_arguments(inner, upstream_inside=listed)
                return self._run(
                    words, command.redirections, (), command.source, folders, inner.fetched
                )
            if inner.text is not None and inner.words is None:
                return self.read(inner.text, folders)
            unknown = ShellCommand(
                None,
                command.source,
                (),
                (),
                (),
                command.source,
                self.via,
                self.upstream,
                folders,
                inner.fetched,
            )
            self.commands.append(unknown)
            return After(folders, folders)
        finally:
            self.via = via


def _pastes(inner: Inner, command: ShellCommand) -> bool:
    """Whether what `xargs` reads becomes part of the text that a shell runs."""
    program = inner.words[0].one if inner.words else None
    replaces = any(word.known.startswith(("-I", "-i", "--replace")) for word in command.words)
    return inner.how == "xargs" and replaces and (program or "").rsplit("/", 1)[-1] in SHELLS
