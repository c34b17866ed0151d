"""Finds what patterns look for, in whole texts and in texts that are still being written.

Pure; used by `redactor.py` and `streaming.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from callboard_mixins.redaction.patterns import Pattern

# What stands for something hidden: "[EMAIL_1]", "[API_KEY hidden]", "[API_KEY 0f1e2d3c4b5a6978]".
TOKEN = re.compile(r"\[[A-Z]+(?:_[A-Z]+)*(?:_\d+| hidden| [0-9a-f]{16})\]")
_BLANK = re.compile(r"\s")


class Span(NamedTuple):
    """A part of a text that is to be hidden, and the pattern that says so."""

    start: int
    end: int
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class _Searcher:
    pattern: Pattern
    regex: re.Pattern[str]
    lead: re.Pattern[str] | None
    hidden: bool

    def spans(self, text: str) -> Iterator[Span]:
        at = 0
        while (found := self.regex.search(text, at)) is not None:
            start, end = found.span("hidden") if self.hidden else found.span()
            part = self.pattern.within(text[start:end])
            if part is not None:
                yield Span(start + part[0], start + part[1], self.pattern)
                at = start + max(part[1], 1)
            else:
                at = max(found.end(), at + 1)


class _Group(NamedTuple):
    """The searchers that the same hints go before."""

    hints: tuple[str, ...]
    shortest: int
    searchers: tuple[_Searcher, ...]


class Finder:
    """Looks for several patterns at once. Where two overlap, the whole of both is found."""

    __slots__ = ("_groups", "_reach", "_searchers", "_shortest")

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._searchers = tuple([_searcher(pattern) for pattern in patterns])
        self._groups = _grouped(self._searchers)
        self._shortest = min([group.shortest for group in self._groups], default=1)
        self._reach = max([p.reach for p in patterns if p.lead is None], default=0)

    def spans(self, text: str) -> list[Span]:
        """What is to be hidden, in order and apart. What hides something already is left alone."""
        found: list[Span] = []
        size = len(text)
        if size < self._shortest:
            return found
        small = text.lower()
        for hints, shortest, searchers in self._groups:
            if size >= shortest and (not hints or _one_is_in(hints, small)):
                for searcher in searchers:
                    if size >= searcher.pattern.shortest:
                        found.extend(searcher.spans(text))
        if not found:
            return found
        found = [span for span in found if TOKEN.search(text, span.start, span.end) is None]
        return _merged(sorted(found, key=lambda span: (span.start, -span.end)))

    def open_from(self, text: str) -> int:
        """Where the end of the text begins that may become part of a match, as it goes on."""
        word = len(text)
        while word and not _BLANK.match(text, word - 1):
            word -= 1
        opened = min(word, max(len(text) - self._reach, 0))
        for searcher in self._searchers:
            if searcher.lead is not None and (found := searcher.lead.search(text)) is not None:
                opened = min(opened, found.start())
        return opened


def _one_is_in(hints: tuple[str, ...], text: str) -> bool:
    for hint in hints:  # any() over a generator takes four times as long
        if hint in text:
            return True
    return False


def _searcher(pattern: Pattern) -> _Searcher:
    regex = re.compile(pattern.regex)
    lead = None if pattern.lead is None else re.compile(pattern.lead)
    return _Searcher(pattern, regex, lead, "hidden" in regex.groupindex)


def _grouped(searchers: Sequence[_Searcher]) -> tuple[_Group, ...]:
    by_hints: dict[tuple[str, ...], list[_Searcher]] = {}
    for searcher in searchers:
        by_hints.setdefault(searcher.pattern.hints, []).append(searcher)
    return tuple(
        [
            _Group(hints, min([one.pattern.shortest for one in group]), tuple(group))
            for hints, group in by_hints.items()
        ]
    )


def _merged(spans: Sequence[Span]) -> list[Span]:
    apart: list[Span] = []
    for span in spans:
        if apart and span.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = last._replace(end=max(last.end, span.end))
        else:
            apart.append(span)
    return apart
