"""What a program printed, in bounded memory: its beginning and its end. Used by `processes.py`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """The bytes of one stream; `left_out_bytes` were dropped between `head` and `tail`."""

    head: bytes = b""
    tail: bytes = b""
    left_out_bytes: int = 0

    @property
    def text(self) -> str:
        """As UTF-8, with what is none replaced, and a line where bytes were left out."""
        if not self.left_out_bytes:
            return (self.head + self.tail).decode("utf-8", "replace")
        head = self.head.decode("utf-8", "replace").rstrip("\ufffd")  # a character cut in two
        tail = self.tail.decode("utf-8", "replace").lstrip("\ufffd")
        return f"{head}\n[... {self.left_out_bytes} bytes left out ...]\n{tail}"


class OutputKeeper:
    """Takes bytes as they come and keeps at most `size_bytes`: the first half and the last."""

    def __init__(self, size_bytes: int) -> None:
        self._head_bytes = (size_bytes + 1) // 2
        self._tail_bytes = size_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out_bytes = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes. Memory stays below three times `size_bytes` and one piece."""
        room = self._head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_bytes:
            self._trim()

    def output(self) -> Output:
        """What is kept so far."""
        self._trim()
        return Output(bytes(self._head), bytes(self._tail), self._left_out_bytes)

    def _trim(self) -> None:
        surplus = max(len(self._tail) - self._tail_bytes, 0)
        del self._tail[:surplus]
        self._left_out_bytes += surplus
