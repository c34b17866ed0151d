"""A real HTTP server on the loopback that answers with recorded bytes.

For tests of adapters, and of applications that want to know how they take a bad provider.
It speaks as much HTTP/1.1 as a client of a model needs, and fails in every way that one must
survive: hanging, dropping a connection in an answer, closing one that it promised to keep.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from callboard.json_text import EMPTY


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server does with one request.

    `then` is what follows the body: "keep" the connection, "hush" (close it without having said
    so, once the answer is complete), "drop" it before the end, or "hang" until the server stops.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "text/event-stream"
    headers: Mapping[str, str] = EMPTY
    then: str = "keep"


def read_answer(path: Path, *, then: str = "keep") -> Answer:
    """The recorded answer of a file: a stream (.sse), or an error (.json: its status and body)."""
    if path.suffix == ".sse":
        return Answer(body=path.read_bytes(), then=then)
    told = json.loads(path.read_text())
    body = json.dumps(told["body"]).encode()
    return Answer(status=told["status"], body=body, content_type="application/json", then=then)


def refusal(status: int, message: str, *, headers: Mapping[str, str] = EMPTY) -> Answer:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": "error"}}).encode()
    return Answer(status=status, body=body, content_type="application/json", headers=headers)


def sse(*chunks: dict[str, Any], done: bool = True, **changes: Any) -> Answer:
    """A stream of these chunks."""
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return Answer(body="".join([*lines, "data: [DONE]\n\n" if done else ""]).encode(), **changes)


def piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """One chunk with one choice."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


class ReplayServer:
    """Gives its answers in order, the last one again and again. `requests` are what came in."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.hung_up = threading.Event()  # a client went away while an answer hung

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as source:
            try:
                while self._read(source):
                    if not self._answer(client):
                        return
            except OSError:
                return

    def _read(self, source: IO[bytes]) -> bool:
        if not source.readline():
            return False
        headers: dict[str, str] = {}
        while line := source.readline().strip().decode():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        body = json.loads(source.read(int(headers.get("content-length", 0))) or b"{}")
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
        return True

    def _answer(self, client: socket.socket) -> bool:
        """Whether the connection stays open."""
        with self._lock:
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        head = {
            "content-type": answer.content_type,
            "transfer-encoding": "chunked",
            **answer.headers,
        }
        lines = [f"HTTP/1.1 {answer.status} Told", *(f"{k}: {v}" for k, v in head.items())]
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        if answer.body:
            client.sendall(b"%x\r\n%b\r\n" % (len(answer.body), answer.body))
        if answer.then == "hang":
            self._hang(client)
        if answer.then in ("hang", "drop"):
            return False
        client.sendall(b"0\r\n\r\n")
        return answer.then == "keep"

    def _hang(self, client: socket.socket) -> None:
        client.settimeout(0.05)
        while not self._stopped.is_set():
            try:
                if not client.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.hung_up.set()
