"""Child processes that serve model files, one for each file and settings. Used by `local`.

A child is kept while somebody uses it and a little after (loading takes seconds), and never
outlives this process.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio.to_thread

from callboard.errors import ErrorCategory, MissingExtra, ModelError
from callboard_providers.models.openai_chat import OpenAIChatModel

LINGER_S = 60.0
CLOSE_S = 3.0
FIRST_BYTE_S = 900.0  # a prompt of 8,000 tokens takes minutes on one slow core
SCRIPT = Path(__file__).with_name("local_server.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What makes two servers different. `template` is a file, "" for the model's own."""

    path: str
    alias: str
    context_tokens: int
    parallel: int
    threads: int
    niceness: int
    template: str


class LocalServer:
    """One child process, started at construction from a thread of its own.

    The thread lives as long as the child: Linux takes the end of the thread that started a child
    for the death of its parent.
    """

    def __init__(self, settings: ServerSettings) -> None:
        if find_spec("xllamacpp") is None:
            raise MissingExtra("xllamacpp", extra="local")
        self.settings = settings
        self.users = 0
        self._ready: Future[OpenAIChatModel] = Future()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._live, name="callboard-model", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it serves, or still loads."""
        return self._thread.is_alive() and not self._closed.is_set()

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    async def chat(self) -> OpenAIChatModel:
        """The model that talks to this server, once it is ready.

        Raises:
            ModelError: the engine could not load the file.
        """
        return await anyio.to_thread.run_sync(self._ready.result, abandon_on_cancel=True)

    def close(self) -> None:
        """End the child: by closing its stdin, and by force if that takes too long."""
        self._closed.set()
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                process.wait(CLOSE_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(CLOSE_S)

    def _live(self) -> None:
        with tempfile.TemporaryFile() as log:
            command = [sys.executable, "-P", str(SCRIPT)]
            pipe = subprocess.PIPE
            with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log) as process:
                self._process = process
                try:
                    self._ready.set_result(self._started(process))
                except (OSError, ValueError, KeyError) as error:
                    self._ready.set_exception(self._failure(error, _tail(log.fileno())))
                    process.kill()
                process.wait()

    def _started(self, process: subprocess.Popen[bytes]) -> OpenAIChatModel:
        assert process.stdin is not None
        assert process.stdout is not None
        key = secrets.token_urlsafe(24)
        told = {**asdict(self.settings), "key": key, "parent_id": os.getpid()}
        process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.flush()
        ready = json.loads(process.stdout.readline() or b'{"error": "it ended at once"}')
        if "error" in ready:
            raise ValueError(ready["error"])
        return OpenAIChatModel(
            self.settings.alias,
            base_url=f"{ready['address']}/v1",
            api_key=key,
            keep_alive=False,  # the server closes connections that it promised to keep
            first_byte_timeout_s=FIRST_BYTE_S,
        )

    def _failure(self, error: Exception, log: str) -> ModelError:
        text = f"the model file {self.settings.path!r} could not be served: {error} {log}"
        return ModelError(text.strip(), category=ErrorCategory.BAD_REQUEST)


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, 500, max(size - 500, 0)).decode(errors="replace")


class LocalServers:
    """The children of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[ServerSettings, LocalServer] = {}
        self._timers: dict[ServerSettings, threading.Timer] = {}

    def take(self, settings: ServerSettings) -> LocalServer:
        """The server of these settings, started if need be; to be given back."""
        with self._lock:
            timer = self._timers.pop(settings, None)
            if timer is not None:
                timer.cancel()
            server = self._servers.get(settings)
            if server is None or not server.alive:
                server = self._servers[settings] = LocalServer(settings)
            server.users += 1
            return server

    def give_back(self, server: LocalServer, *, linger_s: float = LINGER_S) -> None:
        """Undo one `take`; the last one lets the server go after `linger_s`."""
        with self._lock:
            server.users -= 1
            if server.users or self._servers.get(server.settings) is not server:
                return
            timer = threading.Timer(linger_s, partial(self._retire, server))
            timer.daemon = True
            self._timers[server.settings] = timer
            timer.start()

    def _retire(self, server: LocalServer) -> None:
        with self._lock:
            if server.users or self._servers.get(server.settings) is not server:
                return
            del self._servers[server.settings]
            self._timers.pop(server.settings, None)
        server.close()

    def close(self) -> None:
        """End them all, at the end of this process for instance."""
        with self._lock:
            servers, timers = list(self._servers.values()), list(self._timers.values())
            self._servers, self._timers = {}, {}
        for timer in timers:
            timer.cancel()
        for server in servers:
            server.close()

    def forget(self) -> None:
        """In a forked process: the children are the parent's."""
        self._lock = threading.Lock()
        self._servers, self._timers = {}, {}


SERVERS = LocalServers()
atexit.register(SERVERS.close)
os.register_at_fork(after_in_child=SERVERS.forget)
