"""What the words of a shell text come to: their values, as far as the text alone tells.

Called by `shell_parse`. A value is None where only the run can tell; nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from callboard_mixins.tool_guard.shell_tree import Node, NotParsed

_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "0": "\0"}
_EXPANSIONS = frozenset({"simple_expansion", "expansion"})
_PATTERN_SIGNS = re.compile(r"[*?\[]")
_EXPANDS = re.compile(r"`|\$[({\w@*#?!$-]")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    - `source`: as it was written. `value`: what the shell makes of it, None if it depends.
    - `known`: the part of the value before the first thing that depends, or all of it.
    - `pattern`: an unquoted `*`, `?`, `[` or brace makes many words of it; `value` is the pattern.
    - `obscured`: letters are written as numbers (`$'\\x41'`), which hides what the word says.
    - `runs`: the programs in its substitutions, whose output becomes part of it.
    """

    source: str
    value: str | None
    known: str = ""
    pattern: bool = False
    obscured: bool = False
    runs: frozenset[str] = frozenset()

    @property
    def one(self) -> str | None:
        """The value, if it is certain and a single word."""
        return None if self.pattern else self.value


Variables = dict[str, Word]  # those whose value the text itself settles


def literal(value: str) -> Word:
    """A word that is just this value."""
    return Word(value, value, value)


def dynamic(source: str, runs: frozenset[str] = frozenset()) -> Word:
    """A word whose value only the run can tell."""
    return Word(source, None, runs=runs)


def joined(parts: list[Word], source: str) -> Word:
    """Parts that stand without a gap, as one word."""
    if len(parts) == 1:
        return replace(parts[0], source=source)
    parts = [_placed(part, parts[:at], parts[at + 1 :]) for at, part in enumerate(parts)]
    values = [part.value for part in parts]
    known = ""
    for part in parts:
        known += part.known
        if part.value is None:
            break
    return Word(
        source,
        None if None in values else "".join(value or "" for value in values),
        known,
        any(part.pattern for part in parts),
        any(part.obscured for part in parts),
        frozenset[str]().union(*(part.runs for part in parts)),
    )


def _placed(part: Word, before: list[Word], after: list[Word]) -> Word:
    """A folder variable is known only where a path begins and goes on with a slash."""
    if part.source not in ("$HOME", "${HOME}", "$PWD", "${PWD}"):
        return part
    ends = before[-1].known[-1:] if before and before[-1].value is not None else ""
    begins = after[0].source[:1] if after else "/"
    return (
        part if (not before or ends in ("=", ":", "@")) and begins == "/" else dynamic(part.source)
    )


def words_of(nodes: list[Node], variables: Variables) -> tuple[Word, ...]:
    """The words that nodes stand for; those that touch each other are one word."""
    groups: list[list[Node]] = []
    for node in nodes:
        if groups and groups[-1][-1].end == node.start:
            groups[-1].append(node)
        else:
            groups.append([node])
    return tuple(_grouped(group, variables) for group in groups)


def word_of(node: Node, variables: Variables) -> Word:
    """The word that one node stands for."""
    return _grouped([node], variables)


def _grouped(nodes: list[Node], variables: Variables) -> Word:
    source = nodes[0].source[nodes[0].start : nodes[-1].end].decode()
    parts = [_part(node, variables) for node in nodes]
    word = joined(parts, source)
    if word.pattern or word.value is None or not _unquoted_braces(nodes):
        return word
    return replace(word, pattern=True, known=word.value.split("{", 1)[0])


def _unquoted_braces(nodes: list[Node]) -> bool:
    text = "".join(_bare(node) for node in nodes)
    return _BRACES.search(text) is not None


def _bare(node: Node) -> str:
    """The text of a node, without what is quoted in it."""
    if node.type in ("concatenation", "command_name") and node.children:
        return "".join(_bare(child) for child in node.children)
    return node.text if node.type in ("word", "brace_expression", "command_name") else "_"


def _part(node: Node, variables: Variables) -> Word:
    kind, text = node.type, node.text
    if kind in ("word", "number", "command_name", "variable_name", "test_operator"):
        return _plain(node, variables)
    if kind == "raw_string":
        return replace(literal(text[1:-1]), source=text)
    if kind == "ansi_c_string":
        return _ansi_c(text)
    if kind in ("string", "translated_string"):
        return _quoted(node, variables)
    if kind == "concatenation":
        return _filled(node, variables, gaps_allowed=False)
    if kind in _EXPANSIONS:
        return _split(_variable(node, variables))
    if kind == "command_substitution":
        return _substitution(node, variables)
    if kind == "process_substitution":
        return replace(literal("/dev/fd/63"), source=text, runs=_runs(node))
    if kind == "arithmetic_expansion":  # some number
        return dynamic(text) if _runs(node) else Word(text, "0", pattern=True)
    if kind == "brace_expression":
        return Word(text, text, "", pattern=True)
    if not node.named and text.isalpha():  # `export`, `unset` and their like
        return literal(text)
    return dynamic(text, _runs(node))


def _plain(node: Node, variables: Variables) -> Word:
    if node.children:
        return _filled(node, variables, gaps_allowed=False)
    text = node.text
    _check_plain(text)
    if re.search(r"[\s;|&<>()]", re.sub(r"\\.", "", text, flags=re.DOTALL)):
        raise NotParsed("a sign of the shell stands where the grammar sees a word")
    if "\\" not in text and not _PATTERN_SIGNS.search(text):
        return Word(text, text, text)
    value = re.sub(r"\\(\n|.)", lambda found: found[1].strip("\n"), text, flags=re.DOTALL)
    signs = _PATTERN_SIGNS.search(re.sub(r"\\.", "__", text, flags=re.DOTALL))
    known = value
    if signs is not None:
        known = _PATTERN_SIGNS.split(value, maxsplit=1)[0]
    return Word(text, value, known, pattern=signs is not None)


