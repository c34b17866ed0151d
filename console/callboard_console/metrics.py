"""What a worker tells Prometheus, and whoever asks whether it is well."""

from __future__ import annotations

import hmac
from collections import Counter as Count
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from threading import Thread
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from callboard.actors.engine import ActorEntry, WorkerEntry
from callboard.events import AgentEnd, Event, MessageEnd, ToolEnd
from callboard.messages import AssistantMessage
from callboard.prices import list_price
from callboard_console.exits import CommandError

LOOPBACK = "127.0.0.1"


class Metrics:
    """Counts what this process does, and shows how its engine stands."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"callboard_{name}", what, labels, registry=registry)

        def gauge(name: str, what: str, *labels: str) -> Gauge:
            return Gauge(f"callboard_{name}", what, labels, registry=registry)

        self._turns = counter("turns", "Answers of models", "kind")
        self._tokens = counter("tokens", "Tokens of models", "kind", "direction")
        self._cost = counter("cost_dollars", "List prices of the tokens, where known", "kind")
        self._tools = counter("tool_calls", "Calls of tools", "kind", "tool", "status")
        self._runs = counter("runs", "Runs that ended or wait", "kind", "outcome")
        self._depth = gauge("mailbox_letters", "Letters that are not done", "kind")
        self._deepest = gauge("mailbox_letters_most", "Those of the fullest mailbox", "kind")
        self._actors = gauge("actors", "Addresses that are known", "kind", "standing")
        self._shards = gauge("shards_owned", "Shards, by the worker that leases them", "worker")
        self._dead = gauge("dead_letters", "Letters that could not be handled")
        self._prices = find_spec("genai_prices") is not None

    def note(self, event: Event) -> None:
        """Take an event of this process's agents in."""
        kind = event.address.type
        match event:
            case MessageEnd(message=AssistantMessage() as message):
                self._answered(kind, message)
            case ToolEnd():
                self._tools.labels(kind, event.tool_name, str(event.observation.status)).inc()
            case AgentEnd():
                self._runs.labels(kind, str(event.outcome)).inc()
            case _:
                pass

    def _answered(self, kind: str, message: AssistantMessage) -> None:
        self._turns.labels(kind).inc()
        self._tokens.labels(kind, "input").inc(message.usage.input_tokens or 0)
        self._tokens.labels(kind, "output").inc(message.usage.output_tokens or 0)
        if self._prices and message.model:
            self._cost.labels(kind).inc(list_price(message.model, message.usage) or 0)

    def show(self, actors: Iterable[ActorEntry], workers: Iterable[WorkerEntry], dead: int) -> None:
        """Take in how the engine stands now."""
        depth, deepest, standing = Count[str](), dict[str, int](), Count[tuple[str, str]]()
        for entry in actors:
            kind = entry.address.type
            depth[kind] += entry.unread
            deepest[kind] = max(deepest.get(kind, 0), entry.unread)
            standing[kind, str(entry.standing)] += 1
        self._actors.clear()
        self._shards.clear()
        for (kind, how), count in standing.items():
            self._actors.labels(kind, how).set(count)
        for kind, count in depth.items():
            self._depth.labels(kind).set(count)
            self._deepest.labels(kind).set(deepest[kind])
        for worker in workers:
            self._shards.labels(worker.name).set(sum(map(len, worker.shards.values())))
        self._dead.set(dead)


class MetricsServer:
    """`/health`, open to all of this machine, and `/metrics`, which wants the token. Use it with
    `with`; it answers from a thread of its own, also while the event loop is busy.
    """

    def __init__(
        self, metrics: Metrics, port: int, token: str, problem: Callable[[], str | None]
    ) -> None:
        self._registry = metrics.registry
        self._token = token
        self._problem = problem
        try:
            self._server = make_server(
                LOOPBACK, port, self._answer, WSGIServer, handler_class=_Quiet
            )
        except OSError as error:
            raise CommandError(
                f"metrics cannot be served on port {port}: {error.strerror}"
            ) from error
        self.port: int = self._server.server_port

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environment: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environment.get("PATH_INFO")
        if path == "/health":
            problem = self._problem()
            return _text(start, "503 Service Unavailable" if problem else "200 OK", problem or "ok")
        if path != "/metrics":
            return _text(start, "404 Not Found", "there are /health and /metrics")
        given = environment.get("HTTP_AUTHORIZATION", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return _text(start, "401 Unauthorized", "Authorization: Bearer TOKEN is missing")
        return _text(start, "200 OK", generate_latest(self._registry).decode())


def _text(start: Any, status: str, text: str) -> list[bytes]:
    start(status, [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")])
    return [f"{text.rstrip()}\n".encode()]


class _Quiet(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        del format, args
