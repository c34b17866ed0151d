"""A NATS server on this machine, with settings under which what is kept survives a power loss.

For laptops and tests; production uses official builds, three servers, TLS and accounts.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from callboard.errors import ConfigurationError, MissingExtra

READY_S = 15.0
CHILD = Path(__file__).with_name("nats_child.py")


class NatsServers:
    """One server, or a cluster of several, on loopback. Use it with `with`; ends them all.

    `folder` keeps their data and the token that clients need: the same folder goes on where it
    stood. `ports` are those for clients, or free ones.

    Raises, when it is entered:
        MissingExtra: there is no nats-server. ConfigurationError: one did not come up.
    """

    def __init__(self, folder: Path, *, servers: int = 1, ports: Sequence[int] = ()) -> None:
        if servers not in (1, 3, 5):
            raise ConfigurationError(f"servers={servers!r}: give 1, 3 or 5, of which most agree")
        self.folder = folder
        self.ports = list(ports) or [_free_port() for _ in range(servers)]
        if len(self.ports) != servers:
            raise ConfigurationError(f"ports={self.ports!r}: give one for each of {servers}")
        self._routes = [_free_port() for _ in self.ports]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """All servers with the token, as an engine takes them."""
        return ",".join([f"nats://{self.token}@127.0.0.1:{port}" for port in self.ports])

    @cached_property
    def token(self) -> str:
        """What clients show; whoever cannot read the folder does not get in."""
        file = self.folder / "token"
        with suppress(FileExistsError), os.fdopen(_private(file), "w") as opened:
            opened.write(secrets.token_urlsafe(24))
        return file.read_text()

    def __enter__(self) -> Self:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            for number in range(len(self.ports)):
                self.start(number)
            for number in range(len(self.ports)):
                self.wait_ready(number)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Start one of them, with the data that it had.

        Raises:
            ConfigurationError: its port is taken.
        """
        _check_free(self.ports[number])
        folder = self.folder / f"server{number}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = folder / "nats.conf"
        config.unlink(missing_ok=True)
        with os.fdopen(_private(config), "w") as opened:
            opened.write(self._config(number, folder))
        log = (folder / "log").open("ab")
        server = [_binary(), "--config", str(config)]
        process = self._processes[number] = subprocess.Popen(
            [sys.executable, str(CHILD), str(os.getpid()), *server],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        return process

    def stop(self, number: int, *, kill: bool = False) -> None:
        """End one of them: in order, or as a power loss would."""
        process = self._processes.pop(number)
        process.kill() if kill else process.terminate()
        process.wait(30)

    def ended(self) -> list[int]:
        """The numbers of those that have ended by themselves."""
        return [number for number, one in self._processes.items() if one.poll() is not None]

    def process(self, number: int) -> subprocess.Popen[bytes]:
        return self._processes[number]

    def close(self) -> None:
        for number in tuple(self._processes):
            self.stop(number)

    def wait_ready(self, number: int) -> None:
        """Wait until a server takes connections.

        Raises:
            ConfigurationError: it ended, or did not in time; its log stands in its folder.
        """
        until = time.monotonic() + READY_S
        log = self.folder / f"server{number}" / "log"
        while time.monotonic() < until and self._processes[number].poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.ports[number]), timeout=1.0):
                    return
            except OSError:
                time.sleep(0.05)
        raise ConfigurationError(f"the NATS server did not come up; see {log}")

    def _config(self, number: int, folder: Path) -> str:
        lines = [
            f"server_name: callboard{number}",
            f'listen: "127.0.0.1:{self.ports[number]}"',
            f'authorization {{ token: "{self.token}" }}',
            f'jetstream {{ store_dir: "{folder / "js"}", sync_interval: always }}',
        ]
        if len(self.ports) > 1:
            among = f"callboard:{self.token}"
            routes = ", ".join([f'"nats://{among}@127.0.0.1:{port}"' for port in self._routes])
            lines.append(
                "cluster {"
                f' name: callboard, listen: "127.0.0.1:{self._routes[number]}",'
                f' authorization {{ user: callboard, password: "{self.token}" }},'
                f" routes: [{routes}] }}"
            )
        return "\n".join(lines) + "\n"


def _private(file: Path) -> int:
    """A new file that only its owner reads. Raises FileExistsError."""
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise MissingExtra("nats-server", extra="nats-server")
    return found


def _check_free(port: int) -> None:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigurationError(
                f"port {port} is taken: {error.strerror}; use another"
            ) from error


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
