"""Redirections and here-documents of a shell text. Called by `shell_walk`."""

from __future__ import annotations

import re

from callboard_mixins.tool_guard.shell_script import Redirection
from callboard_mixins.tool_guard.shell_tree import Node, NotParsed
from callboard_mixins.tool_guard.shell_words import Variables, Word, here_document, word_of

REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_DELIMITER = re.compile(r"'[\w.-]+'|\"[\w.-]+\"|\\?[\w.-]+")


def redirections(
    nodes: list[Node], variables: Variables
) -> tuple[tuple[Redirection, ...], tuple[Word, ...]]:
    """What the nodes redirect, and the words of the command that stand between them.

    Raises NotParsed for a here-document that the shell might end elsewhere.
    """
    found: list[Redirection] = []
    words: list[Word] = []
    for node in nodes:
        if node.type == "file_redirect":
            targets = [word_of(n, variables) for n in node.labelled("destination")]
            found.append(Redirection(_operator(node), targets[0] if targets else None))
            words += targets[1:]
        elif node.type == "herestring_redirect":
            inner = [child for child in node.children if child.named and child.label is None]
            body = word_of(inner[-1], variables) if inner else None
            found.append(Redirection("<<<", body=body))
        elif node.type == "heredoc_redirect":
            _check_end(node)
            if _hides_code(node):
                raise NotParsed("a here-document runs a command between backticks")
            found.append(Redirection("<<", body=here_document(node, variables)))
            words += [word_of(child, variables) for child in node.labelled("argument")]
            inner_found, inner_words = redirections(node.labelled("redirect"), variables)
            found += inner_found
            words += inner_words
    return tuple(found), tuple(words)


def _hides_code(node: Node) -> bool:
    """Whether backticks in a document run something; the grammar does not look into them."""
    start, body = node.first("heredoc_start"), node.first("heredoc_body")
    quoted = start is not None and start.text[:1] in ("'", '"', "\\")
    return body is not None and not quoted and "`" in body.text


def _operator(node: Node) -> str:
    return "".join(child.text for child in node.children if not child.named)


def _check_end(node: Node) -> None:
    """Make sure that the shell ends the document where the grammar does."""
    start, body, end = (node.first(f"heredoc_{part}") for part in ("start", "body", "end"))
    if start is None or end is None or not _DELIMITER.fullmatch(start.text):
        raise NotParsed("a here-document has no plain end")
    delimiter = start.text.strip("'\"\\")
    tabs = "\t" if node.text.startswith("<<-") else ""
    lines = body.text.split("\n") if body else []
    begins = node.source.find(b"\n", start.end) + 1
    first = body if body is not None and body.end > body.start else end
    if first.start - begins not in range(len(tabs) + 1) and first.text.strip():
        raise NotParsed("a here-document does not begin behind its line")
    if end.text.strip() != delimiter or any(line.lstrip(tabs) == delimiter for line in lines):
        raise NotParsed(f"a here-document does not end at its {delimiter!r}")
    if start.text == delimiter and body and any(line.endswith("\\") for line in lines):
        raise NotParsed("a here-document continues a line, which may hide its end")