def _quoted(node: Node, variables: Variables) -> Word:
    """A string in double quotes: what stands between its parts belongs to it."""
    inner = Node(node.type, node.source, node.start, node.end, named=True)
    inner.children = [child for child in node.children if child.type not in ('"', '$"')]
    opening = 2 if node.text.startswith('$"') else 1
    inner.start, inner.end = node.start + opening, node.end - 1
    return replace(_filled(inner, variables, gaps_allowed=True), source=node.text)


def _filled(node: Node, variables: Variables, *, gaps_allowed: bool) -> Word:
    """The parts of a node and the text between them."""
    parts: list[Word] = []
    at = node.start
    for child in node.children:
        if child.start > at:
            parts.append(_gap(node, at, child.start, allowed=gaps_allowed))
        if child.type in ("string_content", "heredoc_content"):
            parts.append(_string_text(child.text))
        elif gaps_allowed and child.type in _EXPANSIONS:
            parts.append(_variable(child, variables))
        else:
            parts.append(_part(child, variables))
        at = child.end
    if at < node.end:
        parts.append(_gap(node, at, node.end, allowed=gaps_allowed))
    return joined(parts, node.text) if parts else literal("")


def _gap(node: Node, start: int, end: int, *, allowed: bool) -> Word:
    text = node.source[start:end].decode()
    return _string_text(text) if allowed else dynamic(text)


def _check_plain(text: str) -> None:
    """Raise NotParsed where the grammar took an expansion for plain text."""
    if _EXPANDS.search(re.sub(r"\\.", "", text, flags=re.DOTALL)):
        raise NotParsed("an expansion stands where the grammar sees plain text")


def _string_text(text: str) -> Word:
    """Text in double quotes, where a backslash only quotes these few."""
    _check_plain(text)
    value = re.sub(r'\\([$`"\\\n])', lambda found: found[1].strip("\n"), text)
    return Word(text, value, value)


def _ansi_c(text: str) -> Word:
    escapes = re.findall(r"\\(.)", text[2:-1], flags=re.DOTALL)
    if not set(escapes) <= _PLAIN_ESCAPES.keys() or re.search(r"\\0[0-7]", text):
        return Word(text, None, obscured=True)
    value = re.sub(r"\\(.)", lambda found: _PLAIN_ESCAPES[found[1]], text[2:-1], flags=re.DOTALL)
    return Word(text, value, value)


def _variable(node: Node, variables: Variables) -> Word:
    """`$NAME` and `${NAME}`; every other form of expansion depends on the run."""
    text = node.text
    found = re.fullmatch(r"\$(?:\{(\w+)\}|(\w+))", text)
    name = (found[1] or found[2]) if found else ""
    if name in variables:
        return replace(variables[name], source=text)
    return dynamic(text, _runs(node))


def _split(word: Word) -> Word:
    """What an expansion outside quotes comes to: one with blanks falls into several words."""
    if word.value is None or word.pattern:
        return word
    if word.value == "" or re.search(r"\s", word.value):
        return dynamic(word.source, word.runs)
    return replace(word, pattern=_PATTERN_SIGNS.search(word.value) is not None)


def _substitution(node: Node, variables: Variables) -> Word:
    """`$(...)`: its value is known for a few harmless programs."""
    text = node.text
    runs = _runs(node)
    inner = [child for child in node.children if child.named and child.type != "comment"]
    if len(inner) != 1:
        return dynamic(text, runs)
    if inner[0].type == "redirected_statement":
        return _here_text(inner[0], variables) or dynamic(text, runs)
    words = words_of(inner[0].children, variables) if inner[0].type == "command" else ()
    values = [word.one for word in words]
    if values == ["pwd"]:
        return Word(text, ".", ".", runs=runs)
    if values == ["nproc"]:
        return Word(text, "4", "4", runs=runs)
    if values[:2] == ["git", "ls-files"] and all(_inside(word) for word in words[2:]):
        return Word(text, "./*", "./", pattern=True, runs=runs)
    return dynamic(text, runs)


def _inside(word: Word) -> bool:
    return word.value is not None and not word.value.startswith(("/", "~", "..", "-"))


def _here_text(node: Node, variables: Variables) -> Word | None:
    """`$(cat <<'EOF' ...)`: the text of the here-document, as commit messages are given."""
    body, redirect = (*node.children, None, None)[:2]
    if body is None or redirect is None or len(node.children) != 2 or body.text != "cat":
        return None
    named = [child.type for child in redirect.children if child.named]
    if redirect.type != "heredoc_redirect" or named[:1] != ["heredoc_start"]:
        return None
    if set(named) - {"heredoc_start", "heredoc_body", "heredoc_end"}:
        return None
    return here_document(redirect, variables)


def here_document(redirect: Node, variables: Variables) -> Word:
    """The text that a here-document hands over."""
    start, body = redirect.first("heredoc_start"), redirect.first("heredoc_body")
    if start is None or body is None:
        return literal("")
    if start.text[:1] in "'\"\\":
        return replace(literal(body.text), source=redirect.text)
    if "`" in body.text:
        return dynamic(redirect.text)
    return replace(_filled(body, variables, gaps_allowed=True), source=redirect.text)


def _runs(node: Node) -> frozenset[str]:
    """The names of the programs anywhere below a node, as they are written."""
    names = (found.text for found in node.below() if found.type == "command_name")
    return frozenset(name.rsplit("/", 1)[-1].strip("\\'\"") for name in names)
