"""A cable to a server that can be pulled out: a TCP proxy on loopback."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self


class Cable:
    """Passes what comes to `port` on to a server, until it is pulled out."""

    def __init__(self, server: int) -> None:
        self._server = ("127.0.0.1", server)
        self._ends: set[socket.socket] = set()
        self._lock = Lock()
        self._is_out = Event()
        self._is_over = Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self.pull_out()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()

    def pull_out(self) -> None:
        """Break all connections, and let none in."""
        self._is_out.set()
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def plug_in(self) -> None:
        self._is_out.clear()

    def _accept(self) -> None:
        while not self._is_over.is_set():
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # it is over
            try:
                far = None if self._is_out.is_set() else socket.create_connection(self._server)
            except OSError:
                far = None  # the server is dead
            if far is None:
                near.close()
                continue
            with self._lock:
                self._ends |= {near, far}
            for one, other in ((near, far), (far, near)):
                Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65_536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
