"""The syntax tree of a shell text, as plain objects of bounded size. Called by `shell_parse`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from callboard.errors import MissingExtra

MOST_BYTES = 65_536
MOST_NODES = 20_000
MOST_DEPTH = 60
MOST_JOINTS = 1_000  # of "|", "=(" and "<<" together: the parser's time grows with their square
MOST_EFFORT = 2_000  # looks of the parser at its progress
MOST_PIECES = 6_000  # of the text: plain texts take ten, documents of 64 KiB take 2,500


_BLANK = re.compile(rb"(?:\s|\\\n)*")
_WITH_GAPS = frozenset({"string", "translated_string", "heredoc_body"})


class NotParsed(ValueError):
    """The text is too long, too deep, or no shell text that the grammar knows."""


@dataclass(slots=True, eq=False)
class Node:
    """A node of the tree; `start` and `end` count bytes of `source`."""

    type: str
    source: bytes
    start: int
    end: int
    named: bool
    label: str | None = None  # what the node is to its parent, such as "argument"
    children: list[Node] = field(default_factory=list["Node"])

    @property
    def text(self) -> str:
        return self.source[self.start : self.end].decode()

    def below(self) -> Iterator[Node]:
        """This node and all below it, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.below()

    def labelled(self, label: str) -> list[Node]:
        return [child for child in self.children if child.label == label]

    def first(self, *types: str) -> Node | None:
        return next((child for child in self.children if child.type in types), None)


@functools.cache
def _parser() -> Any:
    """The parser, made once.

    Raises MissingExtra without tree-sitter.
    """
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as missing:
        raise MissingExtra(missing.name or "tree-sitter-bash", extra="guard") from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def require_parser() -> None:
    """Raises MissingExtra where the parser is not installed."""
    _parser()


def parse_tree(text: str) -> Node:
    """The tree of a text.

    Raises:
        NotParsed: the text is no bounded, wholly understood shell text.
        MissingExtra: tree-sitter is not installed.
    """
    source = text.encode()
    if len(source) > MOST_BYTES:
        raise NotParsed(f"the text has {len(source)} bytes, more than {MOST_BYTES}")
    if sum(source.count(joint) for joint in (b"|", b"=(", b"<<")) > MOST_JOINTS:
        raise NotParsed(f"the text has more than {MOST_JOINTS} pipes, lists and here-documents")
    tree = _parse(source)
    if tree.root_node.has_error:
        raise NotParsed("the text is not understood as a shell text")
    if tree.root_node.descendant_count > MOST_NODES:
        raise NotParsed(f"the text has more than {MOST_NODES} parts")
    root = _copy(tree, source)
    _check_covered(root)
    return root


def _check_covered(root: Node) -> None:
    """Make sure that every sign of the text stands in some node: the grammar drops a few."""
    for node in root.below():
        if not node.children or node.type in _WITH_GAPS:
            continue
        at = node.start
        for start, end in [*((c.start, c.end) for c in node.children), (node.end, node.end)]:
            if not _BLANK.fullmatch(node.source, at, start):
                raise NotParsed("a piece of the text is not understood")
            at = max(at, end)


def _parse(source: bytes) -> Any:
    looks = pieces = 0

    def weary(_offset: int, _error: bool) -> bool:  # noqa: FBT001 - the parser gives it so
        nonlocal looks
        looks += 1
        return looks > MOST_EFFORT or pieces > MOST_PIECES

    def piece(at: int, _point: object) -> bytes:
        nonlocal pieces
        pieces += 1
        return source[at : at + 4096]

    parser = _parser()
    try:
        return parser.parse(piece, progress_callback=weary)
    except ValueError:
        parser.reset()
        raise NotParsed("the text takes too long to understand") from None


def _copy(tree: Any, source: bytes) -> Node:
    """The tree in our own nodes, walked without recursion."""
    cursor = tree.walk()
    root = _node(cursor, source)
    above = [root]
    while True:
        if cursor.goto_first_child():
            if len(above) > MOST_DEPTH:
                raise NotParsed(f"the text is nested more than {MOST_DEPTH} deep")
            above.append(_attach(cursor, above[-1]))
            continue
        while not cursor.goto_next_sibling():
            above.pop()
            if not above or not cursor.goto_parent():
                return root
        above.pop()
        above.append(_attach(cursor, above[-1]))


def _attach(cursor: Any, parent: Node) -> Node:
    node = _node(cursor, parent.source)
    parent.children.append(node)
    return node


def _node(cursor: Any, source: bytes) -> Node:
    found = cursor.node
    if found.is_missing:
        raise NotParsed(f"{found.type!r} is missing in the text")
    return Node(
        found.type, source, found.start_byte, found.end_byte, found.is_named, cursor.field_name
    )
