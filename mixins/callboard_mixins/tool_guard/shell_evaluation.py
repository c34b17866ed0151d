"""Places where a shell runs what a variable holds: arithmetic, indirect names, prompts.

`$((x))` evaluates the value of x, and an index in it may be a substitution: with
`x='a[$(id)]'` it runs `id`. Called by `shell_walk` for each text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from callboard_mixins.tool_guard.shell_tree import Node, NotParsed

_QUOTED = frozenset("raw_string comment ansi_c_string heredoc_body heredoc_content".split())
_HIDDEN = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\(|[<>]\()")
_PROMPT = re.compile(r"@P\s*\}$")
_INDIRECT = re.compile(r"\$\{!(\w+)\}?(?![\w]*[*@]|\[[*@]\])")
_NUMBER = re.compile(r"['\"]?[-+]?\d*['\"]?|\$[#?$!]|\$\{#[\w@*\[\]]+\}|\{-?\d+\.\.-?\d+[.\d-]*\}")
_COUNTERS = frozenset("wc date nproc expr seq bc stat id pgrep getconf tput".split())
_READERS = frozenset("read mapfile readarray getopts select".split())
_BY_NAME = frozenset("unset printf declare typeset local read test [ [[ wait".split())
_NAMES = re.compile(r"[A-Za-z_]\w*|\$\{?[\d@*]")
_AT_NAME = re.compile(r"\"?\$\{?(\w+)")
_COMPARES = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge)\s")


def check_evaluation(root: Node) -> None:
    """Refuse a text that may run what a variable holds, other than numbers.

    Raises NotParsed.
    """
    nodes = list(root.below())
    for node in nodes:
        plain = node.named and not node.children and node.type not in _QUOTED
        if plain and _HIDDEN.search(node.text):
            raise NotParsed("an expansion stands where the grammar sees plain text")
    if any(node.type == "expansion" and _PROMPT.search(node.text) for node in nodes):
        raise NotParsed("an expansion as a prompt (`@P`) runs what a variable holds")
    evaluated = {name for node in nodes for name in _evaluated(node)}
    if not evaluated:
        return
    held = {name for node in nodes for name in _filled(node)}
    risky = sorted(evaluated & held) or sorted(name for name in evaluated if name[0] == "$")
    if risky:
        raise NotParsed(f"the shell would evaluate what the variable {risky[0]!r} holds")


def _evaluated(node: Node) -> Iterator[str]:
    """The variables whose values the shell takes for code at a node."""
    kind, text = node.type, _own_text(node)
    sums = kind in ("arithmetic_expansion", "c_style_for_statement")
    if sums or (kind == "compound_statement" and text.startswith("((")):
        yield from _NAMES.findall(text)
    elif kind == "subscript":
        yield from _NAMES.findall(text.partition("[")[2])
    elif kind == "test_command":
        if text.startswith("((") or _COMPARES.search(text):
            yield from _NAMES.findall(text)
        if re.search(r"\s-v\s", text):
            yield from _AT_NAME.findall(text)
    elif kind == "expansion":
        yield from _INDIRECT.findall(text)
        offset = re.match(r"\$\{\w+:(?![-+=?])(.*)\}$", text, re.DOTALL)
        yield from _NAMES.findall(offset[1]) if offset else ()
    elif kind in ("command", "declaration_command", "unset_command"):
        yield from _named(node)


def _own_text(node: Node) -> str:
    """The text of a node without the commands inside it."""
    inner = [child for child in node.children if child.children or child.type == "command"]
    if node.type in ("command_substitution", "do_group"):
        return "_"
    if not inner:
        return node.text
    text, at = "", node.start
    for child in inner:
        text += node.source[at : child.start].decode() + _own_text(child)
        at = child.end
    return text + node.source[at : node.end].decode()


def _named(node: Node) -> Iterator[str]:
    """The variables that hold the name of a variable, or a number, for a command."""
    first, *rest = [child.text for child in node.children] or [""]
    if first == "let" or (first in ("declare", "typeset", "local") and _has(rest, "i")):
        yield from (name for text in rest for name in _NAMES.findall(text))
    elif first in ("test", "[", "printf") and "-v" not in rest:
        return
    elif first in _BY_NAME:
        for text in rest:
            yield from (found[1] for found in [_AT_NAME.match(text)] if found)


def _has(words: list[str], letter: str) -> bool:
    return any(re.match(rf"[-+][a-zA-Z]*{letter}", word) for word in words)


def _filled(node: Node) -> Iterator[str]:
    """The variables that a node gives a value that may be more than a number."""
    if node.type == "variable_assignment" and node.label != "initializer":
        values = node.labelled("value")
        if values and not _is_number(values[0]):
            yield node.text.split("=", 1)[0].rstrip("+").split("[", 1)[0]
    elif node.type == "for_statement":
        if not all(_is_number(value) for value in node.labelled("value")):
            yield from (child.text for child in node.children if child.type == "variable_name")
    elif node.type == "command":
        first, *rest = [child.text for child in node.children] or [""]
        if first in _READERS or (first == "printf" and "-v" in rest):
            yield from (name for text in rest for name in re.findall(r"[A-Za-z_]\w*", text))
        if first in _READERS:
            yield from ("REPLY", "MAPFILE")


def _is_number(value: Node) -> bool:
    if value.type == "arithmetic_expansion" or _NUMBER.fullmatch(value.text):
        return True
    runs = [found.text for found in value.below() if found.type == "command_name"]
    counts = runs and (set(runs) <= _COUNTERS or runs[-1] == "wc" or "grep -c" in value.text)
    return value.type == "command_substitution" and bool(counts)
