"""Text in files: its encoding, its lines, and reading it so that it can be written back."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from callboard.workspace import Workspace

LONGEST_LINE = 2_000  # characters that are shown of it
LARGEST_TEXT_BYTES = 2_000_000  # larger files are not edited, and not searched
_MARKS = (  # of the byte order, which also tell the encoding
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class Text:
    """A whole text file. `mark` is its byte order mark, `state` the file that was read."""

    text: str
    encoding: str
    mark: bytes
    state: os.stat_result

    def encoded(self, text: str) -> bytes:
        """Another text in the form of this one."""
        return self.mark + text.encode(self.encoding)


def read_text(workspace: Workspace, path: str) -> Text:
    """The text of a file, every character of it.

    Raises:
        ValueError: it is too large to be edited, or no text in UTF-8 or, with a mark, UTF-16.
    """
    with workspace.open(path) as file:
        state = os.fstat(file.fileno())
        content = file.read(LARGEST_TEXT_BYTES + 1)
    if len(content) > LARGEST_TEXT_BYTES:
        raise ValueError(f"{path!r} has over {LARGEST_TEXT_BYTES} bytes: too many to edit")
    mark, encoding = encoding_of(content)
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        where = f"byte {error.start + len(mark)}"
        raise ValueError(f"{path!r} is not text in UTF-8 ({where}), so it is not edited") from None
    if "\0" in text:
        raise ValueError(f"{path!r} is not text, so it is not edited")
    return Text(text, encoding, mark, state)


def encoding_of(beginning: bytes) -> tuple[bytes, str]:
    """The byte order mark that a file begins with, if any, and the encoding of the rest."""
    for mark, encoding in _MARKS:
        if beginning.startswith(mark):
            return mark, encoding
    return b"", "utf-8"


def lines_of(file: BinaryIO) -> Iterator[str]:
    """The lines of a text file, without their ends, each cut where it is very long.

    Bytes that are no text are replaced. Closes the file at its end.

    Raises:
        ValueError: the file is not text.
    """
    mark, encoding = encoding_of(file.read(4))
    file.seek(len(mark))
    with io.TextIOWrapper(file, encoding, errors="replace", newline="\n") as text:
        while line := text.readline(LONGEST_LINE + 2):
            if "\0" in line:
                raise ValueError("the file is not text")
            yield _shown(line, text)


def _shown(line: str, text: io.TextIOWrapper) -> str:
    """A line without its end; the rest of a long one is read and counted."""
    dropped, piece = 0, line
    while piece and not piece.endswith("\n"):
        piece = text.readline(65_536)
        dropped += len(piece.rstrip("\r\n"))
    line = line.rstrip("\r\n")
    surplus = max(len(line) - LONGEST_LINE, 0) + dropped
    return f"{line[:LONGEST_LINE]} (... {surplus} more characters)" if surplus else line
