"""A NATS server on this machine, with settings under which what is kept survives a power loss.

For laptops and tests; production uses official builds, three servers, TLS and accounts.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from callboard.errors import ConfigurationError, MissingExtra

READY_S = 15.0


class NatsServers:
    """One server, or a cluster of several, on loopback. Use it with `with`; ends them all.

    `folder` keeps their data: the same folder goes on where it stood. `ports` are those for
    clients, or free ones.

    Raises, when it is entered:
        MissingExtra: there is no nats-server. ConfigurationError: one did not come up.
    """

    def __init__(self, folder: Path, *, servers: int = 1, ports: Sequence[int] = ()) -> None:
        if servers not in (1, 3, 5):
            raise ConfigurationError(f"servers={servers!r}: give 1, 3 or 5, of which most agree")
        self.folder = folder
        self.ports = list(ports) or [_free_port() for _ in range(servers)]
        self._routes = [_free_port() for _ in self.ports]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """All servers, as an engine takes them."""
        return ",".join([f"nats://127.0.0.1:{port}" for port in self.ports])

    def __enter__(self) -> Self:
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
        """Start one of them, with the data that it had."""
        folder = self.folder / f"server{number}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        config = folder / "nats.conf"
        config.write_text(self._config(number, folder))
        log = (folder / "log").open("ab")
        process = self._processes[number] = subprocess.Popen(
            [_binary(), "--config", str(config)], stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        return process

    def stop(self, number: int, *, kill: bool = False) -> None:
        """End one of them: in order, or as a power loss would."""
        process = self._processes.pop(number)
        process.kill() if kill else process.terminate()
        process.wait(30)

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
            f'jetstream {{ store_dir: "{folder / "js"}", sync_interval: always }}',
        ]
        if len(self.ports) > 1:
            routes = ", ".join([f'"nats://127.0.0.1:{port}"' for port in self._routes])
            lines.append(
                "cluster {"
                f' name: callboard, listen: "127.0.0.1:{self._routes[number]}",'
                f" routes: [{routes}] }}"
            )
        return "\n".join(lines) + "\n"


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise MissingExtra("nats-server", extra="nats-server")
    return found


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
